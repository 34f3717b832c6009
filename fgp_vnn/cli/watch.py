"""The end of a run from outside: SIGTERM, or a deadline that the search has missed.

Python handles a signal between two instructions of its own, and inside a kernel the next one may be
seconds away. But the signal's number is in a pipe at once, and a thread that waits there can end
the process: torch's kernels let other threads run.
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

from fgp_vnn.base.threads import start_watching

GRACE = 0.1  # seconds past the deadline in which the search may still end by itself
STOPPED = 143  # exit code after SIGTERM


class Watch:
    """Ends the process by `give_up(reason, exit code)`, unless its own end has begun."""

    def __init__(self, moment: float, give_up: Callable[[str, int], int]) -> None:
        self._moment, self._give_up = moment, give_up
        self._ending, self._concluded = threading.Lock(), False
        self.wake, self.signals = os.pipe()
        os.set_blocking(self.signals, False)
        start_watching("deadline", self._wait)

    def conclude(self) -> None:
        """Mark that the verdict is being printed: from now on the process ends by itself."""
        if not self._concluded:
            self._ending.acquire()  # for ever, if the thread was first: it ends the process
            self._concluded = True

    def _wait(self) -> None:
        left = self._left()
        while left > 0:
            wait = None if left == math.inf else left
            if select.select([self.wake], [], [], wait)[0]:
                numbers = os.read(self.wake, 64)
                if signal.SIGINT in numbers:
                    return  # its own handler ends the process
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
    """Let `give_up` have the last word at a moment of the monotonic clock, or when SIGTERM comes.

    It gets a reason and an exit code, and gives the exit code. What is yielded is to be called when
    the verdict is there. A process that is not our own is not watched, and never ended.
    """
    # On Windows no pipe can be waited for.
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
