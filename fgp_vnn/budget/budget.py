"""Time and memory limits."""

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
LEAST = 64 << 20  # bytes: the smallest memory budget, even if a lower limit was given


@dataclass(frozen=True)
class Budget:
    """A deadline and a memory limit, passed to every function that loops or allocates."""

    moment: float  # of the deadline, on the monotonic clock; infinity for none
    memory: int  # bytes

    @classmethod
    def of(
        cls, seconds: float | None, gigabytes: float | None, *, since: float | None = None
    ) -> Budget:
        """Budget of `seconds` from now, or from the earlier time `since`; None: no deadline.

        `gigabytes` limits the whole process, so its current use is subtracted; None: half of the
        free memory.
        """
        begin = time.monotonic() if since is None else since
        if gigabytes is None:
            memory = host.free_memory() // 2
        else:
            memory = int(min(gigabytes * GIGABYTE, sys.maxsize)) - host.held_memory()
        return cls(math.inf if seconds is None else begin + seconds, max(LEAST, memory))

    def __reduce__(self) -> tuple[Callable[[float, int], Budget], tuple[float, int]]:
        """Pickle the remaining seconds, because another process may have another clock."""
        return _arrived, (self.left(), self.memory)

    def left(self) -> float:
        """Remaining seconds; negative after the deadline."""
        return self.moment - time.monotonic()

    def known_left(self) -> float | None:
        """Remaining seconds for a message; None if there is no deadline."""
        return None if self.moment == math.inf else self.left()

    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.left() <= 0

    def share(self, part: float) -> Budget:
        """A fraction `part` of the remaining time and all of the memory, since steps run one after
        another."""
        left = COMMON.usual if self.moment == math.inf else max(self.left(), 0.0)
        return replace(self, moment=time.monotonic() + part * left)

    def beside(self, held: int) -> Budget:
        """The same deadline, with the memory reduced by `held` bytes that stay allocated."""
        return replace(self, memory=max(LEAST, self.memory - held))

    @property
    def at_once(self) -> int:
        """Bytes for one batch: bounds, gradient ascents, affine forms, points of an attack."""
        return self.memory // 2

    @property
    def waiting(self) -> int:
        """Bytes for queues and sets: open bundles and boxes, queued and visited regions.

        The rest is for one batch and the matrices of a collapsed network.
        """
        return self.memory // 4

    @property
    def matrices(self) -> int:
        """Bytes for the matrices of a collapsed network."""
        return self.memory // 4


def _arrived(seconds: float, memory: int) -> Budget:
    return Budget(time.monotonic() + seconds, memory)


UNLIMITED = Budget(math.inf, sys.maxsize)  # for work that is known to be small


def check_seconds(timeout: float | None) -> float | None:
    """The time limit as a float, or None; raises InputError if it is not a positive number."""
    if timeout is None:
        return None
    if not isinstance(timeout, (int, float)) or not timeout > 0:
        raise InputError(f"the timeout is {timeout!r}; it must be a positive number of seconds")
    return float(timeout)
