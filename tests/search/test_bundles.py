"""Batches of bundles: what is bounded, how they are split, and that nothing gets lost."""

from __future__ import annotations

from dataclasses import replace
from math import expm1
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.query import Query, ask
from fgp_vnn.search.bundles import BundleContext, Bundles, bound, children, context_and_root
from fgp_vnn.search.choice import _work, choose
from fgp_vnn.strategy import Ascent, Neurons
from tests.helpers.exact import TOLERANCE, least, polytope
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    generator,
    random_domain,
    random_network,
    random_rows,
    sample,
)

WIDTHS = (5, 4, 3)
kinds = pytest.mark.parametrize("kind", KINDS)


def set_up(
    seed: int, kind: str = "chain", domain_kind: str = "box", *, steps: int = 4, candidates: int = 3
) -> tuple[Query, BundleContext, Bundles]:
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, domain_kind, inputs=3, size=1.5)
    query = ask(network, domain, random_rows(seed, 2, 1, 3, 2))
    bounds = root_bounds(query.network, domain, budget=UNLIMITED)
    context, root = context_and_root(
        query, bounds, UNLIMITED, Ascent(steps=steps), Neurons(candidates=candidates)
    )
    return query, context, root


def bundles_at(query: Query, points: Tensor, seed: int) -> Bundles:
    """A bundle around each point, some neurons closed as it has them; the rest at random."""
    source = generator(seed)
    z = torch.cat(query.network.preactivations(points)[:-1], -1)
    closed = torch.rand(z.shape, generator=source) < 0.4
    signs = torch.where(closed, z.sign(), torch.zeros_like(z)).to(torch.int8)
    alpha, beta = torch.rand(2, *z.shape, generator=source, dtype=z.dtype)
    most = int(torch.bincount(query.disjunct).max())
    weights = torch.rand(len(z), most, generator=source, dtype=z.dtype)
    disjunct = torch.arange(len(z)) % query.disjuncts
    ends = alpha.new_zeros(len(z), 2, 0)
    return Bundles(disjunct, signs, alpha, 2 * beta * (signs != 0), weights, ends)


def inside(query: Query, signs: Tensor, points: Tensor) -> Tensor:
    """Which points [bundles, points] lie in which bundles."""
    z = torch.cat(query.network.preactivations(points)[:-1], -1)
    return (z.unsqueeze(0) * signs.unsqueeze(1) >= 0).all(-1)


@pytest.mark.parametrize("domain_kind", DOMAINS)
@kinds
@settings(max_examples=4)
@given(seed=st.integers(0, 10_000), steps=st.sampled_from([0, 2]))
def test_a_bundle_is_never_bounded_above_its_weighed_rows(
    kind: str, domain_kind: str, seed: int, steps: int
) -> None:
    """For any slopes, multipliers and weights to start from, and wherever the ascent ends."""
    query, context, _ = set_up(seed, kind, domain_kind, steps=steps)
    points = sample(query.domain, 80, seed)
    bundles = bundles_at(query, points[:6], seed)
    bounded = bound(context, bundles)
    g = query.network(points)
    member = inside(query, bundles.signs, points)
    for i in range(6):
        weights = bounded.bundles.weights[i]
        assert bool((weights >= 0).all()) and float(weights.sum()) > 0
        rows = context.rows[bundles.disjunct[i]]
        mixed = (g[member[i]] @ rows.T) @ weights
        assert bool((mixed >= bounded.result.least[i]).all())


@kinds
def test_a_bundle_with_a_positive_bound_holds_no_exact_counterexample(kind: str) -> None:
    """The weighed sum cannot exceed the greatest row, whose exact minimum the oracle knows."""
    close = 0
    for seed in range(4):
        query, context, _ = set_up(seed, kind, steps=20)
        bundles = bundles_at(query, sample(query.domain, 6, seed)[:3], seed)
        bounded = bound(context, replace(bundles, beta=0 * bundles.beta))
        for i in range(3):
            signs = [s[i].double() for s in torch.split(bundles.signs, list(WIDTHS), -1)]
            rows = query.rows_of(int(bundles.disjunct[i]))
            exact = least(query.network, polytope(query.domain), rows=rows, signs=signs)
            share = float(bounded.result.least[i] / bounded.bundles.weights[i].sum())
            assert share <= exact + TOLERANCE
            close += share > exact - 1.0
    assert close > 0


def test_each_disjunct_is_asked_about_all_of_its_own_rows() -> None:
    query, context, root = set_up(1)
    assert root.disjunct.tolist() == list(range(query.disjuncts))
    for d in range(query.disjuncts):
        assert set(context.rows[d].argmax(-1).tolist()) == set(query.rows_of(d))
    assert not bool(root.signs.any())
    torch.testing.assert_close(root.weights.sum(-1), torch.ones(3, dtype=torch.float64))


@kinds
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_the_halves_of_a_bundle_cover_it(kind: str, seed: int) -> None:
    query, context, _ = set_up(seed, kind)
    points = sample(query.domain, 60, seed)
    bounded = bound(context, bundles_at(query, points[:8], seed))
    at = torch.nonzero(bounded.crossing.any(-1)).flatten()
    parents = bounded.bundles.at(at)
    neuron = choose(context, bounded, at)
    both = children(parents, neuron)
    assert len(both.signs) == 2 * len(at)
    before = inside(query, parents.signs, points)
    off, on = inside(query, both.signs, points).chunk(2)
    assert torch.equal(before, off | on)
    for half, sign in zip(both.signs.chunk(2), (-1, 1), strict=True):
        changed = torch.nonzero(half != parents.signs)
        assert torch.equal(changed[:, 1], neuron)
        assert bool((half.gather(-1, neuron.unsqueeze(-1)) == sign).all())
    for mine, theirs in zip(both.parts(), parents.parts(), strict=True):
        if mine.dtype != torch.int8:
            assert torch.equal(mine, torch.cat([theirs, theirs]))


@pytest.mark.parametrize("candidates", [1, 3, 100])
def test_the_neuron_that_is_split_is_open_and_unstable(candidates: int) -> None:
    for seed in range(6):
        query, context, _ = set_up(seed, KINDS[seed % 3], candidates=candidates)
        bundles = bundles_at(query, sample(query.domain, 12, seed)[:12], seed)
        bounded = bound(context, bundles)
        assert not bool((bounded.crossing & (bundles.signs != 0)).any())
        at = torch.nonzero(bounded.crossing.any(-1)).flatten()
        assert len(at)
        neuron = choose(context, bounded, at)
        assert bool(bounded.crossing[at].gather(-1, neuron.unsqueeze(-1)).all())


def test_the_split_is_the_one_whose_children_take_least_work() -> None:
    """The work on a child is taken from its bound by the multipliers of its parent."""
    rather_than_the_sum = 0
    for seed in range(12):
        query, context, _ = set_up(seed, KINDS[seed % 3], candidates=100)
        bundles = bundles_at(query, sample(query.domain, 12, seed)[:12], seed)
        bounded = bound(context, bundles)
        open_ones = bounded.crossing.any(-1) & (bounded.result.least[:, 0] < 0)
        at = torch.nonzero(open_ones).flatten()
        if not len(at):
            continue
        chosen = choose(context, bounded, at)
        as_begun = replace(context, ascent=replace(context.ascent, steps=0))
        for i, bundle in enumerate(at.tolist()):
            neurons = torch.nonzero(bounded.crossing[bundle]).flatten()
            parent = bounded.bundles.at(torch.full_like(neurons, bundle))
            least = bound(as_begun, children(parent, neurons)).result.least.view(2, -1)
            part = (least / bounded.result.least[bundle, 0]).clamp(0, 1)
            work = torch.expm1(3 * part).sum(0)
            assert float(work[neurons == chosen[i]]) <= float(work.min()) * (1 + 1e-5) + 1e-5
            rather_than_the_sum += int(part.sum(0).argmin()) != int(work.argmin())
    assert rather_than_the_sum > 3


def test_the_work_on_a_child_without_a_bound_is_that_of_its_parent() -> None:
    least = torch.tensor([[-2.0], [-1.0]], dtype=torch.float64)
    bounded: Any = SimpleNamespace(result=SimpleNamespace(least=least))
    context: Any = SimpleNamespace(growth=3.0)
    begun = torch.tensor([torch.nan, -0.5, 1.0, -torch.inf])
    work = _work(context, bounded, torch.tensor([0, 1]), begun)
    whole, half = expm1(3.0), expm1(1.5)
    torch.testing.assert_close(work, torch.tensor([whole, half + whole]))


def test_a_neuron_that_a_sample_shows_with_both_signs_is_still_open() -> None:
    seen = 0
    for seed in range(6):
        query, context, _ = set_up(seed, KINDS[seed % 3])
        points = sample(query.domain, 200, seed)
        bundles = bundles_at(query, points[:6], seed)
        crossing = bound(context, bundles).crossing
        z = torch.cat(query.network.preactivations(points)[:-1], -1)
        member = inside(query, bundles.signs, points)
        for i in range(6):
            both = (z[member[i]] > 0).any(0) & (z[member[i]] < 0).any(0)
            assert bool(crossing[i][both].all())
            seen += int(both.sum())
    assert seen > 6
