"""A progress bar for work that goes point by point."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """What the work calls to move the bar."""

    advance: Callable[[], None]  # one more point is done
    note: Callable[[str], None]  # what is known of the current one


@contextmanager
def points_bar(total: int, done: int) -> Iterator[Bar]:
    """Show a bar on the error stream if that is a terminal; lines of the output go above it.

    `done` of the `total` points are done before the work begins.
    """
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    from fgp_vnn.bench.progress import bar_columns

    console = Console(stderr=True)
    with Progress(
        TextColumn("points"),
        *bar_columns(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
        redirect_stdout=sys.stdout.isatty(),  # output into a pipe stays as it is
    ) as progress:
        task = progress.add_task("", total=total, completed=done)
        yield Bar(
            lambda: progress.advance(task), lambda text: progress.update(task, description=text)
        )
