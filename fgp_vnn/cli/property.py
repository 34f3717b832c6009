"""fgp-vnn property: write a folder of robustness properties, for bench and for other tools."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.arguments import count, finite, seconds, written_radius
from fgp_vnn.cli.interrupt import leave_on_interrupt

EXAMPLE = "fgp-vnn property model.onnx points.npz --epsilon 8/255 --clip 0 1 --out benchmark"
VERSIONS = ("1.0", "2.0")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `fgp-vnn property`."""
    parser.add_argument("model", type=Path, help="the network, .onnx or .onnx.gz")
    parser.add_argument("points", type=Path, help="inputs: .npy, .npz (x, perhaps y) or .csv")
    parser.add_argument(
        "--epsilon",
        type=written_radius,
        nargs="+",
        required=True,
        metavar="E",
        help="radii in the l-infinity norm, in the units of the inputs; 8/255 is a number",
    )
    parser.add_argument(
        "--clip",
        type=finite,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="inputs outside do not count (default: all do)",
    )
    parser.add_argument("--first", type=count, metavar="N", help="only N points (default: all)")
    parser.add_argument(
        "--target", type=int, help="the class that counts as another one (default: all)"
    )
    parser.add_argument(
        "--all-points",
        action="store_true",
        help="also points that the network gives another class than y (default: left out)",
    )
    parser.add_argument("--version", choices=VERSIONS, default="1.0", help="VNN-LIB (%(default)s)")
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, help="seconds in instances.csv (%(default)g)"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder, made if need be")
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")


def run(args: argparse.Namespace) -> int:
    """Write onnx/, vnnlib/ and instances.csv; the exit code."""
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
    if args.json:
        print(json.dumps({"folder": str(args.out), "instances": written, "left_out": wrong}))
    else:
        left = f"; {wrong} points left out, which the network gives another class" if wrong else ""
        print(f"{written} instances in {args.out / 'instances.csv'}{left}")
    return 0
