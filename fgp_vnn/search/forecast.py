"""How much work a search has left, by the rate at which its tree closes: the lesser of two lines.

*By what is open.* If d fewer parts are open after n more bounds, the line through both counts says
when none is. That is what a branching process is expected to do: where each half stays open with
chance q, each open part takes 2 / (1 - 2 q) more bounds, and 1 - 2 q is 2 d / n.

*By the lowest level.* A best-first search raises the lowest level of all that is open towards 0,
where nothing is, while about as much stays open. The work that a level takes grows with it as an
exponential, so the line goes through the logarithms of the bounds at two levels.

Measured on oval21 (img6767, 1847 bundles): after 943, 1281 and 1695 bundles the second line says
2500, 2200 and 1900 in all, while the first sees no end before 1600.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import NamedTuple

_MOST = 50.0  # an exponent beyond which no end is in sight
_AGES = 1e6  # seconds that nobody waits for


class _Count(NamedTuple):
    bounded: int
    open: int
    lowest: float
    moment: float


class Left(NamedTuple):
    """What is expected to be left; infinity where no end is in sight."""

    bounds: float
    seconds: float

    def __str__(self) -> str:
        if not self.seconds < _AGES:
            return "no end in sight"
        return f"about {self.bounds:.0f} more to bound in {self.seconds:.0f} s"


@dataclass(eq=False)
class Forecast:
    """Counts of a search, from its begin to now."""

    most: int = 256  # counts that are kept
    counts: list[_Count] = field(default_factory=list)

    def add(self, bounded: int, open_: int, lowest: float, moment: float | None = None) -> None:
        """Note how many parts have been bounded and how many are open by now, and the lowest level
        of these."""
        if self.counts and bounded == self.counts[-1].bounded:
            return
        if len(self.counts) >= self.most:
            del self.counts[1::2]
        now = time.monotonic() if moment is None else moment
        self.counts.append(_Count(bounded, open_, lowest, now))

    def left(self) -> Left:
        """What is left if the tree goes on closing as it did in the second half of the work."""
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
