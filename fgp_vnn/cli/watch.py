"""Termination of a run from outside: by SIGTERM, or because the search has missed its deadline.

Python runs a signal handler only between two of its own instructions, which may be seconds away
while a kernel of torch runs. But the number of the signal is written to a pipe at once, and a
thread that waits for the pipe can end the process, since torch's kernels let other threads run.
"""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fgp_vnn.base.threads import start_watching

GRACE = 0.1  # seconds after the deadline in which the search may still end by itself
STOPPED = 143  # exit code after SIGTERM


class Watch:
    """A thread that ends the process by `give_up(reason, exit code)` at the deadline or on SIGTERM,
    unless `conclude` was called before."""

    def __init__(self, moment: float, give_up: Callable[[str, int], int]) -> None:
        self._moment, self._give_up = moment, give_up
        self._ending, self._concluded = threading.Lock(), False
        self.wake, self.signals = os.pipe()
        os.set_blocking(self.signals, False)
        start_watching("deadline", self._wait)

    def conclude(self) -> None:
        """Mark that a verdict is about to be printed: from now on the thread does nothing."""
        if not self._concluded:
            self._ending.acquire()  # blocks for ever if the thread has it: it ends the process
            self._concluded = True

    def _wait(self) -> None:
        left = self._left()
        while left > 0:
            wait = None if left == math.inf else left
            if select.select([self.wake], [], [], wait)[0]:
                numbers = os.read(self.wake, 64)
                if signal.SIGINT in numbers:
                    self._moment = math.inf  # Ctrl-C ends the run, not the deadline
                if signal.SIGTERM in numbers:
                    self._end("stopped by SIGTERM", STOPPED)
                    return
            left = self._left()
        self._end("time is up", 0)

    def _left(self) -> float:
        return self._moment + GRACE - time.monotonic()

    def _end(self, reason: str, code: int) -> None:
        if self._ending.acquire(blocking=False):
            os._exit(self._give_up(reason, code))


@contextmanager
def watched(
    moment: float, give_up: Callable[[str, int], int], *, own_process: bool
) -> Iterator[Callable[[], None]]:
    """End the process by `give_up` at a moment of the monotonic clock, or on SIGTERM.

    `give_up` takes a reason and an exit code, and returns the exit code. Yields a function to call
    when there is a verdict. If this is not our own process, nothing is watched.
    """
    # Windows cannot wait for a pipe.
    main = threading.current_thread() is threading.main_thread() and sys.platform != "win32"
    if not own_process or not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield lambda: None
        return
    watch = Watch(moment, give_up)
    before = signal.set_wakeup_fd(watch.signals, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        yield watch.conclude
    finally:
        watch.conclude()
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def saying_stopped(*, own_process: bool, saved: Path | None = None) -> Iterator[None]:
    """Say on standard error that SIGTERM has stopped the program, and which file holds the points
    so far; then end the process."""

    def give_up(reason: str, code: int) -> int:
        erase = b"\r\x1b[2K\x1b[?25h" if os.isatty(2) else b""  # the progress line, a hidden cursor
        kept = f"; {resumable(saved)}" if saved is not None and saved.exists() else ""
        os.write(2, erase + f"fgp-vnn: {reason}{kept}\n".encode())
        return code

    with watched(math.inf, give_up, own_process=own_process):
        yield


def resumable(path: Path) -> str:
    """Say which file holds the points that are done."""
    return f"{path} has these points; resume with --resume"
