"""The set of regions that have been seen, by their exact sign bits, on the device."""

from __future__ import annotations

import torch
from torch import Tensor

WORD = 62  # sign bits per int64 word; the sign of the word itself is left alone
FEW = 256  # patterns up to which a plain set is quicker than the table
_MIX = (-7046029254386353131, -4417276706812531889, 6364136223846793005)  # odd 64-bit constants


def pack(bits: Tensor) -> Tensor:
    """Sign bits [patterns, neurons] as int64 words [patterns, words]."""
    patterns, neurons = bits.shape
    words = max(1, -(-neurons // WORD))
    padded = torch.zeros(patterns, words * WORD, dtype=torch.int64, device=bits.device)
    padded[:, :neurons] = bits
    return (padded.view(patterns, words, WORD) << _places(bits.device)).sum(-1)


def unpack(words: Tensor, neurons: int) -> Tensor:
    """The sign bits [patterns, neurons], as booleans, of packed words."""
    bits = (words.unsqueeze(-1) >> _places(words.device)) & 1
    return bits.flatten(1)[:, :neurons].bool()


def flip_words(neurons: int, device: torch.device) -> Tensor:
    """Row j [words] flips sign bit j by exclusive or; [neurons, words]."""
    return pack(torch.eye(neurons, dtype=torch.bool, device=device))


def _places(device: torch.device) -> Tensor:
    return torch.arange(WORD, device=device)


class Visited:
    """A hash table with open addressing; whole patterns are compared, so nothing is ever missed."""

    def __init__(self, words: int, device: torch.device, *, slots: int = 1 << 12) -> None:
        self._words, self._device = words, device
        self._count = 0
        self._few: set[tuple[int, ...]] | None = set()  # all patterns while they are few
        self._table = torch.zeros(slots, words, dtype=torch.int64, device=device)
        self._owner = torch.full((slots,), -1, dtype=torch.int64, device=device)

    def __len__(self) -> int:
        return self._count

    def add(self, patterns: Tensor) -> Tensor:
        """Put packed patterns [patterns, words] in; gives the positions of those that are new.

        A pattern that occurs several times is new at one of its positions only.
        """
        if self._few is not None:
            if self._count + len(patterns) <= FEW:
                return self._add_few(patterns, self._few)
            before = torch.tensor(list(self._few), dtype=torch.int64, device=self._device)
            self._few = None
            if len(before):
                self._insert(before.reshape(-1, self._words))
        while 2 * (self._count + len(patterns)) > len(self._table):
            self._grow()
        fresh = self._insert(patterns)
        self._count += len(fresh)
        return fresh

    def _add_few(self, patterns: Tensor, known: set[tuple[int, ...]]) -> Tensor:
        """A plain set is quicker than a table for a handful of patterns."""
        fresh = []
        for position, row in enumerate(patterns.tolist()):
            pattern = tuple(row)
            if pattern not in known:
                known.add(pattern)
                fresh.append(position)
        self._count += len(fresh)
        return torch.tensor(fresh, dtype=torch.int64, device=self._device)

    def _insert(self, patterns: Tensor) -> Tensor:
        slot = self._hash(patterns)
        waiting = torch.arange(len(patterns), device=self._device)
        won: list[Tensor] = []
        while len(waiting):
            at = slot[waiting]
            free = self._owner[at] < 0
            claims, places = waiting[free], at[free]
            self._owner[places] = claims  # one of those that claim a slot gets it
            winners = self._owner[places] == claims
            self._table[places[winners]] = patterns[claims[winners]]
            won.append(claims[winners])
            known = (self._table[at] == patterns[waiting]).all(-1)
            waiting = waiting[~known]
            slot[waiting] = (slot[waiting] + 1) & (len(self._table) - 1)
        return torch.cat(won) if won else waiting

    def _hash(self, patterns: Tensor) -> Tensor:
        mixed = torch.zeros(len(patterns), dtype=torch.int64, device=self._device)
        for word in range(self._words):
            mixed = (mixed ^ patterns[:, word]) * _MIX[word % len(_MIX)]
            mixed = mixed ^ (mixed >> 29)
        return mixed & (len(self._table) - 1)

    def _grow(self) -> None:
        old = self._table[self._owner >= 0]
        slots = 4 * len(self._table)
        self._table = torch.zeros(slots, self._words, dtype=torch.int64, device=self._device)
        self._owner = torch.full((slots,), -1, dtype=torch.int64, device=self._device)
        if len(old):
            self._insert(old)
