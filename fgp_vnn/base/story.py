"""Progress messages of a search, sent to the logger `fgp_vnn` and to listeners.

Steps are reported at level INFO, and the progress of a search at DEBUG, a few times a second.
Nothing is computed for a message unless somebody listens.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

LOG = logging.getLogger("fgp_vnn")
LOG.addHandler(logging.NullHandler())
PAUSE = 0.1  # seconds between two messages of a search


@dataclass(frozen=True)
class Stage:
    """The progress of a search."""

    step: str  # the current step
    open: int | None = None  # number of open bundles, boxes or regions
    lowest: float | None = None  # their lowest bound
    left: float | None = None  # seconds until the deadline; None: there is none

    def __str__(self) -> str:
        parts = [self.step]
        parts += [f"{self.open} open"] if self.open is not None else []
        parts += [f"lowest bound {self.lowest:.4g}"] if self.lowest is not None else []
        parts += [f"{max(self.left, 0.0):.0f} s left"] if self.left is not None else []
        return ", ".join(parts)


def tell(stage: Stage, level: int = logging.DEBUG) -> None:
    """Report the progress of a search."""
    LOG.log(level, "%s", stage, extra={"stage": stage})


class Teller:
    """Limits the messages of a loop to one per `PAUSE`, and to none if nobody listens."""

    def __init__(self) -> None:
        self._last = 0.0

    def due(self) -> bool:
        """Whether it is time for a message."""
        if not LOG.isEnabledFor(logging.DEBUG):
            return False
        now = time.monotonic()
        if now - self._last < PAUSE:
            return False
        self._last = now
        return True


class _Listener(logging.Handler):
    def __init__(self, hear: Callable[[Stage], None]) -> None:
        super().__init__(logging.DEBUG)
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        stage = getattr(record, "stage", None)
        if isinstance(stage, Stage):
            self._hear(stage)


def listening(hear: Callable[[Stage], None] | None) -> AbstractContextManager[None]:
    """Pass every stage reported inside this context to a function; None passes nothing on."""
    return nullcontext() if hear is None else handled_by(_Listener(hear), logging.DEBUG)


@contextmanager
def handled_by(handler: logging.Handler, level: int) -> Iterator[None]:
    """Pass messages of at least this level to a handler, inside this context."""
    before = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(level)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(before)
