"""The pool of open records against a sorted list."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgp_vnn.search.frontier import Frontier

ENOUGH = 1 << 30


def push(frontier: Frontier, keys: list[float], names: list[int]) -> None:
    name = torch.tensor(names)
    frontier.push(
        torch.tensor(keys, dtype=torch.float64), name=name, wide=name.unsqueeze(1).expand(-1, 3)
    )


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 7), st.integers(0, 1000)), min_size=1, max_size=25
    )
)
def test_the_lowest_records_come_out_whole(steps: list[tuple[bool, int, int]]) -> None:
    frontier = Frontier(ENOUGH)
    held: dict[int, float] = {}
    for put, count, seed in steps:
        if put:
            names = list(range(1000 * seed + len(held), 1000 * seed + len(held) + count))
            names = [n for n in names if n not in held]
            keys = [float((n * 7919) % 31) for n in names]
            push(frontier, keys, names)
            held |= dict(zip(names, keys, strict=True))
        elif len(frontier):
            lowest = sorted(held.values())[: min(count, len(held))]
            taken = frontier.pop(count)
            assert sorted(taken["key"].tolist()) == lowest
            for key, name, wide in zip(*(taken[n].tolist() for n in taken), strict=True):
                assert held.pop(name) == key
                assert wide == [name] * 3
        assert len(frontier) == len(held)
        assert frontier.lowest == min(held.values(), default=float("inf"))


def test_it_grows_past_its_first_size() -> None:
    frontier = Frontier(ENOUGH)
    for part in range(5):
        push(frontier, [float(i) for i in range(900)], list(range(900 * part, 900 * (part + 1))))
    assert len(frontier) == 4500
    taken = frontier.pop(4500)
    assert sorted(taken["name"].tolist()) == list(range(4500))
    assert len(frontier) == 0


def test_past_its_budget_it_hands_out_the_latest() -> None:
    frontier = Frontier(100)  # two records of 40 bytes fit, three do not
    push(frontier, [1.0, 2.0, 3.0, 4.0], [1, 2, 3, 4])
    assert frontier.pop(2)["name"].tolist() == [3, 4]
    push(frontier, [9.0], [9])
    assert frontier.pop(1)["name"].tolist() == [9]
    assert frontier.pop(1)["name"].tolist() == [1]  # within the budget again: the lowest


@pytest.mark.parametrize("count", [0, 3, 10])
def test_no_more_is_taken_than_there_is(count: int) -> None:
    frontier = Frontier(ENOUGH)
    push(frontier, [2.0, 1.0, 3.0], [2, 1, 3])
    assert len(frontier.pop(count)["key"]) == min(count, 3)
    assert len(frontier) == 3 - min(count, 3)


def test_pushing_nothing_changes_nothing() -> None:
    frontier = Frontier(ENOUGH)
    push(frontier, [], [])
    assert len(frontier) == 0
    assert frontier.lowest == float("inf")


def test_a_key_that_is_no_number_comes_first_and_is_no_bound() -> None:
    frontier = Frontier(ENOUGH)
    push(frontier, [1.0, math.nan, -2.0, math.inf], [1, 2, 3, 4])
    assert frontier.lowest == -math.inf
    assert frontier.pop(1)["name"].tolist() == [2]
    assert frontier.lowest == -2.0


def test_everything_can_be_looked_at_again_and_again() -> None:
    frontier = Frontier(ENOUGH)
    push(frontier, [3.0, 1.0, 2.0], [7, 8, 9])
    frontier.pop(1)
    for _ in range(2):
        assert sorted(frontier.everything()["name"].tolist()) == [7, 9]
    assert len(frontier) == 2


@given(st.integers(0, 40), st.integers(1, 5))
def test_a_part_has_low_and_high_records_alike(count: int, ways: int) -> None:
    frontier = Frontier(ENOUGH)
    push(
        frontier, [float((n * 7919) % 31) for n in range(max(count, 1))], list(range(max(count, 1)))
    )
    held, names = len(frontier), list[int]()
    for left in range(ways, 0, -1):
        before = frontier.everything()["key"].sort().values if len(frontier) else torch.zeros(0)
        taken = frontier.part(left)
        assert taken["key"].sort().values.tolist() == before[left - 1 :: left].tolist()
        names += taken["name"].tolist()
    assert sorted(names) == list(range(held)) and not len(frontier)
