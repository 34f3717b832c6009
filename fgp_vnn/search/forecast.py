"""How much work a search has left, by the rate at which its tree closes.

A step bounds both halves of what it takes, and leaves open those that it does not close. If each
half stays open with chance q, what is open is expected to take 2 / (1 - 2 q) more bounds each. Of
n bounds in which the number of open parts has fallen by d, 1 - 2 q is 2 d / n: the work left is the
straight line through these two counts, followed to where nothing is open. Where they do not fall,
no end is in sight.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import NamedTuple


class _Count(NamedTuple):
    bounded: int
    open: int
    moment: float


class Left(NamedTuple):
    """What is expected to be left; infinity where no end is in sight."""

    bounds: float
    seconds: float

    def __str__(self) -> str:
        if self.bounds == math.inf:
            return "no end in sight"
        return f"about {self.bounds:.0f} more to bound in {self.seconds:.0f} s"


@dataclass(eq=False)
class Forecast:
    """Counts of a search, from its begin to now."""

    most: int = 256  # counts that are kept
    counts: list[_Count] = field(default_factory=list)

    def add(self, bounded: int, open_: int, moment: float | None = None) -> None:
        """Note how many parts have been bounded, and how many are open, by now."""
        if self.counts and bounded == self.counts[-1].bounded:
            return
        if len(self.counts) >= self.most:
            del self.counts[1::2]
        now = time.monotonic() if moment is None else moment
        self.counts.append(_Count(bounded, open_, now))

    def left(self) -> Left:
        """What is left if the tree goes on closing as it did in the second half of the work."""
        if not self.counts or not self.counts[-1].open:
            return Left(0.0, 0.0)
        now = self.counts[-1]
        before = [count for count in self.counts if count.bounded <= now.bounded / 2]
        if not before or before[-1].open <= now.open:
            return Left(math.inf, math.inf)
        then = before[-1]
        more = now.open / (then.open - now.open)
        return Left(more * (now.bounded - then.bounded), more * (now.moment - then.moment))
