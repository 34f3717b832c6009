"""The open bundles of a search: a pool of equally shaped records, taken lowest bound first."""

from __future__ import annotations

import torch
from torch import Tensor


class Frontier:
    """Records of named tensors [records, ...] with a key each; grows as needed.

    Past `limit` bytes it hands out the latest records instead of the lowest: depth first, so that
    it stops growing.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._size = 0
        self._fields: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return self._size

    @property
    def lowest(self) -> float:
        """The lowest key, or infinity if the frontier is empty."""
        return float(self._fields["key"][: self._size].min()) if self._size else float("inf")

    def push(self, key: Tensor, **fields: Tensor) -> None:
        """Add records with these keys [records]; NaN counts as the lowest."""
        count = len(key)
        if not count:
            return
        parts = {"key": torch.where(key.isnan(), -torch.inf, key), **fields}
        if not self._fields:
            self._fields = {n: t.new_empty((0, *t.shape[1:])) for n, t in parts.items()}
        needed = self._size + count
        for name, part in parts.items():
            held = self._fields[name]
            if needed > len(held):
                grown = held.new_empty((self._room(needed, len(held)), *held.shape[1:]))
                grown[: self._size] = held[: self._size]
                self._fields[name] = held = grown
            held[self._size : needed] = part
        self._size = needed

    def put(self, records: dict[str, Tensor]) -> None:
        """Add records that were taken out of this frontier, or of one like it."""
        if records:
            self.push(**records)

    def pop(self, count: int) -> dict[str, Tensor]:
        """Take up to `count` records out: the lowest, or the latest when memory runs short."""
        count = min(count, self._size)
        if self.bytes > self.limit:
            device = self._fields["key"].device
            return self.take(torch.arange(self._size - count, self._size, device=device))
        return self.take(self._fields["key"][: self._size].topk(count, largest=False).indices)

    def part(self, ways: int) -> dict[str, Tensor]:
        """Take out every `ways`-th record in order of keys, from the lowest to the highest."""
        order = self._fields["key"][: self._size].argsort()
        return self.take(order[ways - 1 :: ways])

    def take(self, chosen: Tensor) -> dict[str, Tensor]:
        """Take out the records at these positions."""
        taken = {name: held[chosen] for name, held in self._fields.items()}
        self._remove(chosen)
        return taken

    def everything(self) -> dict[str, Tensor]:
        """All records; they stay in the frontier."""
        return {name: held[: self._size] for name, held in self._fields.items()}

    def _remove(self, chosen: Tensor) -> None:
        """Fill the holes with the records at the end.

        Among the positions from `kept` on, as many were not chosen as there are holes before
        `kept`. These come first in both lists; later copies lie beyond the new end.
        """
        count = len(chosen)
        kept = self._size - count
        holes = chosen.sort().values
        taken = torch.zeros(count + 1, dtype=torch.int8, device=chosen.device)
        taken = taken.index_fill(0, (holes - kept).clamp(min=-1) + 1, 1)  # entry 0: holes before
        movers = taken[1:].argsort(stable=True) + kept
        for held in self._fields.values():
            held[holes] = held[movers]
        self._size = kept

    def _room(self, needed: int, held: int) -> int:
        """New capacity: twice the old one, but near the limit only a little more than needed."""
        return max(needed, 2 * held, 1024) if 2 * self.bytes <= self.limit else needed + 1024

    @property
    def bytes(self) -> int:
        """The memory of all records."""
        fields = self._fields.values()
        return self._size * sum(held.stride(0) * held.element_size() for held in fields)
