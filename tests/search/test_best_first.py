"""The search over bundles: what it is done with and what waits cover the domain at any time."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.query import Query
from fgp_vnn.search.best_first import Batch, BestFirst, Cover, Goal, Visited
from fgp_vnn.search.bundles import BundleContext, Bundles, bound
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.hidden_neurons import Turn, sharpen_layers
from fgp_vnn.strategy import Slopes, Strategy
from tests.helpers.random_networks import sample
from tests.helpers.solving import search_neurons
from tests.search.test_bundles import inside, set_up
from tests.search.test_neurons import hard_query

STORABLE = Strategy(slopes=Slopes().storable())


class Apart(Goal):
    """Everything is split up to its regions, but for a bundle now and then."""

    def __init__(self, context: BundleContext) -> None:
        self.context = context

    def visit(self, batch: Batch) -> Visited:
        bounded = bound(self.context, batch.bundles)
        level = bounded.result.least.squeeze(-1)
        return Visited(bounded, level, bounded.bundles.signs.sum(-1) == 3, {})

    def settle(self, visited: Visited, at: torch.Tensor) -> Bundles:
        return visited.bounded.bundles.at(at)


class Twice(Apart):
    """Every other bundle is bounded once more before it is split."""

    def __init__(self, context: BundleContext) -> None:
        super().__init__(context)
        self.repeated = 0

    def visit(self, batch: Batch) -> Visited:
        visited = super().visit(batch)
        return visited._replace(held={"visits": batch.held["visits"] + 1})

    def done(self, batch: Batch) -> torch.Tensor:
        return torch.zeros_like(batch.level, dtype=torch.bool)

    def choose(self, visited: Visited, at: torch.Tensor) -> torch.Tensor:
        again = (visited.held["visits"][at] % 2 == 1) & (at % 2 == 0)
        self.repeated += int(again.sum())
        return torch.where(again, -1, super().choose(visited, at))


class Marked(Twice):
    """What waits with a bundle is its number of closed neurons."""

    def visit(self, batch: Batch) -> Visited:
        visited = super().visit(batch)
        signs = batch.bundles.signs
        before, now = batch.held["closed"], signs.count_nonzero(-1)
        # A half has one more than its whole had, a repeated bundle as many.
        assert bool(((now == before) | (now == before + 1)).all())
        return visited._replace(held={**visited.held, "closed": now})


def assert_covers(query: Query, cover: Bundles, rows: int, seed: int) -> None:
    """Every sampled point is in a bundle of every row."""
    member = inside(query, cover.signs, sample(query.domain, 200, seed))
    for row in range(rows):
        assert bool(member[cover.disjunct == row].any(0).all())


@pytest.mark.parametrize(("batch", "steps"), [(1, 5), (6, 2), (256, 0), (256, 1000)])
def test_closed_and_waiting_bundles_cover_the_domain_at_any_time(batch: int, steps: int) -> None:
    query, context, root = set_up(3, steps=0)
    cover = Cover()
    search = BestFirst(Apart(context), Frontier(1 << 20), batch, cover.keep)
    search.begin(root, {})
    left = iter(range(steps))
    search.run(lambda: next(left, None) is None)
    found = [*cover.parts, *search.waiting()]
    assert_covers(query, Bundles.joined(found), query.disjuncts, 3)
    assert search.bundles >= cover.count + len(search.frontier)
    assert (search.closed == pytest.approx(1)) == (not len(search.frontier))


@pytest.mark.parametrize(("batch", "steps"), [(1, 4), (6, 1), (32, 1000), (256, 1), (256, 1000)])
def test_bundles_that_are_bounded_once_more_beside_halves_are_not_lost(
    batch: int, steps: int
) -> None:
    query, context, root = set_up(3, steps=0)
    cover, goal = Cover(), Twice(context)
    search = BestFirst(goal, Frontier(1 << 20), batch, cover.keep)
    search.begin(root, {"visits": torch.zeros(len(root.signs), dtype=torch.long)})
    left = iter(range(steps))
    search.run(lambda: next(left, None) is None)
    found = [*cover.parts, *search.waiting()]
    assert_covers(query, Bundles.joined(found), query.disjuncts, 3)
    assert goal.repeated
    assert (search.closed == pytest.approx(1)) == (not len(search.frontier))


def test_what_waits_with_a_bundle_stays_with_it() -> None:
    _, context, root = set_up(3, steps=0)
    goal = Marked(context)
    search = BestFirst(goal, Frontier(1 << 20), 12)
    none = torch.zeros(len(root.signs), dtype=torch.long)
    search.begin(root, {"visits": none, "closed": none})
    search.run(lambda: False)
    assert goal.repeated and search.closed == pytest.approx(1)


def test_a_cover_that_is_full_takes_no_more() -> None:
    _, _, root = set_up(0)
    cover = Cover(most=4)
    for _ in range(3):
        cover.keep(root)
    assert cover.full and cover.incomplete and not cover.parts


def test_what_a_search_keeps_of_an_unsat_query_covers_the_domain() -> None:
    split = 0
    for seed in range(6):
        query = hard_query(seed)
        bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
        cover = Cover()
        outcome = search_neurons(
            query, bounds, lambda points: None, UNLIMITED, STORABLE, keep=cover.keep
        )
        if outcome.status == "unsat" and "leaves" not in outcome.statistics:
            assert_covers(query, Bundles.joined(cover.parts), query.disjuncts, seed)
            split += cover.count > query.disjuncts
    assert split


@pytest.mark.parametrize("rounds", [0, 3, 50])
def test_the_cover_of_a_hidden_neuron_covers_the_domain(rounds: int) -> None:
    query, context, _ = set_up(1)
    heard: list[int] = []

    def keep(layer: int, neurons: torch.Tensor, cover: Bundles) -> None:
        heard.append(layer)
        before = torch.cat(query.network.preactivations(sample(query.domain, 200, 1))[:layer], -1)
        member = (before.unsqueeze(0) * cover.signs.unsqueeze(1) >= 0).all(-1)
        for row in range(2 * len(neurons)):
            assert bool(member[cover.disjunct == row].any(0).all())

    sharpen_layers(query, context.bounds, Turn(rounds), UNLIMITED, STORABLE, keep)
    assert heard


@pytest.mark.slow
def test_a_cover_that_has_left_a_bundle_out_stays_without_any() -> None:
    """More room later does not bring back what was dropped."""
    _, context, root = set_up(3, steps=0)
    cover = Cover(most=1)
    search = BestFirst(Apart(context), Frontier(1 << 20), 1, cover.keep)
    search.begin(root, {})
    left = iter(range(50))
    search.run(lambda: next(left, None) is None)
    cover.most = torch.inf
    assert search.bundles > 2
    assert cover.full and not cover.parts
