"""Progress of work that takes a while: a callback, or a bar where somebody looks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 1.0  # seconds of work before a bar is worth showing


@contextmanager
def counted(total: int, progress: Any, single: bool) -> Iterator[Callable[[], None]]:
    """What is called after each of so many inputs.

    `progress` is a function of the number that is done and of all; without one a bar is shown if
    standard error is a terminal, or in a notebook, once the work has taken a second; False shows
    none.
    """
    done = 0
    if callable(progress) or progress is False or single or not _watched():

        def step() -> None:
            nonlocal done
            done += 1
            if callable(progress):
                progress(done, total)

        yield step
        return
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    task, begin = bar.add_task("inputs", total=total), time.monotonic()

    def show() -> None:
        if not bar.live.is_started and time.monotonic() - begin > PATIENCE:
            bar.start()
        bar.advance(task)

    try:
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()


def _watched() -> bool:
    """Whether somebody looks: a terminal, or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules
