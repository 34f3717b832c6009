"""The time and the memory that some work may take."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from fgp_vnn.base.errors import InputError
from fgp_vnn.budget import host
from fgp_vnn.strategy import COMMON

GIGABYTE = 1 << 30
LEAST = 64 << 20  # bytes that the work gets, however little was said


@dataclass(frozen=True)
class Budget:
    """A deadline and bytes of memory together: handed on to whatever loops or grows."""

    moment: float  # of the deadline, on the monotonic clock; infinity for none
    memory: int  # bytes

    @classmethod
    def of(
        cls, seconds: float | None, gigabytes: float | None, *, since: float | None = None
    ) -> Budget:
        """Seconds from now, or from a moment before; no deadline where none are given.

        Gigabytes are for the whole process, which holds some of them already; where none are
        given, the work may take half of the free memory.
        """
        begin = time.monotonic() if since is None else since
        if gigabytes is None:
            memory = host.free_memory() // 2
        else:
            memory = int(min(gigabytes * GIGABYTE, sys.maxsize)) - host.held_memory()
        return cls(math.inf if seconds is None else begin + seconds, max(LEAST, memory))

    def __reduce__(self) -> tuple[Callable[[float, int], Budget], tuple[float, int]]:
        """A copy in another process has the seconds that are left: its clock may be another one."""
        return _arrived, (self.left(), self.memory)

    def left(self) -> float:
        """Seconds; below 0 when the deadline has passed."""
        return self.moment - time.monotonic()

    def known_left(self) -> float | None:
        """The same for a message; None where there is no deadline."""
        return None if self.moment == math.inf else self.left()

    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.left() <= 0

    def share(self, part: float) -> Budget:
        """A part of the time that is left, and all of the memory: steps come one by one."""
        left = COMMON.usual if self.moment == math.inf else max(self.left(), 0.0)
        return replace(self, moment=time.monotonic() + part * left)

    def beside(self, held: int) -> Budget:
        """The same time, and the memory without bytes that are held meanwhile."""
        return replace(self, memory=max(LEAST, self.memory - held))

    @property
    def at_once(self) -> int:
        """Bytes for one batch: bounds, ascents, forms, points of an attack."""
        return self.memory // 2

    @property
    def waiting(self) -> int:
        """Bytes for queues and memories: open bundles and boxes, regions queued and seen.

        What is held beside it takes the rest: a batch, and the matrices of a collapsed network.
        """
        return self.memory // 4

    @property
    def matrices(self) -> int:
        """Bytes for the matrices of a collapsed network."""
        return self.memory // 4


def _arrived(seconds: float, memory: int) -> Budget:
    return Budget(time.monotonic() + seconds, memory)


UNLIMITED = Budget(math.inf, sys.maxsize)  # for what is known to be small


def check_seconds(timeout: float | None) -> float | None:
    """The seconds of a time limit; raises InputError where they are no positive number."""
    if timeout is None:
        return None
    if not isinstance(timeout, (int, float)) or not timeout > 0:
        raise InputError(f"the timeout is {timeout!r}; it must be a positive number of seconds")
    return float(timeout)
