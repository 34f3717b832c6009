"""Forecast of the work a search has left: the lesser of two linear extrapolations.

*By the number open.* If d fewer parts are open after n more bounds, the line through both counts
tells when none will be. This is the expectation of a branching process: where each child stays open
with probability q, each open part takes 2 / (1 - 2 q) more bounds, and 1 - 2 q is 2 d / n.

*By the lowest level.* A best-first search raises the lowest open level towards 0, where the search
ends, while the number open stays about the same. The work to reach a level grows exponentially with
it, so the line goes through the logarithms of the numbers of bounds at two levels.

Measured on oval21 (img6767, 1847 bundles): after 943, 1281 and 1695 bundles the second line
predicts 2500, 2200 and 1900 in all, while the first predicts no end before 1600.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import NamedTuple

_MOST = 50.0  # an exponent beyond which no end is in sight
_AGES = 1e6  # seconds beyond which a forecast is useless


class _Count(NamedTuple):
    bounded: int
    open: int
    lowest: float
    moment: float


class Left(NamedTuple):
    """The work expected to be left; infinity where no end is in sight."""

    bounds: float
    seconds: float

    @property
    def in_sight(self) -> bool:
        """Whether there is an end to wait for."""
        return self.seconds < _AGES

    def __str__(self) -> str:
        if not self.in_sight:
            return "no end in sight"
        return f"about {self.bounds:.0f} more to bound in {self.seconds:.0f} s"


@dataclass(eq=False)
class Forecast:
    """Counts of a search, from its start to now."""

    most: int = 256  # counts to keep
    counts: list[_Count] = field(default_factory=list)

    def add(self, bounded: int, open_: int, lowest: float, moment: float | None = None) -> None:
        """Record how many parts have been bounded, how many are now open, and the lowest level of
        the open ones."""
        if self.counts and bounded == self.counts[-1].bounded:
            return
        if len(self.counts) >= self.most:
            del self.counts[1::2]
        now = time.monotonic() if moment is None else moment
        self.counts.append(_Count(bounded, open_, lowest, now))

    def left(self) -> Left:
        """The work left if the tree keeps closing as it did in the second half of the work."""
        if not self.counts or not self.counts[-1].open:
            return Left(0.0, 0.0)
        now = self.counts[-1]
        before = [count for count in self.counts if count.bounded <= now.bounded / 2]
        if not before:
            return Left(math.inf, math.inf)
        then = before[-1]
        more = min(_by_open(then, now), _by_level(then, now))
        rate = (now.moment - then.moment) / (now.bounded - then.bounded)
        return Left(more, more * rate)


def _by_open(then: _Count, now: _Count) -> float:
    fallen = then.open - now.open
    return now.open / fallen * (now.bounded - then.bounded) if fallen > 0 else math.inf


def _by_level(then: _Count, now: _Count) -> float:
    risen = now.lowest - then.lowest
    if not then.bounded or not 0 < risen < math.inf or not now.lowest < 0:
        return math.inf
    exponent = -now.lowest / risen * math.log(now.bounded / then.bounded)
    return now.bounded * math.expm1(exponent) if exponent < _MOST else math.inf
