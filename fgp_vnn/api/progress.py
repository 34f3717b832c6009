"""Progress of longer work: a callback, or a progress bar in a terminal or notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 1.0  # seconds of work before a bar is worth showing


@contextmanager
def counted(total: int, progress: Any, single: bool) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of `total` inputs.

    If `progress` is a function, it is called with the numbers of finished and of all inputs.
    Otherwise a bar is shown for a batch that takes longer than a second, if standard error is a
    terminal or this is a notebook; False shows none.
    """
    done, begin = 0, time.monotonic()
    bar: _NotebookBar | _TerminalBar | None = None
    if progress is not False and not callable(progress) and not single and _watched():
        bar = _NotebookBar(total) if _in_notebook() else _TerminalBar(total)

    def step() -> None:
        nonlocal done
        done += 1
        if callable(progress):
            progress(done, total)
        elif bar is not None and time.monotonic() - begin > PATIENCE:
            bar.show(done)

    try:
        yield step
    finally:
        if bar is not None:
            bar.clear()


class _TerminalBar:
    """A rich progress bar on standard error, which disappears when the work is done."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("inputs", total=total)

    def show(self, done: int) -> None:
        self._bar.start()
        self._bar.update(self._task, completed=done)

    def clear(self) -> None:
        if self._bar.live.is_started:
            self._bar.stop()


class _NotebookBar:
    """An HTML progress element, which needs no notebook widgets."""

    def __init__(self, total: int) -> None:
        self._total, self._shown = total, -PATIENCE
        self._handle: Any = None

    def show(self, done: int) -> None:
        if time.monotonic() - self._shown < PATIENCE / 5:
            return
        self._shown = time.monotonic()
        text = f"<progress value='{done}' max='{self._total}'></progress> {done} of {self._total}"
        self._display(text)

    def clear(self) -> None:
        if self._handle is not None:
            self._display("")

    def _display(self, text: str) -> None:
        from IPython.display import HTML, display

        if self._handle is None:
            self._handle = display(HTML(text), display_id=True)
        else:
            self._handle.update(HTML(text))


def _watched() -> bool:
    """Whether a progress bar can be seen: standard error is a terminal, or this is a notebook."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules
