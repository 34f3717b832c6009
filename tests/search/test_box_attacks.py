"""Attacks between batches of boxes: where they start, how far they reach, and when."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.box_attacks import BoxAttacks
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.inputs import InputSplits
from fgp_vnn.strategy import Attack, Descent, Offer, Strategy
from tests.helpers.random_networks import random_domain, random_network

# Every point is handed over.
ALL = Offer(near=torch.inf, most=10_000)


def sums(disjuncts: int = 1) -> Query:
    """Whether x_0 + x_1 can be at most -3, or so many times that, on [-1, 1]^2: it cannot."""
    side = torch.ones(2, dtype=torch.float64)
    network = Network((), Dense((0,), (side.unsqueeze(0),), side.new_zeros(1)), 2)
    limits = [np.array([-3.0 - d]) for d in range(disjuncts)]
    return ask(
        network,
        Box(-side, side),
        [Conjunction(np.array([[1.0]]), limit, np.array([False])) for limit in limits],
    )


def corners() -> Frontier:
    """Two small boxes in opposite corners; the lower one in level is that at (-1, -1)."""
    frontier = Frontier(1 << 20)
    lower = torch.tensor([[-1.0, -1.0], [0.9, 0.9]], dtype=torch.float64)
    frontier.push(torch.tensor([-9.0, -1.0]), lower=lower, upper=lower + 0.1)
    return frontier


class Seen:
    """A judge that refuses everything and keeps what it was shown."""

    def __init__(self) -> None:
        self.batches: list[Tensor] = []

    def __call__(self, points: Tensor) -> Counterexample | None:
        self.batches.append(points)
        return None


def attack(steps: int = 0, *, pause: int = 256, part: float = 0.0, reach: float = 0.03) -> Attack:
    descent = Descent(steps=steps, offer=ALL)
    return Attack(in_boxes=descent, box_pause=pause, box_part=part, box_reach=reach)


def test_starts_lie_in_all_open_boxes_whatever_their_level() -> None:
    seen = Seen()
    BoxAttacks(sums(), seen, attack()).after(256, corners(), UNLIMITED)
    (points,) = seen.batches
    low, high = (points <= -0.9).all(-1), (points >= 0.9).all(-1)
    assert len(points) == Attack.box_starts and bool((low | high).all())
    assert 0.3 < float(high.double().mean()) < 0.7
    assert len({tuple(point) for point in points.tolist()}) == len(points)


def test_lengths_of_steps_differ_from_start_to_start() -> None:
    frontier, seen = Frontier(1 << 20), Seen()
    point = torch.full((1, 2), 0.9, dtype=torch.float64)
    frontier.push(torch.zeros(1), lower=point, upper=point)
    how = attack(1, reach=0.01)
    how = replace(how, in_boxes=replace(how.in_boxes, first_step=0.5))
    BoxAttacks(sums(), seen, how).after(256, frontier, UNLIMITED)
    begin, end = seen.batches
    length = (0.9 - end).amax(-1)
    assert bool((begin == 0.9).all()) and len(length) == Attack.box_starts
    assert 0.005 <= float(length.min()) < 0.006 and 0.4 < float(length.max()) <= 0.5
    assert 0.04 < float(length.median()) < 0.06  # as many are below 0.05 as above


def test_each_disjunct_has_as_many_starts_and_at_least_one() -> None:
    for disjuncts, count in ((3, 510), (600, 600)):
        seen = Seen()
        BoxAttacks(sums(disjuncts), seen, attack()).after(256, corners(), UNLIMITED)
        assert len(seen.batches[0]) == count


def test_an_attack_comes_after_so_many_boxes_and_only_where_some_are_open() -> None:
    seen = Seen()
    attacks = BoxAttacks(sums(), seen, attack(pause=100))
    for boxes, open_, number in ((60, corners(), 0), (60, corners(), 1), (60, corners(), 1)):
        attacks.after(boxes, open_, UNLIMITED)
        assert len(seen.batches) == number
    attacks.after(60, Frontier(1 << 20), UNLIMITED)
    assert len(seen.batches) == 1
    attacks.after(0, corners(), UNLIMITED)
    assert len(seen.batches) == 2


def test_attacks_become_rare_as_boxes_become_many() -> None:
    seen = Seen()
    attacks = BoxAttacks(sums(), seen, attack(pause=10, part=0.5))
    after = list[int]()
    for boxes in range(10, 201, 10):
        attacks.after(10, corners(), UNLIMITED)
        if len(seen.batches) > len(after):
            after.append(boxes)
    assert after == [10, 20, 30, 50, 80, 120, 180]


def test_the_seed_decides_the_starts() -> None:
    def starts(seed: int) -> Tensor:
        seen, how = Seen(), attack()
        how = replace(how, in_boxes=replace(how.in_boxes, seed=seed))
        BoxAttacks(sums(), seen, how).after(256, corners(), UNLIMITED)
        return seen.batches[0]

    assert torch.equal(starts(1), starts(1)) and not torch.equal(starts(1), starts(2))


def test_each_copy_of_a_search_draws_other_numbers_and_the_same_ones_again() -> None:
    network, domain = random_network(0, inputs=2, widths=(8, 8)), random_domain(0, inputs=2)
    centre = network(domain.center.unsqueeze(0))[0, 0].numpy()
    unsafe = Conjunction(np.array([[1.0, 0.0]]), centre.reshape(1), np.array([False]))
    query = ask(network, domain, [unsafe])  # can be met, and every counterexample is refused
    how = Subdivision(strategy=Strategy(attack=attack(pause=0)))
    search = InputSplits(query, Seen(), UNLIMITED, how)

    def starts(part: int) -> Tensor:
        seen = Seen()
        own = InputSplits(query, seen, UNLIMITED, how)
        if part:  # as on a cluster, where a copy is sent, and copied there
            own = search.copy(Seen(), UNLIMITED, part).copy(seen, UNLIMITED, part)
        own.begin()
        return seen.batches[-1]

    numbers = [0, 0, 1, 2, 2]
    drawn = [starts(part) for part in numbers]
    same = [[torch.equal(one, other) for other in drawn] for one in drawn]
    assert same == [[a == b for b in numbers] for a in numbers]
    assert len(drawn[0]) == Attack.box_starts


def test_the_largest_seed_is_one_for_copies_too() -> None:
    how = replace(attack(), in_boxes=Descent(steps=0, offer=ALL, seed=(1 << 63) - 1))
    drawn = []
    for part in (0, 1, 100):
        seen = Seen()
        BoxAttacks(sums(), seen, how, part).after(256, corners(), UNLIMITED)
        drawn.append(seen.batches[0])
    assert not torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[1], drawn[2])
