"""fgp-vnn property: write a folder of properties, for bench and for other tools."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import check_readable, writing
from fgp_vnn.base.model_file import check_model
from fgp_vnn.base.words import VERSIONS, plural
from fgp_vnn.cli.arguments import (
    add_clip,
    count,
    naming_options,
    positive_number,
    seconds,
    whole,
    written_radius,
)
from fgp_vnn.cli.bounds import check_boxes, read_boxes
from fgp_vnn.cli.file_order import check_order
from fgp_vnn.cli.interrupt import leave_on_interrupt
from fgp_vnn.cli.point_runs import POINTS

if TYPE_CHECKING:
    from fgp_vnn.api.folders import Folder, Written

EXAMPLE = "fgp-vnn property model.onnx points.npz --epsilon 8/255 --clip 0 1 --out benchmark"
_OPTIONS = {"entry": "--monotone", "output": "--output", "target": "--target"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", type=Path, help="the network, .onnx or .onnx.gz")
    add(
        "points",
        type=Path,
        help=f"{POINTS}; with --monotone: a property (what it says about outputs is ignored), or "
        "an .npz file with the arrays lower and upper",
    )
    add(
        "--epsilon",
        type=written_radius,
        nargs="+",
        metavar="E",
        help="one or more radii in the l-infinity norm, in the units of the inputs: numbers or "
        "fractions such as 8/255 (required without --monotone)",
    )
    _add_monotone(parser)
    add_clip(parser)
    add("--first", type=count, metavar="N", help="only the first N points (default: all)")
    add(
        "--target",
        type=int,
        metavar="CLASS",
        help="count only this class as a wrong prediction, and leave out points of this class "
        "(default: every other class)",
    )
    add(
        "--all-points",
        action="store_true",
        help="include points that the network misclassifies (default: skip them)",
    )
    add("--version", choices=VERSIONS, default="1.0", help="VNN-LIB version (default: %(default)s)")
    add(
        "--timeout",
        type=seconds,
        default=60.0,
        help="time limit in seconds, written to instances.csv (default: %(default)g)",
    )
    add("--out", type=Path, required=True, help="output folder; created if it does not exist")
    add("--json", action="store_true", help="print the summary as JSON (default: as text)")


def _add_monotone(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--monotone",
        type=whole,
        metavar="I",
        help="write the property that no output decreases when input I, counted from 0, increases "
        "and the other inputs stay the same (default: write robustness properties)",
    )
    add(
        "--decreasing",
        action="store_true",
        help="with --monotone: no output increases (default: no output decreases)",
    )
    add(
        "--output",
        type=whole,
        nargs="+",
        metavar="J",
        help="with --monotone: only these outputs, counted from 0 (default: all)",
    )
    add(
        "--tolerance",
        type=positive_number,
        metavar="T",
        help="change of an output in the wrong direction that is still allowed, in the units of "
        "the output (required with --monotone)",
    )


def run(args: argparse.Namespace) -> int:
    """Write onnx/, vnnlib/ and instances.csv, and return the exit code."""
    write = _write_points if args.monotone is None else _write_monotone
    _check(args)
    with leave_on_interrupt(), writing(), _folder(args.out), naming_options(_OPTIONS):
        from fgp_vnn.api.folders import Folder

        written = write(args, Folder(args.out, args.version, args.timeout))
    if args.json:
        left = {"left_out": written.wrong, "left_out_of_target_class": written.on_target}
        print(json.dumps({"folder": str(args.out), "instances": written.instances, **left}))
        return 0
    said = f"{plural(written.instances, 'instance')} in {args.out / 'instances.csv'}"
    if written.wrong:
        said += f"; {plural(written.wrong, 'point')} left out that the network misclassifies"
    if written.on_target:
        said += f"; {plural(written.on_target, 'point')} of class {args.target} left out"
    print(said)
    return 0


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Create a folder before the work begins; if the work fails, remove a new folder that is still
    empty."""
    made = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except InputError:
        if made:
            with suppress(OSError):  # it is not empty
                path.rmdir()
        raise


def _check(args: argparse.Namespace) -> None:
    """Refuse options that belong to the other kind of property, and missing files."""
    near = (args.epsilon, args.clip, args.first, args.target, args.all_points or None)
    if args.monotone is None:
        if args.decreasing or args.output is not None or args.tolerance is not None:
            raise InputError("--decreasing, --output and --tolerance are used only with --monotone")
        if args.epsilon is None:
            raise InputError("--epsilon is needed, or --monotone (see fgp-vnn property --help)")
    elif any(given is not None for given in near):
        unused = "--epsilon, --clip, --first, --target or --all-points"
        raise InputError(f"--monotone is about a box: it does not use {unused}")
    elif args.tolerance is None:
        raise InputError("--monotone needs --tolerance (see fgp-vnn property --help)")
    check_order("property", ("network", "points"), (args.model, args.points))
    check_model(args.model)
    if args.monotone is None:
        check_readable(args.points, "points file")
    else:
        check_boxes(args.points)


def _write_points(args: argparse.Namespace, folder: Folder) -> Written:
    """Write robustness properties."""
    from fgp_vnn.api.folders import write_folder
    from fgp_vnn.api.points import read_points

    clip = None if args.clip is None else tuple(args.clip)
    near = {"clip": clip, "target": args.target}

    def points(shape: tuple[int, ...]) -> Any:
        return read_points(args.points, shape).first(args.first)

    keep = args.all_points
    return write_folder(folder, args.model, points, args.epsilon, near, keep_wrong=keep)


def _write_monotone(args: argparse.Namespace, folder: Folder) -> Written:
    """Write the paired network and its monotonicity property."""
    from fgp_vnn.api.folders import Written, write_monotone

    how = {"outputs": args.output, "decreasing": args.decreasing, "tolerance": args.tolerance}
    write_monotone(folder, args.model, read_boxes(args.points), args.monotone, how)
    return Written(1)
