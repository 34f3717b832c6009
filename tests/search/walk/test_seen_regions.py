"""The set of visited regions against a Python set."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgp_vnn.search.walk.seen_regions import SeenRegions, flip_words, pack, unpack
from fgp_vnn.strategy import HashTable

CPU = torch.device("cpu")
NEURONS = [0, 1, 5, 61, 62, 63, 64, 124, 125, 130, 200]


def bits(count: int, neurons: int, seed: int, *, distinct: int | None = None) -> torch.Tensor:
    """Random patterns; with `distinct`, drawn from so many."""
    source = torch.Generator().manual_seed(seed)
    pool = torch.rand(distinct or count, neurons, generator=source) < 0.5
    return pool[torch.randint(len(pool), (count,), generator=source)] if distinct else pool


def key(pattern: torch.Tensor) -> tuple[bool, ...]:
    return tuple(pattern.tolist())


@pytest.mark.parametrize("neurons", NEURONS)
def test_packing_loses_nothing(neurons: int) -> None:
    patterns = bits(50, neurons, neurons)
    assert torch.equal(unpack(pack(patterns), neurons), patterns)


@pytest.mark.parametrize("neurons", [1, 62, 63, 125])
def test_packing_keeps_the_extremes_apart(neurons: int) -> None:
    patterns = torch.stack([torch.zeros(neurons).bool(), torch.ones(neurons).bool()])
    words = pack(patterns)
    assert not torch.equal(words[0], words[1])
    assert torch.equal(unpack(words, neurons), patterns)


@pytest.mark.parametrize("neurons", [1, 61, 62, 63, 124, 125, 200])
def test_flipping_a_word_flips_that_neuron_alone(neurons: int) -> None:
    pattern = bits(1, neurons, 3)
    flipped = unpack(pack(pattern) ^ flip_words(neurons, CPU), neurons)  # [neurons, neurons]
    assert torch.equal(flipped ^ pattern, torch.eye(neurons, dtype=torch.bool))


@given(
    st.integers(1, 140),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), max_size=8),
    st.integers(0, 1000),
)
def test_it_agrees_with_a_set(neurons: int, batches: list[tuple[int, int]], seed: int) -> None:
    """Batches with repetitions, within a batch and between batches, in a table that has to grow."""
    known: set[tuple[bool, ...]] = set()
    visited = SeenRegions(pack(bits(1, neurons, 0)).shape[1], CPU, HashTable(slots=8))
    for count, distinct in batches:
        patterns = bits(count, neurons, seed, distinct=distinct)
        fresh = visited.add(pack(patterns))
        found = [key(patterns[i]) for i in fresh.tolist()]
        assert len(set(found)) == len(found)
        assert set(found) == {key(p) for p in patterns} - known
        known |= set(found)
        assert len(visited) == len(known)


@pytest.mark.parametrize("neurons", [20, 70, 130])
def test_nothing_is_forgotten_when_the_table_grows(neurons: int) -> None:
    visited = SeenRegions(pack(bits(1, neurons, 0)).shape[1], CPU, HashTable(slots=4))
    first = pack(bits(3000, neurons, 1))
    count = len({tuple(row) for row in first.tolist()})
    assert len(visited.add(first)) == count
    assert len(visited.add(pack(bits(9000, neurons, 2)))) > 0
    assert len(visited.add(first)) == 0


def test_patterns_that_differ_in_one_neuron_are_all_kept() -> None:
    """Neighbours of neighbours are what a walk asks about; a hash that mixes badly merges them."""
    neurons = 130
    flips = flip_words(neurons, CPU)
    pairs = (flips.unsqueeze(0) ^ flips.unsqueeze(1)).flatten(0, 1)
    visited = SeenRegions(flips.shape[1], CPU, HashTable())
    assert len(visited.add(pairs)) == neurons * (neurons - 1) // 2 + 1


def test_patterns_with_the_same_hash_slot_are_told_apart() -> None:
    visited = SeenRegions(1, CPU, HashTable(slots=1))
    words = torch.arange(500).unsqueeze(1)
    assert len(visited.add(words)) == 500
    assert len(visited.add(words.flip(0))) == 0
    assert len(visited) == 500


def test_no_pattern_and_no_neuron_are_fine() -> None:
    visited = SeenRegions(1, CPU, HashTable())
    nothing = torch.zeros(1, 0, dtype=torch.bool)
    assert visited.add(pack(nothing)).tolist() == [0]
    assert visited.add(pack(nothing)).tolist() == []
    assert visited.add(torch.zeros(0, 1, dtype=torch.int64)).tolist() == []
    assert flip_words(0, CPU).shape == (0, 1)
