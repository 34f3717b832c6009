"""A trial of two ways to bound the same boxes: which of them closes more boxes per second."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from fgp_vnn.base.reading import read
from fgp_vnn.search.boxes import BoundedBoxes

Bound = Callable[[], BoundedBoxes]


class Trial:
    """Both ways bound the first boxes; from then on only the better one does.

    Boxes that both close do not count. The better way is the one that closes more of the others per
    second, or the faster one if neither closes any of them.
    """

    def __init__(
        self,
        boxes: int,
        most: int,
        seconds: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """The trial lasts until `boxes` boxes are closed by one way only, `most` are bounded, or
        one way has taken `seconds` seconds."""
        self._wanted, self._most, self._longest, self._clock = boxes, most, seconds, clock
        self._alone, self._seconds, self._seen = [0.0, 0.0], [0.0, 0.0], 0
        self._chosen: int | None = None

    def bound(self, first: Bound, second: Bound) -> BoundedBoxes:
        """Bound a batch by the chosen way, or by both together while none is chosen."""
        if self._chosen is not None:
            return (first, second)[self._chosen]()
        found = []
        for way, bound in enumerate((first, second)):
            begin = self._clock()
            found.append(bound())
            read(found[-1].closed.sum())  # waits for the device
            self._seconds[way] += self._clock() - begin
        one, other = (bounded.closed for bounded in found)
        for way, number in enumerate(read((one & ~other).sum(), (other & ~one).sum())):
            self._alone[way] += number
        self._seen += len(one)
        ended = sum(self._alone) >= self._wanted or self._seen >= self._most
        if ended or max(self._seconds) >= self._longest:
            self._chosen = self._better()
        a, b = found
        # Split scores of the way whose bounds are greater in each box.
        behind = (a.nominal.amin(-1) < b.nominal.amin(-1)).unsqueeze(-1)
        return a._replace(pull=torch.where(behind, b.pull, a.pull), closed=one | other)

    def _better(self) -> int:
        (a, b), (s, t) = self._alone, self._seconds
        return int(b * s > a * t or (a == b == 0 and t < s))
