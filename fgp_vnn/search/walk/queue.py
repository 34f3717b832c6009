"""The patterns that wait for the walk, first come first served."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor


class PatternQueue:
    """Packed patterns [patterns, words] in chunks, handed out in batches."""

    def __init__(self, start: Tensor) -> None:
        self._chunks: deque[Tensor] = deque([start])
        self._size, self._words = start.shape

    def __len__(self) -> int:
        return self._size

    @property
    def bytes(self) -> int:
        """The memory of the patterns that wait."""
        return self._size * self._words * 8

    def put(self, patterns: Tensor) -> None:
        """Add patterns [patterns, words] at the end."""
        self._chunks.append(patterns)
        self._size += len(patterns)

    def take(self, count: int) -> Tensor:
        """The first patterns [at most count, words]."""
        taken: list[Tensor] = []
        while self._chunks and count > 0:
            chunk = self._chunks.popleft()
            taken.append(chunk[:count])
            if len(chunk) > count:
                self._chunks.appendleft(chunk[count:])
            count -= len(taken[-1])
            self._size -= len(taken[-1])
        return taken[0] if len(taken) == 1 else torch.cat(taken)
