"""Bounds of hidden neurons over what linear bounds leave: they hold at counterexamples, and pay."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.query import Query
from fgp_vnn.search.best_first import Batch, Visited
from fgp_vnn.search.bundles import (
    BoundedBundles,
    BundleContext,
    Bundles,
    bound,
    children,
    context_and_root,
)
from fgp_vnn.search.clip_bundles import BundleClipper
from fgp_vnn.search.clipped_neurons import (
    Clipping,
    clip_neurons,
    near,
    promised,
)
from fgp_vnn.search.leaves import leaf_effort
from fgp_vnn.search.neurons import Decide
from fgp_vnn.search.waiting_bounds import waiting_bounds
from fgp_vnn.strategy import Ascent, Neurons, Slopes, Strategy
from tests.helpers.random_cases import random_case
from tests.helpers.small_networks import (
    balls,
    bounds_of,
    random_network,
    random_point,
    robustness_query,
    sample,
)
from tests.helpers.solving import search_neurons
from tests.helpers.ticking import Ticking

KINDS = ("l2", "l1", "linf", "clipped")


def example(kind: str, seed: int, size: float = 1.2) -> tuple[Query, BundleContext, Bundles]:
    """A query that may be met, its context, and bundles with one neuron of the first layer and one
    of the second closed, each in both ways."""
    network = random_network((4, 12, 10, 8, 3), seed)
    query = robustness_query(network, balls(random_point(4, seed), size)[kind])
    ascent = Ascent(steps=4)
    context, root = context_and_root(
        query, bounds_of(query), UNLIMITED, ascent, Neurons(candidates=1)
    )
    for layer in (0, 1):
        crossing = torch.nonzero(context.bounds.unstable()[layer][0]).flatten()
        neuron = int(crossing[seed % len(crossing)]) + sum(context.widths[:layer])
        root = children(root, torch.full((len(root.signs),), neuron))
    return query, context, root


def clipped(
    context: BundleContext, bundles: Bundles, most: int, low: int = 0
) -> tuple[BoundedBundles, Tensor, Tensor]:
    bounded = bound(context, bundles)
    at = torch.arange(len(bundles.signs))
    return bounded, *clip_neurons(context, clipping(context, most, low), bounded, at)


def clipping(context: BundleContext, most: int, low: int = 0) -> Clipping:
    """So many sides of each bundle, shared among the layers; among those behind the first if
    there are more than `low` inputs."""
    found = Clipping.of(context, Neurons(clipped=most, costly=1.0, low=low))
    assert found is not None
    return found


@pytest.mark.parametrize("low", [0, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_every_counterexample_of_a_bundle_is_within_its_clipped_bounds(kind: str, low: int) -> None:
    seen = 0
    for seed in range(4):
        query, context, bundles = example(kind, seed)
        _, lower, upper = clipped(context, bundles, 30, low)
        *values, outputs = query.network.preactivations(sample(query.domain, 30_000, seed))
        z = torch.cat(values, -1)
        for number, signs in enumerate(bundles.signs):
            met = outputs[:, int(bundles.disjunct[number])] <= 0
            met = met & (z * signs >= 0).all(-1)
            seen += int(met.sum())
            assert bool((z[met] >= lower[number]).all())
            assert bool((z[met] <= upper[number]).all())
    assert seen > 1000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("low", [3, 4])
def test_clipped_bounds_are_never_looser_and_only_of_those_that_cost_most(
    kind: str, low: int
) -> None:
    _, context, bundles = example(kind, 3, 0.3)
    narrower = 0
    for most in (6, 12):
        bounded, lower, upper = clipped(context, bundles, most, low)
        before = [torch.cat(side, -1) for side in (bounded.bounds.lower, bounded.bounds.upper)]
        assert bool((lower >= before[0]).all()) and bool((upper <= before[1]).all())
        changed = (lower > before[0]) | (upper < before[1])
        # As many sides of each layer as any of the bundles needs, of the first in few inputs.
        assert bool(changed[:, : context.widths[0]].any()) == (low == 4)
        assert int(changed.sum(-1).max()) <= (3 if low == 4 else 2) * most
        narrower += int(changed.sum())
    assert narrower > 20


def test_a_rise_is_promised_by_the_chords_of_neurons_that_cost_the_bound() -> None:
    _, context, bundles = example("linf", 3, 0.3)
    bounded, lower, upper = clipped(context, bundles, 30)
    at = torch.arange(len(bundles.signs))
    assert not bool(promised(bounded, bounded.bounds, at).any())
    lowers, uppers = (torch.split(side, context.widths, -1) for side in (lower, upper))
    rise = promised(bounded, LayerBounds(lowers, uppers), at)
    expected = lost = torch.zeros_like(rise)
    begin = 0
    for layer, width in enumerate(context.widths, 1):
        low, high = bounded.bounds.lower[layer - 1], bounded.bounds.upper[layer - 1]
        part = slice(begin, begin + width)
        fall = _chord(low, high) - _chord(lower[:, part], upper[:, part])
        cost = -bounded.result.coefficients[layer].squeeze(-2).clamp(max=0)
        expected, begin = expected + (cost * fall).sum(-1), begin + width
        lost = lost + (cost * _chord(low, high)).sum(-1)
    enough = expected > 0.01 * lost
    torch.testing.assert_close(rise, torch.where(enough, expected, 0.0))
    assert bool(enough.any())


def _chord(low: Tensor, high: Tensor) -> Tensor:
    """How far above 0 the chord of a ReLU is at 0."""
    return torch.where((low < 0) & (high > 0), -low * high / (high - low), 0.0)


def decide(context: BundleContext, **numbers: float) -> Decide:
    """A goal whose bundles are all worth clipping."""
    context = replace(context, ascent=replace(context.ascent, looks=True))
    effort = leaf_effort(Strategy().projections, False)
    chosen = replace(Neurons(again=torch.inf, near=1e9, low=0), **numbers)  # type: ignore[arg-type]
    clip = Clipping.of(context, chosen)
    assert clip is not None
    return Decide(context, lambda points: None, effort, Slopes().regions, BundleClipper(clip))


def visited(goal: Decide, bundles: Bundles) -> Visited:
    count = len(bundles.signs)
    level = bundles.alpha.new_full((count,), -torch.inf)
    return goal.visit(Batch(bundles, level, torch.ones_like(level), goal.first(count)))


@pytest.mark.parametrize("costly", [0.3, 0.8, 1.0])
@pytest.mark.parametrize("most", [1, 3, 1000])
def test_sides_are_bounded_until_they_make_up_a_part_of_the_cost(most: int, costly: float) -> None:
    """In a single bundle exactly those that cost most, of which it takes so many."""
    fewer = 0
    for seed in range(6):
        _, context, bundles = example("linf", seed, 0.6)
        bundles = bundles.at(torch.tensor([0]))
        found = visited(decide(context, clipped=most, costly=costly), bundles)
        raised = found.held["lower"] > torch.cat(found.bounded.bounds.lower, -1) + 1e-6
        lowered = found.held["upper"] < torch.cat(found.bounded.bounds.upper, -1) - 1e-6
        changed = torch.cat([raised, lowered], -1)
        cost = _costs(found.bounded)[0]
        order = cost.argsort(descending=True)
        before = cost[order].cumsum(0) - cost[order]
        wanted = int((before < costly * cost.sum() * (1 - 1e-12)).sum())
        chosen = order[: min(wanted, most)]
        assert not bool(changed[0, [j for j in range(len(cost)) if j not in chosen]].any())
        fewer += len(cost) - len(chosen)
        assert bool(changed[0, chosen].any()) or not bool(changed.any())
    assert fewer > 0


def _costs(bounded: BoundedBundles) -> Tensor:
    """What the lower bounds of the neurons behind the first layer cost the bound, then what their
    upper bounds do [bundles, 2 neurons]: parts of what the chord costs, by its derivatives."""
    parts = [torch.zeros_like(bounded.bounds.lower[0]).expand(2, -1, -1)]
    for layer in range(1, len(bounded.bounds.lower)):
        low, high = bounded.bounds.lower[layer], bounded.bounds.upper[layer]
        cost = -bounded.result.coefficients[layer + 1].squeeze(-2).clamp(max=0) * _chord(low, high)
        squares = torch.stack([high.square(), low.square()])
        parts.append(cost * squares / squares.sum(0))
    return torch.cat(list(torch.cat(parts, -1)), -1)


def test_on_a_device_that_is_not_asked_the_limit_holds_for_all_layers_together() -> None:
    _, context, bundles = example("linf", 1, 0.6)  # three layers, no looks
    bounded, lower, upper = clipped(context, bundles, 4)
    before = [torch.cat(side, -1) for side in (bounded.bounds.lower, bounded.bounds.upper)]
    changed = (lower > before[0]) | (upper < before[1])
    assert 0 < int(changed.sum(-1).amax()) <= 4


def test_a_bundle_is_bounded_once_more_where_that_promises_enough() -> None:
    _, context, bundles = example("linf", 3, 0.3)
    whole = visited(decide(context, clipped=8), bundles)
    at = torch.nonzero(~whole.closed).flatten()
    assert len(at)
    rises = []
    for again in (0.0, 0.1, 1e9, torch.inf):
        goal = decide(context, clipped=8, again=again)
        neuron = goal.choose(whole, at)
        waits = neuron < 0
        rises.append(int(waits.sum()))
        crossing = torch.cat(goal.context.bounds.unstable(), -1).expand(len(whole.closed), -1)
        assert bool(crossing[at[~waits], neuron[~waits]].all())
    assert len(at) >= rises[0] >= rises[1] and rises[0] > 0 and rises[2:] == [0, 0]


def test_a_bundle_that_lacks_nothing_is_split_and_not_bounded_for_ever() -> None:
    _, context, bundles = example("linf", 3, 0.3)
    goal = decide(context, clipped=8, again=0.3)
    whole = visited(goal, bundles)
    lower, upper = (
        torch.cat(s, -1) for s in (whole.bounded.bounds.lower, whole.bounded.bounds.upper)
    )
    same = whole._replace(level=torch.zeros_like(whole.level), held=waiting_bounds(lower, upper))
    at = torch.nonzero(~whole.closed).flatten()
    assert len(at) and bool((goal.choose(same, at) >= 0).all())


@pytest.mark.slow
@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("low", [0, 200])
def test_a_search_that_clips_never_proves_what_an_exact_oracle_refutes(
    looks: bool, low: int
) -> None:
    """Counterexamples are not confirmed, so that only wrong proofs could end the search early. With
    looks, bundles are bounded once more whenever that promises anything."""
    trial = (10, 128)
    neurons = Neurons(clipped=8, near=1e9, low=low, most=60, again=0.0, trial=trial, worth=1.0)
    how = Strategy(neurons=neurons, slopes=Slopes(bundles=Ascent(steps=2, looks=looks)))
    counts = {"sat": 0, "unsat": 0}
    for seed in range(24):
        case = random_case(seed)
        if case.truth not in counts or len(case.query.network.layers) < 2 - (low > 0):
            continue
        bounds = bounds_of(case.query)
        found = search_neurons(case.query, bounds, lambda points: None, Ticking(50), how)
        assert not (found.status == "unsat" and case.truth == "sat")
        counts[case.truth] += 1
    assert min(counts.values()) > 5


def test_where_there_is_no_layer_to_clip_nothing_is_clipped() -> None:
    network = random_network((4, 6, 3), 0)
    query = robustness_query(network, balls(random_point(4, 0), 1.0)["l2"])
    context, _ = context_and_root(
        query, bounds_of(query), UNLIMITED, Ascent(steps=1), Neurons(candidates=1)
    )
    assert Clipping.of(context, Neurons(low=3)) is None
    assert Clipping.of(context, Neurons(low=4)) is not None
    assert Clipping.of(context, Neurons(clipped=0, low=4)) is None


def test_bundles_far_from_being_closed_are_not_near() -> None:
    _, context, bundles = example("linf", 0)
    bounded = bound(context, bundles)
    linear = bounded.result.linear
    assert linear is not None
    width = 2 * context.query.domain.support(linear.weight).squeeze(-1)
    part = -linear.least.squeeze(-1) / width
    middle = float(part.median())
    assert torch.equal(near(context, bounded, middle + 1e-9), part <= middle + 1e-9)
    assert bool(near(context, bounded, 1e9).all()) and bool(near(context, bounded, torch.inf).all())
