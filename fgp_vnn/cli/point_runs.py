"""Common parts of `certify` and `radius`: a loop over points, and a table that grows by rows."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fgp_vnn.base.collector import collector_paused
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import check_readable, read_bytes
from fgp_vnn.base.model_file import check_model, read_model
from fgp_vnn.base.point_table import PointTable, check_output
from fgp_vnn.cli.arguments import add_clip, add_threads, count, set_threads
from fgp_vnn.cli.file_order import check_order
from fgp_vnn.cli.watch import resumable

if TYPE_CHECKING:
    from fgp_vnn.api.certify import Certifier
    from fgp_vnn.api.points import Points
    from fgp_vnn.base.robustness import Doubles

PointRow = dict[str, Any]
POINTS = (
    "the inputs: .npy, .npz (an array x, and optionally y with the true classes) or .csv (a row "
    "for each input, optionally with the true class first)"
)


def add_point_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the network, the points, the norm and the output."""
    add = parser.add_argument
    add("model", type=Path, help="the network, .onnx or .onnx.gz")
    add("points", type=Path, help=POINTS)
    add(
        "--norm",
        choices=("l2", "linf", "l1"),
        default="l2",
        help="norm in which distances are measured (default: %(default)s)",
    )
    add_clip(parser)
    add("--first", type=count, metavar="N", help="only the first N points (default: all)")
    add_threads(parser)
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="write the result of each point, as .csv or as JSON lines (.json, .jsonl; default: "
        "none)",
    )
    add("--resume", action="store_true", help="continue an existing --output file (default: off)")
    add(
        "--json",
        action="store_true",
        help="print the summary and all results as JSON (default: as text)",
    )


def check_point_arguments(args: argparse.Namespace) -> None:
    if args.output is not None:
        check_output(args.output, resume=args.resume)
    elif args.resume:
        raise InputError("--resume needs the file to resume from: name it with --output")


def ball_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the search arguments that both commands share."""
    clip = None if args.clip is None else tuple(args.clip)
    return {"norm": args.norm, "clip": clip, "timeout": args.timeout}


def fixed_columns(model: Path, data: Path, **chosen: Any) -> dict[str, Any]:
    """Return the columns that all rows share: hashes of both files, and the settings."""
    return {
        "network": _fingerprint(read_model(model)),
        "data": _fingerprint(read_bytes(data, "points file")),
        **chosen,
    }


def _fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


class Point(NamedTuple):
    """A point to process."""

    number: int
    x: Doubles  # [inputs]
    y: int | None  # its true class, if known
    note: Callable[[str], None]  # shows a text beside the progress bar
    begun: float  # start time on the monotonic clock


@dataclass(eq=False)
class PointRun:
    """The state of a command: the prepared network, the points, and the table of results."""

    certifier: Certifier
    points: Points
    table: PointTable | None = None
    rows: list[PointRow] = field(init=False)  # begins with the rows read from the table
    at_work: int | None = None  # number of the current point

    def __post_init__(self) -> None:
        self.rows = [] if self.table is None else list(self.table.done)

    @classmethod
    def of(
        cls,
        args: argparse.Namespace,
        settings: dict[str, Any],
        radius: float,
        columns: tuple[str, ...],
        fixed: PointRow,
    ) -> PointRun:
        """Load the network and the points of the arguments, and read the rows of the output file if
        there is one; refuse points whose balls of this radius are not valid."""
        check_order(args.command, ("network", "points"), (args.model, args.points))
        check_model(args.model)
        check_readable(args.points, "points file")
        with collector_paused(keep=args.own_process):  # to import torch faster
            from fgp_vnn.api.certify import Certifier
            from fgp_vnn.api.points import read_points
            from fgp_vnn.attack.ball_judge import check_ball

        set_threads(args.threads)
        certifier = Certifier.of(args.model, **settings)
        points = read_points(args.points, certifier.input_shape)
        points.check_classes(certifier.network.outputs)
        points = points.first(args.first)
        for number, x in enumerate(points.x):
            try:
                check_ball(x.astype("float64"), radius, args.norm, args.clip)
            except InputError as error:
                raise InputError(f"{args.points}: point {number}: {error}") from None
        if args.output is None:
            return cls(certifier, points)
        table = PointTable(args.output, columns, resume=args.resume, fixed=fixed)
        return cls(certifier, points, table)

    def waiting(self) -> Iterator[Point]:
        """Yield the points that have no row yet; the caller adds the row of each before the next. A
        progress bar is shown on standard error if that is a terminal; output goes above it."""
        from rich.console import Console
        from rich.progress import Progress, TextColumn

        from fgp_vnn.bench.progress import bar_columns

        done, count = {int(row["point"]) for row in self.rows}, len(self.points)
        numbers = [number for number in range(count) if number not in done]
        y, console = self.points.y, Console(stderr=True)
        with Progress(
            TextColumn("points"),
            *bar_columns(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            redirect_stdout=sys.stdout.isatty(),  # do not change output to a pipe
        ) as bar:
            task = bar.add_task("", total=count, completed=count - len(numbers))

            def note(text: str) -> None:
                bar.update(task, description=text)

            for number in numbers:
                self.at_work = number
                label = None if y is None else int(y[number])
                x = self.points.x[number].astype("float64")
                yield Point(number, x, label, note, time.monotonic())
                bar.advance(task)

    def add(self, row: PointRow) -> None:
        """Add the row of the current point; it is written to the output file first."""
        self.at_work = None
        if self.table:
            self.table.add(row)
        self.rows.append(row)

    @contextmanager
    def finishing(
        self, output: Path | None, finish: Callable[[list[PointRow]], None]
    ) -> Iterator[None]:
        """Call `finish` with the rows in the order of the points, also after Ctrl-C or an input
        error, which is then raised again."""
        stopped: BaseException | None = None
        try:
            yield
        except (KeyboardInterrupt, InputError) as error:
            stopped = error  # show the results so far first
            if isinstance(error, InputError) and self.at_work is not None:
                stopped = InputError(f"point {self.at_work}: {error}")
        self.rows.sort(key=lambda row: int(row["point"]))
        finish(self.rows)
        if stopped is not None:
            if output is not None:
                print(resumable(output), file=sys.stderr)
            raise stopped from None
