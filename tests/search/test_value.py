"""The least values of several rows at once: how their bundles are taken."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from fgp_vnn.base.spread import Spread
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.query import Query, ask
from fgp_vnn.search.best_first import Batch, Visited
from fgp_vnn.search.bundles import Bundles
from fgp_vnn.search.hidden_neurons import Turn, sharpen_layers
from fgp_vnn.search.value import Signs
from fgp_vnn.strategy import Hidden, Strategy
from tests.helpers.random_networks import random_domain, random_network, random_rows

ROUNDS = 24


def make_query() -> Query:
    network = random_network(2, "chain", inputs=8, widths=(40, 4, 2))
    return ask(network, random_domain(2, "box", inputs=8, size=2.0), random_rows(2, 2, 1))


class Beside(Spread):
    """Counts as one of several processes."""

    def __init__(self, ways: int) -> None:
        self.ways = ways


def sharpened(
    query: Query,
    hidden: Hidden,
    monkeypatch: pytest.MonkeyPatch,
    budget: Budget = UNLIMITED,
    ways: int = 1,
) -> tuple[list[int], list[int], float]:
    """The leaves of each row of the second layer, the sizes of the batches that were bounded, and
    how much narrower the bounds of the layer are than before, all rows together."""
    sizes: list[int] = []
    leaves: list[Bundles] = []
    visit = Signs.visit

    def noted(self: Signs, batch: Batch) -> Visited:
        sizes.append(len(batch.level))
        return visit(self, batch)

    monkeypatch.setattr(Signs, "visit", noted)
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    keep = lambda k, neurons, cover: leaves.append(cover) if k == 1 else None  # noqa: E731
    strategy = Strategy(hidden=replace(hidden, pays=0.0))
    turn, spread = Turn(ROUNDS // 2), Beside(ways)
    after = sharpen_layers(query, bounds, turn, budget, strategy, keep, spread)
    monkeypatch.undo()
    gain = (after.lower[1] - bounds.lower[1]).sum() + (bounds.upper[1] - after.upper[1]).sum()
    counted = torch.cat([cover.disjunct for cover in leaves]).bincount().tolist()
    return counted, sizes, float(gain)


def test_every_row_gets_its_splits_in_fewer_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    query = make_query()
    one = sharpened(query, Hidden(batch=1, one_in=1), monkeypatch)
    some = sharpened(query, Hidden(batch=512, one_in=4), monkeypatch)
    assert one[0] == some[0]
    assert set(one[0]) == {1, ROUNDS + 1}  # 1 of a neuron whose sign the first bound shows
    assert len(some[1]) < 0.7 * len(one[1])
    # The lowest are taken: nearly as much is gained as by one split after the other.
    assert some[2] > 0.9 * one[2] > 0


def test_processes_share_the_memory_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    query, wide = make_query(), Hidden(batch=10**6, one_in=1)
    budget = Budget(math.inf, 10**6)
    alone, beside = (max(sharpened(query, wide, monkeypatch, budget, ways)[1]) for ways in (1, 4))
    assert alone > 40 and beside <= alone / 3


def test_a_batch_holds_no_more_than_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    query = make_query()
    _, sizes, _ = sharpened(query, Hidden(batch=20, one_in=1), monkeypatch)
    rows = 2 * query.network.widths[1]
    assert max(sizes) <= max(20, 2 * rows)
