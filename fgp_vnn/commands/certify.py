"""fgp-vnn certify: local robustness at many inputs, verified robust accuracy."""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgp_vnn.commands.progress import points_bar
from fgp_vnn.commands.verify import (
    add_search_arguments,
    add_threads,
    read_timeout,
    search_settings,
    set_threads,
)
from fgp_vnn.errors import InputError
from fgp_vnn.records import Records

if TYPE_CHECKING:
    from fgp_vnn.certifier import Certifier
    from fgp_vnn.points import Points

STATUSES = ("robust", "not_robust", "unknown", "timeout")
HEURISTICS = ("alternate", "cache_first", "joint", "reduce", "signed", "stable")
COLUMNS = (
    "point",
    "y",
    "label",
    "status",
    "decided_by",
    "seconds",
    "regions",
    "attacked",
    "witness_label",
    "witness",
    "reason",
    "lps",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_ball_arguments(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="the radius of the ball")
    add_search_arguments(parser)
    parser.add_argument(
        "--without",
        action="append",
        choices=HEURISTICS,
        default=[],
        help="switch off a heuristic of the walk to see what it is worth (repeat for several)",
    )
    parser.add_argument(
        "--batch", type=int, default=4096, help="regions that the walk takes at once"
    )
    parser.add_argument(
        "--paper",
        action="store_true",
        help="the paper's algorithm: --engine walk, and none of the heuristics it does not have",
    )


def add_ball_arguments(parser: argparse.ArgumentParser) -> None:
    """What says which inputs and which distance are meant, and where results go."""
    parser.add_argument("model", type=Path, help="the network, .onnx or .onnx.gz")
    parser.add_argument("points", type=Path, help=".npy, .npz (x, perhaps y) or .csv")
    parser.add_argument("--norm", choices=("l2", "linf", "l1"), default="l2")
    parser.add_argument(
        "--clip", type=float, nargs=2, metavar=("LOW", "HIGH"), help="inputs outside do not count"
    )
    parser.add_argument("--first", type=int, help="only so many of the points")
    add_threads(parser)
    parser.add_argument("--output", type=Path, help="results point by point, .csv or .json lines")
    parser.add_argument("--resume", action="store_true", help="go on with an output file")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(args: argparse.Namespace) -> int:
    timeout = read_timeout(args.timeout)
    if not args.epsilon >= 0:
        raise InputError(f"--epsilon is {args.epsilon}; it must be at least 0")
    records = open_records(args, COLUMNS)
    certifier, points = load(args, _settings(args))
    rows = list(records.done) if records else []
    done = {int(row["point"]) for row in rows}
    clip = None if args.clip is None else (args.clip[0], args.clip[1])
    with points_bar(len(points), len(done)) as bar:
        for number in range(len(points)):
            if number in done:
                continue
            row = certify_point(certifier, points, number, args.epsilon, args.norm, clip, timeout)
            rows.append(row)
            if records:
                records.add(row)
            bar.advance()
    summary = summarise(rows)
    print(json.dumps(summary) if args.json else describe(summary))
    return 0


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    settings = search_settings(args)
    settings["batch"] = args.batch
    settings.update(dict.fromkeys(args.without, False))
    if args.paper:
        settings.update(engine="walk", attack=False)
        settings.update(dict.fromkeys(("alternate", "joint", "signed", "stable"), False))
    return settings


def open_records(args: argparse.Namespace, columns: tuple[str, ...]) -> Records | None:
    return None if args.output is None else Records(args.output, columns, resume=args.resume)


def load(args: argparse.Namespace, settings: dict[str, Any]) -> tuple[Certifier, Points]:
    """The network made ready and the points that are asked for."""
    from fgp_vnn.certifier import Certifier
    from fgp_vnn.points import Points, read_points

    set_threads(args.threads)
    certifier = Certifier.of(args.model, **settings)
    points = read_points(args.points, certifier.network.inputs)
    if args.first is not None:
        if args.first < 1:
            raise InputError(f"--first is {args.first}; it must be at least 1")
        y = None if points.y is None else points.y[: args.first]
        points = Points(points.x[: args.first], y)
    return certifier, points


def certify_point(
    certifier: Certifier,
    points: Points,
    number: int,
    epsilon: float,
    norm: Any,
    clip: tuple[float, float] | None,
    timeout: float | None,
) -> dict[str, Any]:
    """One row of the output. Where nothing was decided an attack has its say, for the accuracy."""
    x = points.x[number].astype("float64")
    result = certifier.certify(x, epsilon=epsilon, norm=norm, clip=clip, timeout=timeout)
    row: dict[str, Any] = {
        "point": number,
        "y": None if points.y is None else int(points.y[number]),
        "label": result.label,
        "status": result.status,
        "decided_by": result.decided_by,
        "seconds": round(result.seconds, 6),
        "regions": result.statistics.get("regions", 0),
        "reason": result.reason,
        "lps": result.statistics.get("lps"),
    }
    witness = result.witness
    if result.status in ("unknown", "timeout"):
        witness = certifier.attack(x, epsilon=epsilon, norm=norm, clip=clip)
        row["attacked"] = "broken" if witness is not None else "stands"
    if witness is not None:
        from fgp_vnn.robustness import other_class

        row["witness_label"] = other_class(witness.y, result.label)
        row["witness"] = [float(value) for value in witness.x]
    return row


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts, times, and what share of the points is verified; its upper bound by attacks."""
    count = len(rows)
    summary: dict[str, Any] = {"points": count}
    for status in STATUSES:
        summary[status] = sum(row["status"] == status for row in rows)
    seconds = [float(row["seconds"]) for row in rows]
    summary["median_seconds"] = statistics.median(seconds) if seconds else 0.0
    lps = [int(row["lps"]) for row in rows if row.get("lps") not in (None, "")]
    if lps:
        summary["lps"] = sum(lps)
    if count and all(row.get("y") not in (None, "") for row in rows):
        right = [row for row in rows if int(row["y"]) == int(row["label"])]
        broken = [r for r in right if r["status"] == "not_robust" or r.get("attacked") == "broken"]
        summary["accuracy"] = len(right) / count
        summary["vra"] = sum(row["status"] == "robust" for row in right) / count
        summary["vra_upper_bound"] = (len(right) - len(broken)) / count
    return summary


def describe(summary: dict[str, Any]) -> str:
    """The summary in a few lines."""
    counts = ", ".join(f"{summary[s]} {s.replace('_', ' ')}" for s in STATUSES)
    lines = [f"{summary['points']} points: {counts}; median {summary['median_seconds']:.4f} s"]
    if "lps" in summary:
        lines[0] += f"; {summary['lps']} LPs"
    if "vra" in summary:
        lines.append(
            f"accuracy {summary['accuracy']:.3f}, verified robust accuracy {summary['vra']:.3f}, "
            f"at most {summary['vra_upper_bound']:.3f}"
        )
    return "\n".join(lines)
