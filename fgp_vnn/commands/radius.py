"""fgp-vnn radius: certified lower bounds of the distance to another class."""

from __future__ import annotations

import argparse
import json
import statistics
from typing import TYPE_CHECKING, Any

from fgp_vnn.commands.certify import add_ball_arguments, load, open_records, progress
from fgp_vnn.commands.verify import read_timeout
from fgp_vnn.errors import InputError
from fgp_vnn.settings import DEVICES

if TYPE_CHECKING:
    from fgp_vnn.radii import Radius

COLUMNS = (
    "point",
    "y",
    "label",
    "lower",
    "upper",
    "tight",
    "ended",
    "seconds",
    "regions",
    "counterexample_label",
    "counterexample",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_ball_arguments(parser)
    parser.add_argument("--max", type=float, default=1.0, help="the largest radius of interest")
    parser.add_argument("--timeout", help="seconds for each point; the bound reached is valid")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--seed", type=int, default=0, help="of the attack's random starts")


def run(args: argparse.Namespace) -> int:
    timeout = read_timeout(args.timeout)
    if not args.max > 0:
        raise InputError(f"--max is {args.max}; it must be positive")
    records = open_records(args, COLUMNS)
    certifier, points = load(args, {"device": args.device, "seed": args.seed})
    from fgp_vnn.radii import find_radius

    rows = list(records.done) if records else []
    done = {int(row["point"]) for row in rows}
    clip = None if args.clip is None else (args.clip[0], args.clip[1])
    with progress(len(points), len(done)) as advance:
        for number in range(len(points)):
            if number in done:
                continue
            x = points.x[number].astype("float64")
            result = find_radius(
                certifier, x, maximum=args.max, norm=args.norm, clip=clip, timeout=timeout
            )
            y = None if points.y is None else int(points.y[number])
            row = {"point": number, "y": y, **_row(result)}
            rows.append(row)
            if records:
                records.add(row)
            elif not args.json:
                print(_line(number, result), flush=True)
            advance()
    summary = summarise(rows)
    print(json.dumps(summary) if args.json else describe(summary))
    return 0


def _row(result: Radius) -> dict[str, Any]:
    row = result.as_dict()
    row["regions"] = row.pop("statistics").get("regions", 0)
    example = row.pop("counterexample", None)
    if example is not None:
        row["counterexample_label"], row["counterexample"] = example["label"], example["x"]
    return row


def _line(number: int, result: Radius) -> str:
    upper = "" if result.counterexample is None else f", a counterexample at {result.upper:.6g}"
    tight = ", tight" if result.tight else f" ({result.ended})"
    return f"point {number}: at least {result.lower:.6g}{upper}{tight}, {result.seconds:.3f} s"


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean bound, and how many bounds are tight."""
    lowers = [float(row["lower"]) for row in rows]
    return {
        "points": len(rows),
        "mean_lower": statistics.fmean(lowers) if lowers else 0.0,
        "median_lower": statistics.median(lowers) if lowers else 0.0,
        "tight": sum(str(row["tight"]) == "True" for row in rows),
    }


def describe(summary: dict[str, Any]) -> str:
    return (
        f"{summary['points']} points: mean lower bound {summary['mean_lower']:.6g}, median "
        f"{summary['median_lower']:.6g}, {summary['tight']} tight"
    )
