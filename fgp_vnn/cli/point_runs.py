"""What `certify` and `radius` share: the points of a file one by one, and a table that grows."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import read_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.records import Records, check_output
from fgp_vnn.cli.arguments import add_threads, count, finite, set_threads
from fgp_vnn.cli.progress import points_bar

if TYPE_CHECKING:
    from fgp_vnn.api.certify import Certifier
    from fgp_vnn.api.points import Points

Row = dict[str, Any]


def add_point_arguments(parser: argparse.ArgumentParser) -> None:
    """What says which inputs and which distance are meant, and where results go."""
    parser.add_argument("model", type=Path, help="the network, .onnx or .onnx.gz")
    parser.add_argument("points", type=Path, help=".npy, .npz (x, perhaps y) or .csv")
    parser.add_argument("--norm", choices=("l2", "linf", "l1"), default="l2")
    parser.add_argument(
        "--clip", type=finite, nargs=2, metavar=("LOW", "HIGH"), help="inputs outside do not count"
    )
    parser.add_argument("--first", type=count, help="only so many of the points")
    add_threads(parser)
    parser.add_argument("--output", type=Path, help="results point by point, .csv or .json lines")
    parser.add_argument("--resume", action="store_true", help="go on with an output file")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def check_point_arguments(args: argparse.Namespace) -> None:
    """Whatever can be said of them before anything is loaded."""
    if args.output is not None:
        check_output(args.output, resume=args.resume)
    elif args.resume:
        raise InputError("--resume goes on with a file: name it with --output")


def load(args: argparse.Namespace, settings: dict[str, Any]) -> tuple[Certifier, Points]:
    """The network made ready and the points that are asked for."""
    from fgp_vnn.api.certify import Certifier
    from fgp_vnn.api.points import Points, read_points

    set_threads(args.threads)
    certifier = Certifier.of(args.model, **settings)
    points = read_points(args.points, certifier.network.inputs)
    y = None if points.y is None else points.y[: args.first]
    return certifier, Points(points.x[: args.first], y)


def ball_options(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of a search at a point that both commands have."""
    clip = None if args.clip is None else tuple(args.clip)
    return {"norm": args.norm, "clip": clip, "timeout": args.timeout}


def fixed_columns(model: Path, data: Path, **chosen: Any) -> dict[str, Any]:
    """What decides the results besides the number of a point, and is the same in every row."""
    return {
        "network": _fingerprint(read_model(model)),
        "data": _fingerprint(read_bytes(data, "points file")),
        **chosen,
    }


def _fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def open_records(
    args: argparse.Namespace, columns: tuple[str, ...], settings: dict[str, Any]
) -> Records | None:
    if args.output is None:
        return None
    return Records(args.output, columns, resume=args.resume, fixed=settings)


def new_rows(
    count: int,
    records: Records | None,
    make_row: Callable[[int, Callable[[str], None]], Row],
) -> Iterator[Row]:
    """The rows of the points that have none yet, each in the file before it is given out.

    `make_row` gets the number of a point, and what shows a note beside the progress bar.
    """
    done = {int(row["point"]) for row in records.done} if records else set()
    waiting = [number for number in range(count) if number not in done]
    with points_bar(count, count - len(waiting)) as bar:
        for number in waiting:
            try:
                row = make_row(number, bar.note)
            except InputError as error:
                raise InputError(f"point {number}: {error}") from None
            if records:
                records.add(row)
            yield row
            bar.advance()
