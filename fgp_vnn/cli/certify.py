"""fgp-vnn certify: local robustness at many inputs, verified robust accuracy."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes
from fgp_vnn.base.robustness import Robustness, other_class
from fgp_vnn.base.words import plural
from fgp_vnn.cli.arguments import (
    LEAST_SECONDS,
    add_limits,
    add_search_arguments,
    count,
    radius,
    search_settings,
)
from fgp_vnn.cli.interrupt import leave_on_interrupt
from fgp_vnn.cli.point_pages import about_points, add_report, check_drawn
from fgp_vnn.cli.point_runs import (
    Point,
    PointRun,
    add_point_arguments,
    ball_options,
    check_point_arguments,
    fixed_columns,
)
from fgp_vnn.cli.watch import saying_stopped
from fgp_vnn.engine.settings import unusual
from fgp_vnn.strategy import COMMON

if TYPE_CHECKING:
    from fgp_vnn.api.certify import Certifier

REASONS = 5  # how many reasons for undecided points are printed, the most frequent first
STATUSES = ("robust", "not_robust", "unknown", "timeout")
HEURISTICS = ("alternate", "cache_first", "combined", "reduce", "signed", "stable")
# The same in every row; `options` are the settings that differ from the default.
RUN = ("network", "data", "norm", "epsilon", "clip", "timeout", "options")
RESULT = ("point", "y", "label", "status", "decided_by", "seconds", "regions", "attacked")
COLUMNS = (*RESULT, "counterexample_label", "counterexample", "reason", "lps", *RUN)
EXAMPLE = "fgp-vnn certify model.onnx points.npz --norm linf --epsilon 8/255 --clip 0 1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_point_arguments(parser)
    add_report(parser)
    add(
        "--epsilon",
        type=radius,
        required=True,
        help="radius of the ball, in the units of the inputs: a number or a fraction such as 8/255",
    )
    add_limits(parser, " for each point")
    add_search_arguments(parser)
    add(
        "--without",
        action="append",
        choices=HEURISTICS,
        default=[],
        help="switch off a heuristic of the walk, to measure its effect (can be repeated; default: "
        "all are on)",
    )
    add(
        "--batch",
        type=count,
        help="number of regions that the walk takes at once (default: as many as fit in memory, at "
        "most 4096)",
    )
    add(
        "--paper",
        action="store_true",
        help="the algorithm of the FGP paper: --engine walk without the heuristics that the paper "
        "does not have (default: off)",
    )


def run(args: argparse.Namespace) -> int:
    """Certify every point, print the summary and return the exit code."""
    check_point_arguments(args)
    check_drawn("report", args.report)
    settings = _settings(args)
    with saying_stopped(own_process=args.own_process, saved=args.output):
        with leave_on_interrupt():
            options = ball_options(args) | {"epsilon": args.epsilon}
            fixed = run_settings(args.model, args.points, options, settings)
            run = PointRun.of(args, settings, args.epsilon, COLUMNS, fixed)

        def finish(rows: list[dict[str, Any]]) -> None:
            summary = summarise(rows)
            print(json.dumps(summary | {"results": rows}) if args.json else describe(summary))
            if args.report is None or not rows:
                return
            from fgp_vnn.report.certify_page import certify_page
            from fgp_vnn.report.page import facts_line

            found = [(row, "") for row in rows if row.get("counterexample")]
            shown = fixed | {"options": facts_line(fixed["options"]) or "as usual"}
            about = about_points(args, run, shown, ("norm", "epsilon", "options"), found)
            write_bytes(args.report, certify_page(about, rows, summary).encode(), "report")

        with run.finishing(args.output, finish):
            search = search_options(options)
            for point in run.waiting():
                result = run.certifier.certify(point.x, **search)
                run.add(certify_row(run.certifier, point, result, options))
    return 0


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    settings = search_settings(args, "memory", "batch")
    settings.update(dict.fromkeys(args.without, False))
    if args.paper:
        if args.engine not in ("auto", "walk"):
            raise InputError(f"--paper is the walk: leave out --engine {args.engine}")
        settings.update(engine="walk")
        settings.update(dict.fromkeys(("alternate", "combined", "signed", "stable"), False))
    return settings


def run_settings(
    model: Path, data: Path, options: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the columns RUN; the device is left out because it only affects the time."""
    changed = unusual(settings)
    changed.pop("device", None)
    return fixed_columns(model, data, **options, options=changed)


def search_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the search at a point; a part of the timeout is kept for an attack."""
    timeout = options["timeout"]
    return options | {"timeout": None if timeout is None else COMMON.certify_share * timeout}


def certify_row(
    certifier: Certifier, point: Point, result: Robustness, options: dict[str, Any]
) -> dict[str, Any]:
    """Return one row of the output. If the point was not decided, an attack gets the remaining
    time, for the upper bound on the verified robust accuracy."""
    row: dict[str, Any] = {
        "point": point.number,
        "y": point.y,
        "label": result.label,
        "status": result.status,
        "decided_by": result.decided_by,
        "seconds": round(result.seconds, 6),
        "regions": result.statistics.get("regions", 0),
        "reason": result.reason,
        "lps": result.statistics.get("lps"),
    }
    counterexample = result.counterexample
    if result.status in ("unknown", "timeout"):
        left = options["timeout"]
        if left is not None:
            left = max(point.begun + left - time.monotonic(), LEAST_SECONDS)
        counterexample = certifier.attack(point.x, **(options | {"timeout": left}))
        row["attacked"] = "broken" if counterexample is not None else "stands"
    if counterexample is not None:
        row["counterexample_label"] = other_class(counterexample.y, result.label)
        row["counterexample"] = [float(value) for value in counterexample.x]
    return row


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return counts, times, the share of verified points, and its upper bound by attacks."""
    count = len(rows)
    summary: dict[str, Any] = {"points": count}
    for status in STATUSES:
        summary[status] = sum(row["status"] == status for row in rows)
    seconds = [float(row["seconds"]) for row in rows]
    summary["median_seconds"] = statistics.median(seconds) if seconds else 0.0
    reasons = Counter(str(row["reason"]) for row in rows if row.get("reason"))
    if reasons:
        summary["reasons"] = dict(reasons.most_common())
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
    counts = ", ".join(f"{summary[s]} {s.replace('_', ' ')}" for s in STATUSES)
    points = plural(summary["points"], "point")
    lines = [f"{points}: {counts}; median {summary['median_seconds']:.4f} s"]
    if "lps" in summary:
        lines[0] += f"; {summary['lps']} LPs"
    if "vra" in summary:
        lines.append(
            f"accuracy {summary['accuracy']:.3f}, verified robust accuracy {summary['vra']:.3f}, "
            f"at most {summary['vra_upper_bound']:.3f}"
        )
    told = list(summary.get("reasons", {}).items())
    lines[1:1] = [f"not decided, {plural(n, 'point')}: {reason}" for reason, n in told[:REASONS]]
    return "\n".join(lines)
