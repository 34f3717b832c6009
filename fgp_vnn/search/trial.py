"""Two ways to bound the same boxes: which of them closes more boxes a second, by trial."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from fgp_vnn.base.reading import read
from fgp_vnn.search.boxes import BoundedBoxes

Bound = Callable[[], BoundedBoxes]


class Trial:
    """Both ways bound the first boxes; from then on only the better one does.

    What both of them close says nothing: the better way is the one that closes more boxes a second
    among the others, or the faster one where there are none.
    """

    def __init__(
        self,
        boxes: int,
        most: int,
        seconds: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """It lasts until so many boxes are closed by one way only, so many are bounded, or one way
        has taken so many seconds."""
        self._wanted, self._most, self._longest, self._clock = boxes, most, seconds, clock
        self._alone, self._seconds, self._seen = [0.0, 0.0], [0.0, 0.0], 0
        self._chosen: int | None = None

    def bound(self, first: Bound, second: Bound) -> BoundedBoxes:
        """What the chosen way makes of a batch, or both together where none is chosen yet."""
        if self._chosen is not None:
            return (first, second)[self._chosen]()
        found = []
        for way, bound in enumerate((first, second)):
            begin = self._clock()
            found.append(bound())
            read(found[-1].closed.sum())  # so that a device has done it
            self._seconds[way] += self._clock() - begin
        one, other = (bounded.closed for bounded in found)
        for way, number in enumerate(read((one & ~other).sum(), (other & ~one).sum())):
            self._alone[way] += number
        self._seen += len(one)
        ended = sum(self._alone) >= self._wanted or self._seen >= self._most
        if ended or max(self._seconds) >= self._longest:
            self._chosen = self._better()
        return _merged(*found)._replace(closed=one | other)

    def _better(self) -> int:
        (a, b), (s, t) = self._alone, self._seconds
        return int(b * s > a * t or (a == b == 0 and t < s))


def _merged(one: BoundedBoxes, other: BoundedBoxes) -> BoundedBoxes:
    """Where to halve each box, by the way whose bounds are greater."""
    behind = one.nominal.amin(-1) < other.nominal.amin(-1)
    pull = torch.where(behind.unsqueeze(-1), other.pull, one.pull)
    return one._replace(pull=pull)
