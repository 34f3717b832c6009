"""What `certify` and `radius` share: the points of a file one by one, and a table that grows."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import read_bytes
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.point_table import PointTable, check_output
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
    parser.add_argument(
        "--norm",
        choices=("l2", "linf", "l1"),
        default="l2",
        help="what distances are measured in (%(default)s)",
    )
    parser.add_argument(
        "--clip",
        type=finite,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="inputs outside do not count (default: all do)",
    )
    parser.add_argument("--first", type=count, help="only so many of the points (default: all)")
    add_threads(parser)
    parser.add_argument(
        "--output", type=Path, help="results point by point, .csv or .json lines (default: none)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="resume from an output file (default: begin)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the summary as JSON (default: as text)"
    )


def check_point_arguments(args: argparse.Namespace) -> None:
    """Whatever can be said of them before anything is loaded."""
    if args.output is not None:
        check_output(args.output, resume=args.resume)
    elif args.resume:
        raise InputError("--resume needs the file to resume from: name it with --output")


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


@dataclass(eq=False)
class PointRun:
    """A command at work: the network made ready, the points asked for, the table of results."""

    certifier: Certifier
    points: Points
    table: PointTable | None = None

    @classmethod
    def of(cls, args: argparse.Namespace, settings: dict[str, Any]) -> PointRun:
        """The network and the points that the arguments name."""
        from fgp_vnn.api.certify import Certifier
        from fgp_vnn.api.points import read_points

        set_threads(args.threads)
        certifier = Certifier.of(args.model, **settings)
        points = read_points(args.points, certifier.network.inputs)
        classes = certifier.network.outputs
        if points.y is not None and not ((points.y >= 0) & (points.y < classes)).all():
            raise InputError(f"{args.points}: y must be between 0 and {classes - 1}, a class each")
        return cls(certifier, points.first(args.first))

    def open(self, args: argparse.Namespace, columns: tuple[str, ...], fixed: Row) -> list[Row]:
        """Open the output file, if one is asked for; the rows that it has already."""
        if args.output is None:
            return []
        self.table = PointTable(args.output, columns, resume=args.resume, fixed=fixed)
        return list(self.table.done)

    def check_points(self, args: argparse.Namespace, radius: float) -> None:
        """Refuse a file with a point that no ball can be drawn around, before the work."""
        from fgp_vnn.attack.ball_judge import check_ball

        for number, x in enumerate(self.points.x):
            try:
                check_ball(x.astype("float64"), radius, args.norm, args.clip)
            except InputError as error:
                raise InputError(f"{args.points}: point {number}: {error}") from None

    def collect(
        self,
        args: argparse.Namespace,
        rows: list[Row],
        make_row: Callable[[int, Callable[[str], None]], Row],
        finish: Callable[[list[Row]], None],
    ) -> None:
        """Add the rows of all points and finish with them, in the order of the points: also with
        those that are there when Ctrl-C or an error ends it, which is raised again after that."""
        stopped: BaseException | None = None
        try:
            for row in self.new_rows(make_row):
                rows.append(row)
        except (KeyboardInterrupt, InputError) as error:
            stopped = error  # what is done is shown all the same
        rows.sort(key=lambda row: int(row["point"]))
        finish(rows)
        if stopped is not None:
            if args.output is not None:
                print(f"{args.output} has these points; resume with --resume", file=sys.stderr)
            raise stopped

    def begin_row(self, number: int) -> Row:
        """The columns of a point that are known before the search."""
        y = self.points.y
        return {"point": number, "y": None if y is None else int(y[number])}

    def new_rows(self, make_row: Callable[[int, Callable[[str], None]], Row]) -> Iterator[Row]:
        """The rows of the points that have none yet, each in the file before it is given out.

        `make_row` gets the number of a point, and what shows a note beside the progress bar.
        """
        table, count = self.table, len(self.points)
        done = {int(row["point"]) for row in table.done} if table else set()
        waiting = [number for number in range(count) if number not in done]
        with points_bar(count, count - len(waiting)) as bar:
            for number in waiting:
                try:
                    row = make_row(number, bar.note)
                except InputError as error:
                    raise InputError(f"point {number}: {error}") from None
                if table:
                    table.add(row)
                yield row
                bar.advance()
