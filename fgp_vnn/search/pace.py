"""How many records a search bounds at once on its device, found by a short measurement."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

_FASTER = 1.2  # factor of records per second that a batch twice as large has to gain to be kept
_WARM = 1  # full batches that are not measured: a device loads its programs in the first


class Pace:
    """The batch size: on a CPU the usual one; on another device it is doubled, up to what fits into
    the memory, as long as that clearly gains records per second."""

    def __init__(
        self,
        usual: int,
        fit: int,
        device: torch.device,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.size = min(usual, fit)
        self._most = self.size if device.type == "cpu" else fit
        self._clock, self._begin = clock, 0.0
        self._warm, self._rate = _WARM, 0.0

    def begin(self) -> None:
        """Start timing a batch."""
        self._begin = self._clock()

    def end(self, records: int) -> int:
        """End a batch of so many records, children included; returns the size of the next one."""
        if self.size >= self._most or records < self.size:
            return self.size
        if self._warm:
            self._warm -= 1
            return self.size
        rate = records / max(self._clock() - self._begin, 1e-9)
        if rate < _FASTER * self._rate:
            self._most = self.size
        else:
            self._rate, self.size = rate, min(2 * self.size, self._most)
        return self.size
