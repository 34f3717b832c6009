"""Bundles over intervals of smooth neurons: what is bounded, and that nothing gets lost."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.query import Query
from fgp_vnn.search.bundles import BundleContext, Bundles, bound, children, context_and_root, cut
from fgp_vnn.search.choice import choose
from fgp_vnn.search.split_points import divisible, split_points
from fgp_vnn.strategy import Ascent, Neurons
from tests.helpers.random_networks import generator
from tests.helpers.smooth_networks import sampled, smooth_case


def set_up(number: int, steps: int = 3) -> tuple[Query, BundleContext, Bundles]:
    query = smooth_case(number, 400).query
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    return query, *context_and_root(
        query, bounds, UNLIMITED, Ascent(steps=steps), Neurons(candidates=3)
    )


def arriving(query: Query, points: Tensor) -> Tensor:
    """What arrives at all neurons, [points, neurons]."""
    return torch.cat(query.network.preactivations(points)[:-1], -1)


def relus(query: Query) -> Tensor:
    """Which neurons [neurons] are ReLUs."""
    pairs = zip(query.network.activations, query.network.widths, strict=True)
    return torch.cat([torch.full((count,), f is RELU) for f, count in pairs])


def around(query: Query, root: Bundles, z: Tensor, seed: int) -> Bundles:
    """A bundle around each point at which z [points, neurons] arrives: some intervals end near it,
    at either side or at both, some ReLUs have its signs, and multipliers are anything."""
    source = generator(seed)
    near = (z.abs() + 0.1) * torch.rand(2, *z.shape, generator=source, dtype=z.dtype)
    ends = torch.stack([z - near[0], z + near[1]], -2).float().double()
    ends = torch.stack([torch.minimum(ends[:, 0], z), torch.maximum(ends[:, 1], z)], -2)
    closed = torch.rand(ends.shape, generator=source) < 0.4
    kinds = relus(query)
    open_ends = torch.tensor([-torch.inf, torch.inf], dtype=z.dtype).view(1, 2, 1)
    ends = torch.where(closed & ~kinds, ends, open_ends)
    ends = ends if root.ends.shape[-1] else ends[..., :0]
    signs = torch.where(closed[:, 0] & kinds, z.sign(), 0.0).to(torch.int8)
    many = root.at(torch.zeros(len(z), dtype=torch.long))
    alpha, beta = (
        torch.rand(part.shape, generator=source, dtype=z.dtype) for part in (many.alpha, many.beta)
    )
    return replace(many, signs=signs, ends=ends, alpha=alpha, beta=beta)


def inside(query: Query, bundles: Bundles, points: Tensor) -> Tensor:
    """Which points [bundles, points] lie in which bundles."""
    z = arriving(query, points).unsqueeze(0)
    found = (z * (bundles.signs * relus(query)).unsqueeze(1) >= 0).all(-1)
    if bundles.ends.shape[-1]:
        lower, upper = bundles.ends.unsqueeze(1).unbind(-2)
        found = found & ((z >= lower) & (z <= upper)).all(-1)
    return found


@settings(max_examples=12)
@given(number=st.integers(0, 100_000), steps=st.sampled_from([0, 3]))
def test_a_bundle_is_never_bounded_above_a_row(number: int, steps: int) -> None:
    """For any slopes and multipliers to start from, and wherever the ascent ends."""
    query, context, root = set_up(number, steps)
    points = sampled(query.network, query.domain.box(), 300, number)
    bundles = around(query, root, arriving(query, points)[:5], number)
    bounded = bound(context, bundles)
    g, member = query.network(points)[:, 0], inside(query, bundles, points)
    known = g.isfinite()  # a logarithm has no values below 0
    for i in range(5):
        assert member[i, i] or not known[i]
        seen = g[member[i] & known]
        weight = float(bounded.bundles.weights[i].sum())
        room = 1e-9 * (1 + seen.abs())
        above = weight * seen + room >= bounded.result.least[i]
        assert bool(above.all()), query.network.smooth_names


@settings(max_examples=7)
@given(number=st.integers(0, 100_000))
def test_the_halves_of_a_bundle_cover_it(number: int) -> None:
    query, context, root = set_up(number)
    points = sampled(query.network, query.domain.box(), 200, number)
    bounded = bound(context, around(query, root, arriving(query, points)[:6], number))
    at = torch.nonzero(bounded.crossing.any(-1)).flatten()
    if not len(at):
        return
    neuron = choose(context, bounded, at)
    assert bool(bounded.crossing[at].gather(-1, neuron.unsqueeze(-1)).all())
    parents = bounded.bundles.at(at)
    made = children(parents, neuron, cut(context, bounded, at, neuron))
    before = inside(query, parents, points)
    first, last = inside(query, made, points).chunk(2)
    assert torch.equal(before, first | last)
    both = (first & last).sum()  # but for points on the cut
    assert int(both) <= int((arriving(query, points) == 0).any(-1).sum()) * len(at) + len(at)


def test_points_at_which_neurons_are_split_lie_inside_their_intervals() -> None:
    seen = 0
    for number in range(12):
        context = set_up(number)[1]
        mask = torch.cat([m[0] for m in divisible(context.bounds)])
        lower, upper = (
            torch.cat([side[0] for side in sides])
            for sides in (context.bounds.lower, context.bounds.upper)
        )
        neurons = torch.nonzero(mask).flatten()
        if not len(neurons):
            continue
        points = split_points(context.bounds, neurons)
        assert torch.equal(points, points.float().double())
        assert bool(((lower[neurons] < points) & (points < upper[neurons])).all())
        seen += len(neurons)
    assert seen > 40


def test_narrower_intervals_have_tighter_bounds() -> None:
    tighter = 0
    for number in range(5):
        query, context, root = set_up(number, 4)
        if query.network.piecewise_linear:
            continue
        bounded = bound(context, root)
        at = torch.arange(1)
        if not bool(bounded.crossing.any()):
            continue
        neuron = choose(context, bounded, at)
        where = cut(context, bounded, at, neuron)
        both = bound(context, children(bounded.bundles, neuron, where))
        tighter += float(both.result.least.min()) > float(bounded.result.least[0]) + 1e-6
    assert tighter >= 4
