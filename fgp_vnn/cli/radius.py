"""fgp-vnn radius: bound the distance from the points of a file to the nearest other class."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import write_bytes, writing
from fgp_vnn.base.radius import Radius
from fgp_vnn.cli.arguments import add_device, add_limits, positive_number
from fgp_vnn.cli.interrupt import leave_on_interrupt
from fgp_vnn.cli.point_pages import DRAWN, about_points, add_report, check_drawn
from fgp_vnn.cli.point_runs import (
    Point,
    PointRun,
    add_point_arguments,
    ball_options,
    check_point_arguments,
    fixed_columns,
)
from fgp_vnn.cli.watch import saying_stopped
from fgp_vnn.engine.settings import GAP, RADIUS_ENGINES, make_settings
from fgp_vnn.report.radius_set import describe_radii, percent, read_row, summarise_radii

EXACT = 1e-6  # the relative gap of an exact answer
RESULT = ("point", "y", "label", "lower", "upper", "ended", "decided_by", "seconds", "reason")
# The same in every row: a run with other values cannot resume from the table.
RUN = ("network", "data", "norm", "max", "gap", "engine", "clip", "timeout", "seed")
COLUMNS = (*RESULT, "statistics", *RUN, "counterexample_label", "counterexample")
EXAMPLE = "fgp-vnn radius model.onnx points.npz --norm l2 --max 2 --output radii.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_point_arguments(parser)
    add(
        "--max",
        type=positive_number,
        default=1.0,
        help="largest radius of interest (default: %(default)g)",
    )
    add(
        "--gap", type=positive_number, help="stop when upper - lower <= GAP * upper (default: 0.01)"
    )
    add("--exact", action="store_true", help=f"use a gap of {EXACT:g} (default: that of --gap)")
    add(
        "--engine",
        choices=RADIUS_ENGINES,
        default="auto",
        help="bounds: linear bounds without a search, a cheap baseline; split: branch and bound; "
        "walk: from region to region, as in the FGP paper; auto: attacks and bounds, then the "
        "search that suits the network (default: %(default)s)",
    )
    add_limits(parser, " for each point")
    add_device(parser)
    add(
        "--plot",
        type=Path,
        metavar="FILE",
        help="write plots of the radii and of the certified accuracy, as "
        f"{', '.join(DRAWN['plot'][0])} (default: none)",
    )
    add_report(parser)


def run(args: argparse.Namespace) -> int:
    """Bound the radius at every point, print the summary and return the exit code."""
    check_arguments(args)
    with saying_stopped(own_process=args.own_process, saved=args.output):
        with leave_on_interrupt():
            chosen = {name: getattr(args, name) for name in ("device", "memory", "seed", "engine")}
            make_settings("radius", chosen)
            gap = EXACT if args.exact else args.gap
            options = ball_options(args) | {"maximum": args.max, "gap": gap}
            settings = run_settings(args, options)
            run = PointRun.of(args, chosen, args.max, COLUMNS, settings)

        with run.finishing(args.output, lambda rows: finish(args, rows, run, settings)):
            for point in run.waiting():
                found = run.certifier.radius(point.x, **options, progress=shown(point))
                row = radius_row(point, found)
                run.add(row)
                if not args.json:
                    print(line(row), flush=True)
    return 0


def check_arguments(args: argparse.Namespace) -> None:
    check_point_arguments(args)
    if args.exact and args.gap is not None:
        raise InputError("--exact does not use --gap: give one of them")
    if args.gap is None:
        args.gap = None if args.exact else GAP
    elif not args.gap < 1:
        raise InputError(f"--gap is {args.gap}; it must lie between 0 and 1")
    check_drawn("plot", args.plot)
    check_drawn("report", args.report)


def run_settings(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    """Return the columns RUN."""
    return fixed_columns(
        args.model,
        args.points,
        norm=options["norm"],
        max=args.max,
        gap="exact" if args.exact else args.gap,
        engine=args.engine,
        clip=options["clip"],
        timeout=options["timeout"],
        seed=args.seed,
    )


def shown(point: Point) -> Callable[[float, float], None]:
    """Return a callback that shows both bounds of a point as they improve."""

    def show(lower: float, upper: float) -> None:
        point.note(f"point {point.number}: {lower:.5g} to {_upper(upper)}")

    show(0.0, math.inf)
    return show


def radius_row(point: Point, result: Radius) -> dict[str, Any]:
    row = {"point": point.number, "y": point.y, **result.as_dict()}
    row["seconds"] = round(result.seconds, 6)
    example = row.pop("counterexample", None)
    if example is not None:
        row["counterexample_label"], row["counterexample"] = example["label"], example["x"]
    return row


def line(row: dict[str, Any]) -> str:
    """Return the result at one point as a line of text."""
    point = read_row(row)
    wrong = "" if point.right else f" (true: {point.y})"
    gap = "" if math.isinf(point.gap) else f", gap {percent(point.gap)}"
    ended = _ENDED.get(point.ended, point.ended)
    if point.ended == "inconclusive" and row.get("reason"):
        ended = f"{ended} ({row['reason']})"
    by = f" decided by {point.decided_by}," if point.decided_by else ""
    return (
        f"point {point.point}: class {point.label}{wrong}, radius {point.lower:.6g} to "
        f"{_upper(point.upper)}{gap}; {ended},{by} {point.seconds:.3f} s"
    )


_ENDED = {"max": "certified up to --max", "memory": "out of memory (give --memory a lower number)"}


def _upper(upper: float) -> str:
    return "?" if math.isinf(upper) else f"{upper:.6g}"


def finish(
    args: argparse.Namespace, rows: list[dict[str, Any]], run: PointRun, settings: dict[str, Any]
) -> None:
    """Print the summary, and write the plot and the report."""
    radii = [read_row(row) for row in rows]
    summary = summarise_radii(radii, args.max)
    whole = summary | {"results": rows}
    print(json.dumps(whole) if args.json else describe_radii(summary), flush=True)
    if not rows or (args.plot is None and args.report is None):
        return
    from fgp_vnn.report.figures import PAPER
    from fgp_vnn.report.radius_page import radius_page
    from fgp_vnn.report.radius_plots import Radii, save_both

    shown = Radii(radii, args.norm, args.max)
    with writing():
        if args.plot is not None:
            save_both(shown, PAPER, args.plot)
        if args.report is not None:
            found = [
                pair for pair in zip(radii, rows, strict=True) if pair[1].get("counterexample")
            ]
            found.sort(key=lambda pair: pair[0].upper)
            nearest = [(row, f"distance {radius.upper:.4g}") for radius, row in found]
            names = ("norm", "max", "gap", "engine", "seed")
            about = about_points(args, run, settings, names, nearest)
            write_bytes(args.report, radius_page(about, shown).encode(), "report")
