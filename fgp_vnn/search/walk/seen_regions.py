"""The set of regions seen so far, by their exact sign bits, on the device."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.base.reading import counts, first_places, places
from fgp_vnn.strategy import HashTable

WORD = 62  # sign bits per int64 word; the sign of the word itself is left alone
MARK = 1 << 62  # the bit above those of a word
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
    """Masks [neurons, words]: exclusive or with mask j flips sign bit j."""
    neuron = torch.arange(neurons, device=device)
    flips = torch.zeros(neurons, max(1, -(-neurons // WORD)), dtype=torch.int64, device=device)
    flips[neuron, neuron // WORD] = torch.ones_like(neuron) << neuron % WORD
    return flips


def _places(device: torch.device) -> Tensor:
    return torch.arange(WORD, device=device)


class SeenRegions:
    """A hash table with open addressing; it compares whole patterns, so no new one is missed."""

    def __init__(self, words: int, device: torch.device, numbers: HashTable) -> None:
        self._words, self._device, self._numbers = words, device, numbers
        self._count = 0
        self._few: set[tuple[int, ...]] | None = set()  # all patterns while they are few
        self._allocate(numbers.slots)

    def __len__(self) -> int:
        return self._count

    def fits(self, patterns: int, limit: int) -> bool:
        """Whether so many more patterns take at most `limit` bytes, even while the table grows."""
        slots = self._slots
        while 4 * (self._count + patterns) > slots:
            slots = self._grown(slots)
        held = 0 if slots == self._slots else self._slots
        return (slots + held) * 8 * (self._words + 1) <= limit

    def add(self, patterns: Tensor) -> Tensor:
        """Add packed patterns [patterns, words]; returns the positions of the new ones.

        A pattern that occurs several times is new at one of its positions only.
        """
        if self._few is not None:
            if self._count + len(patterns) <= self._numbers.few:
                return self._add_few(patterns, self._few)
            before = torch.tensor(list(self._few), dtype=torch.int64, device=self._device)
            self._few = None
            if len(before):
                self._insert(self._mark(before.reshape(-1, self._words)))
        while 4 * (self._count + len(patterns)) > self._slots:
            self._grow()
        fresh = self._insert(self._mark(patterns))
        self._count += len(fresh)
        return fresh

    def _add_few(self, patterns: Tensor, known: set[tuple[int, ...]]) -> Tensor:
        """The same with a plain set, which is faster than a table for a handful of patterns."""
        fresh = []
        for position, row in enumerate(patterns.tolist()):
            pattern = tuple(row)
            if pattern not in known:
                known.add(pattern)
                fresh.append(position)
        self._count += len(fresh)
        return torch.tensor(fresh, dtype=torch.int64, device=self._device)

    def _mark(self, patterns: Tensor) -> Tensor:
        """Patterns with one more bit set, so that none equals an empty slot; 1-D for one word."""
        if self._words == 1:
            return patterns[:, 0] | MARK
        marked = patterns.clone()
        marked[:, 0] |= MARK
        return marked

    def _insert(self, marked: Tensor) -> Tensor:
        """Insert marked patterns; returns the positions of those that were not there.

        Most patterns of a long walk are known, and most of those are found in their first slot. So
        there is room to try half of the patterns further, before it is read how many these are.
        """
        slot = self._hash(marked)
        waiting = ~_same(self._table[slot], marked)
        room = max(-(-len(marked) // 2), min(len(marked), self._numbers.whole))
        at = first_places(waiting, room)
        open_ = torch.arange(room, device=self._device) < waiting.sum()
        marked_part, slot, won = marked[at], slot[at], list[Tensor]()
        while True:
            fresh, open_, slot = self._try(marked_part, slot, open_)
            new, left, every = counts(fresh, open_, waiting)
            won.append(at[places(fresh, new)])
            if not left:
                break
            again = places(open_, left)
            at, marked_part, slot = at[again], marked_part[again], slot[again]
            open_ = torch.ones_like(again, dtype=torch.bool)
        if every > room:
            rest = places(waiting, every)[room:]
            won.append(rest[self._insert(marked[rest])])
        return torch.cat(won) if len(won) > 1 else won[0]

    def _try(self, marked: Tensor, slot: Tensor, open_: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Try a few slots for the open patterns. Returns which ones were inserted, which ones are
        still open, and the slots to try next."""
        number, fresh = torch.arange(len(marked), device=self._device), torch.zeros_like(open_)
        for _ in range(self._numbers.tries):
            claims = open_ & self._is_free(slot)
            # One of the patterns that claim a slot gets it; the others write to the spare slot.
            self._owner[torch.where(claims, slot, self._slots)] = number
            winners = claims & (self._owner[slot] == number)
            self._table[torch.where(winners, slot, self._slots)] = marked
            fresh = fresh | winners
            open_ = open_ & ~_same(self._table[slot], marked)
            slot = torch.where(open_, (slot + 1) & (self._slots - 1), slot)
        return fresh, open_, slot

    def _hash(self, marked: Tensor) -> Tensor:
        words = [marked] if self._words == 1 else list(marked.unbind(1))
        mixed = torch.zeros_like(words[0])
        for position, word in enumerate(words):
            mixed = (mixed ^ word) * _MIX[position % len(_MIX)]
            mixed = mixed ^ (mixed >> 29)
        return mixed & (self._slots - 1)

    @property
    def _slots(self) -> int:
        return len(self._owner) - 1

    def _is_free(self, slots: Tensor) -> Tensor:
        held = self._table[slots]
        return (held if self._words == 1 else held[:, 0]) == 0

    def _allocate(self, slots: int) -> None:
        """Create an empty table, with a spare last slot that is written to but never read."""
        shape = (slots + 1,) if self._words == 1 else (slots + 1, self._words)
        self._table = torch.zeros(shape, dtype=torch.int64, device=self._device)
        self._owner = torch.empty(slots + 1, dtype=torch.int64, device=self._device)

    def _grow(self) -> None:
        table = self._table[:-1]
        old = table[places((table if self._words == 1 else table[:, 0]) != 0, self._count)]
        self._allocate(self._grown(self._slots))
        if len(old):
            self._insert(old)

    def _grown(self, slots: int) -> int:
        return slots * (4 if slots < self._numbers.large else 2)


def _same(held: Tensor, wanted: Tensor) -> Tensor:
    equal = held == wanted
    return equal if equal.dim() == 1 else equal.all(-1)
