"""Hidden bounds sharpened by splits, or by slopes of their own: they hold, and never get looser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fgp_vnn.base.spread import Spread
from fgp_vnn.bounds.hidden import refine_layers
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query, ask, ask_values
from fgp_vnn.search import hidden_neurons
from fgp_vnn.search.hidden_neurons import Turn, sharpen_layers
from fgp_vnn.strategy import Ascent, Hidden, Shrinking, Slopes, Strategy
from fgp_vnn.transform.inputs import drop_unread
from tests.helpers.exact import TOLERANCE, least, polytope
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    random_domain,
    random_network,
    random_rows,
    sample,
)

WIDTHS = (5, 4, 3)
QUICK = Strategy(slopes=Slopes(signs=Ascent(steps=3)), hidden=Hidden(candidates=2))
SHORT = Slopes(rows=Ascent(steps=8))
kinds = pytest.mark.parametrize("kind", KINDS)

Tighten = Callable[[Query, LayerBounds], LayerBounds]
Timed = Callable[[Query, LayerBounds, Budget], LayerBounds]


def sharpen(
    query: Query, bounds: LayerBounds, budget: Budget = UNLIMITED, rounds: int = 6
) -> LayerBounds:
    return sharpen_layers(query, bounds, Turn(rounds), budget, QUICK)


def refine(query: Query, bounds: LayerBounds, budget: Budget = UNLIMITED) -> LayerBounds:
    return refine_layers(query, bounds, SHORT, budget)


ways = pytest.mark.parametrize("tighten", [sharpen, refine])


def make_query(seed: int, kind: str = "chain", domain_kind: str = "box") -> Query:
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, domain_kind, inputs=3, size=1.5)
    return ask(network, domain, random_rows(seed, 2, 1))


def ask_both_ways(query: Query) -> Query:
    """About all outputs and their negatives: each neuron of the last layer costs one of them."""
    eye = torch.eye(query.network.outputs, dtype=query.network.dtype)
    rows, target = torch.cat([eye, -eye]), len(query.network.layers)
    return ask_values(query.network, query.domain, target, rows)


def check_samples(query: Query, before: LayerBounds, after: LayerBounds, seed: int) -> None:
    """Every sampled pre-activation lies within, and no bound has moved outwards."""
    seen = query.network.preactivations(sample(query.domain, 150, seed))
    for z, lo, up in zip(seen[:-1], after.lower, after.upper, strict=True):
        assert bool((z.amin(0) >= lo - 1e-12).all())
        assert bool((z.amax(0) <= up + 1e-12).all())
    for a, b in zip(before.lower, after.lower, strict=True):
        assert bool((b >= a).all())
    for a, b in zip(before.upper, after.upper, strict=True):
        assert bool((b <= a).all())


def check_exact_range(query: Query, bounds: LayerBounds) -> None:
    """No bound of the second and third layers cuts into the exact range of a neuron."""
    where = polytope(query.domain)
    for k in (1, 2):
        for j in range(WIDTHS[k]):
            lowest = least(query.network, where, rows=[j], target=k)
            assert float(bounds.lower[k][0, j]) <= lowest + TOLERANCE
            layer = query.network.layers[k]
            assert isinstance(layer, Dense)
            weights = tuple(-w for w in layer.weights)
            negated = replace(layer, weights=weights, bias=-layer.bias)
            layers = (*query.network.layers[:k], negated, *query.network.layers[k + 1 :])
            mirrored = replace(query.network, layers=layers)
            highest = -least(mirrored, where, rows=[j], target=k)
            assert float(bounds.upper[k][0, j]) >= highest - TOLERANCE


def check_overflow(tighten: Tighten) -> None:
    """Weights so large that bounds overflow: a neuron of either sign never becomes stable."""
    for seed in range(4):
        query = make_query(seed)
        first, second, third = query.network.layers
        assert isinstance(second, Dense) and isinstance(third, Dense)
        third = replace(third, bias=0 * third.bias)
        huge = replace(second, weights=(second.weights[0] * 1e300,), bias=second.bias * 1e300)
        larger = replace(third, weights=(third.weights[0] * 1e300,))
        network = replace(query.network, layers=(first, huge, larger))
        bounds = tighten(
            replace(query, network=network), root_bounds(network, query.domain, budget=UNLIMITED)
        )
        modest = replace(query.network, layers=(first, second, third))
        seen = modest.preactivations(sample(query.domain, 300, seed))  # of the same signs
        for z, unstable in zip(seen[:-1], bounds.unstable(), strict=True):
            both = (z > 0).any(0) & (z < 0).any(0)
            assert bool(unstable[0][both].all())


@ways
@pytest.mark.parametrize("domain_kind", DOMAINS)
@kinds
def test_tighter_bounds_hold_at_every_point_and_never_get_looser(
    tighten: Tighten, kind: str, domain_kind: str
) -> None:
    seed = 100 + len(DOMAINS) * KINDS.index(kind) + DOMAINS.index(domain_kind)
    query = make_query(seed, kind, domain_kind)
    before = root_bounds(query.network, query.domain, budget=UNLIMITED)
    check_samples(query, before, tighten(query, before), seed)


@ways
@kinds
def test_tighter_bounds_contain_the_exact_range(tighten: Tighten, kind: str) -> None:
    query = make_query(KINDS.index(kind), kind)
    before = root_bounds(query.network, query.domain, budget=UNLIMITED)
    check_exact_range(query, tighten(query, before))


@ways
def test_without_time_the_bounds_are_those_that_were_given(tighten: Timed) -> None:
    query = make_query(2)
    before = root_bounds(query.network, query.domain, budget=UNLIMITED)
    after = tighten(query, before, Budget.of(0.0, None))
    for side in ("lower", "upper"):
        for a, b in zip(getattr(before, side), getattr(after, side), strict=True):
            assert torch.equal(a, b)


@ways
def test_what_overflows_makes_no_neuron_stable(tighten: Tighten) -> None:
    check_overflow(tighten)


def test_many_rounds_come_near_the_exact_range() -> None:
    query = make_query(1)
    before = root_bounds(query.network, query.domain, budget=UNLIMITED)
    after = sharpen(query, before, rounds=40)
    where = polytope(query.domain)
    exact = [least(query.network, where, rows=[j], target=1) for j in range(WIDTHS[1])]
    unstable = before.unstable()[1][0]
    loose = sum(e - float(b) for e, b in zip(exact, before.lower[1][0], strict=True))
    tight = sum(e - float(b) for e, b in zip(exact, after.lower[1][0], strict=True))
    assert bool(unstable.any())
    assert tight < 0.3 * loose


def test_more_rounds_never_loosen() -> None:
    for seed in range(4):
        query = make_query(seed, KINDS[seed % 3])
        before = root_bounds(query.network, query.domain, budget=UNLIMITED)
        few, many = (sharpen(query, before, rounds=rounds) for rounds in (1, 10))
        assert bool((many.lower[1] >= few.lower[1] - 1e-9).all())
        assert bool((many.upper[1] <= few.upper[1] + 1e-9).all())


def rounds_done(query: Query, bounds: LayerBounds, pays: float) -> int:
    """The bundles that cover the domain for all neurons after one turn."""
    counts: list[int] = []
    strategy = replace(QUICK, hidden=replace(QUICK.hidden, pays=pays))
    keep = lambda layer, neurons, cover: counts.append(len(cover.signs))  # noqa: E731
    sharpen_layers(query, bounds, Turn(8), UNLIMITED, strategy, keep)
    return sum(counts)


def test_neurons_that_do_not_pay_are_split_in_a_part_of_the_rounds() -> None:
    query = ask_both_ways(make_query(1))
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    assert rounds_done(query, bounds, pays=5.0) < rounds_done(query, bounds, pays=0.0)


def test_the_second_layer_has_every_other_turn() -> None:
    first = Turn(8)
    second = first.next()
    third = second.next()
    assert [turn.waits(1, 3) for turn in (first, second, third)] == [False, True, False]
    assert not second.waits(1, 2)  # which would have nothing to do
    assert [turn.rounds_of(1) for turn in (first, third)] == [16, 64]
    assert [turn.rounds_of(2) for turn in (first, second, third)] == [8, 16, 32]
    assert not any(turn.waits(2, 3) for turn in (first, second, third))


def test_a_layer_that_waits_keeps_its_bounds() -> None:
    query = ask_both_ways(make_query(1))
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    heard: list[int] = []
    keep = lambda layer, neurons, cover: heard.append(layer)  # noqa: E731
    after = sharpen_layers(query, bounds, Turn(4, number=1), UNLIMITED, QUICK, keep)
    assert heard == [2]
    assert torch.equal(after.lower[1], bounds.lower[1])


def positive_neuron() -> Query:
    """Neurons of the second layer: |x| + |y| - |x + y| + 0.1 > 0, which a single linear bound does
    not show, and relu(x) - relu(y), which has both signs."""
    signs = torch.tensor([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1]]).double()
    sums = torch.tensor([[1, 1, 1, 1, -1, -1], [1, 0, -1, 0, 0, 0]]).double()
    layers = (
        Dense((0,), (signs,), torch.zeros(6).double()),
        Dense((1,), (sums,), torch.tensor([0.1, 0.0]).double()),
    )
    output = Dense((2,), (torch.eye(2).double(),), torch.zeros(2).double())
    network, ends = Network(layers, output, 2), torch.tensor([1.0, 0.9]).double()
    return ask_values(network, Box(-ends, ends), 2, -torch.eye(2).double())


def test_a_neuron_whose_sign_is_known_is_not_split_any_more() -> None:
    query, counts = positive_neuron(), []
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    for rounds in (4, 8):
        covers: list[Tensor] = []
        keep = lambda k, neurons, cover, covers=covers: covers.append(cover.disjunct)  # noqa: E731
        known = sharpen_layers(query, bounds, Turn(rounds), UNLIMITED, Strategy(), keep)
        assert bool(bounds.unstable()[1].all())
        assert known.unstable()[1].tolist() == [[False, True]]
        counts.append(covers[0].bincount(minlength=4).tolist())
    few, many = counts
    assert few[2] == many[2] and few[3] < many[3]


def test_of_the_last_layer_only_neurons_that_cost_an_output_something_are_split() -> None:
    query = positive_neuron()
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    first = ask_values(query.network, query.domain, 2, torch.tensor([[-1.0, 1.0]]).double())
    split: list[int] = []
    keep = lambda k, neurons, cover: split.extend(neurons.tolist())  # noqa: E731
    sharpen_layers(first, bounds, Turn(4), UNLIMITED, Strategy(), keep)
    assert split == [1]


def test_neighbours_are_bounded_in_a_network_of_their_own_as_in_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two networks side by side, of inputs of their own: groups of neurons have one half each."""
    query = ask_both_ways(make_query(3))
    network, box = query.network, query.domain.box()
    two = torch.eye(2, dtype=network.dtype)
    layers = tuple(
        Dense(
            layer.sources,
            tuple(torch.kron(two, w) for w in layer.weights),
            torch.cat([layer.bias, layer.bias]),
        )
        for layer in network.layers
        if isinstance(layer, Dense)
    )
    eye = torch.eye(2 * WIDTHS[-1], dtype=network.dtype)
    output = Dense((len(layers),), (torch.cat([eye, -eye]),), eye.new_zeros(2 * len(eye)))
    double = Network(layers, output, 2 * network.inputs)
    domain = Box(torch.cat([box.lower, box.lower]), torch.cat([box.upper, box.upper]))
    pair = ask_values(double, domain, len(layers), torch.eye(len(output.bias)).double())
    whole = sharpen(query, root_bounds(network, query.domain, budget=UNLIMITED))
    pieces: list[list[int]] = []
    asked: list[int] = []

    class Watched(Spread):
        def __call__(self, work: Any, some: Any) -> Any:
            pieces.extend(piece.tolist() for piece in some)
            return super().__call__(work, some)

    def noted(query: Query) -> Query:
        small = drop_unread(query)
        asked.append(small.network.inputs)
        return small

    monkeypatch.setattr(hidden_neurons, "drop_unread", noted)
    before = root_bounds(double, domain, budget=UNLIMITED)
    apart = replace(QUICK, hidden=replace(QUICK.hidden, growth=1.0))
    after = sharpen_layers(pair, before, Turn(6), UNLIMITED, apart, spread=Watched())
    for width, groups in ((WIDTHS[1], pieces[:2]), (WIDTHS[2], pieces[2:])):
        assert [{j // width for j in group} for group in groups] == [{0}, {1}]
    assert asked == 4 * [network.inputs]
    pieces.clear()
    dear = replace(apart, shrinking=Shrinking(products=0))
    sharpen_layers(pair, before, Turn(6), UNLIMITED, dear, spread=Watched())
    assert len(pieces) == 2  # one for each layer
    for k in (1, 2):
        for side in ("lower", "upper"):
            once, twice = getattr(whole, side)[k][0], getattr(after, side)[k][0]
            assert torch.allclose(torch.cat([once, once]), twice, atol=1e-9)
