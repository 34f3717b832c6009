"""fgp-vnn property: write a folder of properties, for bench and for other tools."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.words import plural
from fgp_vnn.cli.arguments import add_clip, count, positive_number, seconds, whole, written_radius
from fgp_vnn.cli.interrupt import leave_on_interrupt

EXAMPLE = "fgp-vnn property model.onnx points.npz --epsilon 8/255 --clip 0 1 --out benchmark"
VERSIONS = ("1.0", "2.0")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", type=Path, help="the network, .onnx or .onnx.gz")
    add(
        "points",
        type=Path,
        help="inputs: .npy, .npz (x, perhaps y) or .csv; with --monotone a property, whose inputs "
        "are meant, or an .npz file with lower and upper",
    )
    add(
        "--epsilon",
        type=written_radius,
        nargs="+",
        metavar="E",
        help="radii in the l-infinity norm, in the units of the inputs; 8/255 is a number "
        "(needed but for --monotone)",
    )
    _add_monotone(parser)
    add_clip(parser)
    add("--first", type=count, metavar="N", help="only N points (default: all)")
    add("--target", type=int, help="the class that counts as another one (default: all)")
    add(
        "--all-points",
        action="store_true",
        help="also points that the network gives another class than y (default: left out)",
    )
    add("--version", choices=VERSIONS, default="1.0", help="VNN-LIB (%(default)s)")
    add("--timeout", type=seconds, default=60.0, help="seconds in instances.csv (%(default)g)")
    add("--out", type=Path, required=True, help="the folder, made if need be")
    add("--json", action="store_true", help="print what was written as JSON (default: as text)")


def _add_monotone(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--monotone",
        type=whole,
        metavar="I",
        help="no output falls where input I grows and the others stay (default: robustness)",
    )
    add("--decreasing", action="store_true", help="with --monotone: none rises (default: falls)")
    add(
        "--output",
        type=whole,
        nargs="+",
        metavar="J",
        help="with --monotone: the outputs that count (default: all)",
    )
    add(
        "--tolerance",
        type=positive_number,
        metavar="T",
        help="by how much an output may fall, in its own units (needed with --monotone)",
    )


def run(args: argparse.Namespace) -> int:
    """Write onnx/, vnnlib/ and instances.csv; the exit code."""
    if args.monotone is not None:
        return _run_monotone(args)
    if args.decreasing or args.output is not None or args.tolerance is not None:
        raise InputError("--decreasing, --output and --tolerance are for --monotone")
    if args.epsilon is None:
        raise InputError("--epsilon is needed, or --monotone (see fgp-vnn property --help)")
    with leave_on_interrupt():
        from fgp_vnn.api.folders import Folder, write_folder
        from fgp_vnn.api.points import read_points

        folder = Folder(args.out, args.version, args.timeout)
        clip = None if args.clip is None else tuple(args.clip)

        def points(inputs: int) -> Any:
            return read_points(args.points, inputs).first(args.first)

        try:
            written, wrong = write_folder(
                folder,
                args.model,
                points,
                args.epsilon,
                {"clip": clip, "target": args.target},
                keep_wrong=args.all_points,
            )
        except OSError as error:
            raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return _say(args, written, wrong)


def _run_monotone(args: argparse.Namespace) -> int:
    """Write the network at two inputs at once, and what is asked of it; the exit code."""
    others = (args.epsilon, args.clip, args.first, args.target, args.all_points or None)
    if any(given is not None for given in others):
        raise InputError("--monotone is about a box; --epsilon and what goes with it is not used")
    if args.tolerance is None:
        raise InputError("--monotone needs --tolerance: by how much an output may fall")
    with leave_on_interrupt():
        from fgp_vnn.api.folders import Folder, write_monotone
        from fgp_vnn.cli.bounds import read_boxes

        folder = Folder(args.out, args.version, args.timeout)
        how = {"outputs": args.output, "decreasing": args.decreasing, "tolerance": args.tolerance}
        try:
            write_monotone(folder, args.model, read_boxes(args.points), args.monotone, how)
        except OSError as error:
            raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from error
    return _say(args, 1, 0)


def _say(args: argparse.Namespace, written: int, wrong: int) -> int:
    """Say what was written, and how many points were left out; the exit code."""
    if args.json:
        print(json.dumps({"folder": str(args.out), "instances": written, "left_out": wrong}))
        return 0
    points = plural(wrong, "point")
    left = f"; {points} left out, which the network gives another class" if wrong else ""
    print(f"{plural(written, 'instance')} in {args.out / 'instances.csv'}{left}")
    return 0
