"""Bounds of hidden neurons over caps: they hold, and they are worth making."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.caps import Caps
from fgp_vnn.domain.sets import L2Ball
from fgp_vnn.network.model import Dense
from fgp_vnn.search.waiting_bounds import empty_ones, over_caps
from tests.domain.test_caps import in_ball, normals
from tests.helpers.small_networks import random_network, random_point

LEVELS = (0.0, 0.3, 0.6)


def example(seed: int) -> tuple[Caps, LayerBounds, LayerBounds]:
    """Caps of a ball, bounds over the ball for each, and bounds over the caps but the last."""
    network = random_network((3, 9, 8, 2), seed)
    ball = L2Ball(torch.from_numpy(random_point(3, seed)).double(), 0.8)
    level = 0.8 * torch.tensor(LEVELS, dtype=torch.float64).unsqueeze(-1)
    caps = Caps(ball, normals(len(LEVELS), 3, seed), level)
    whole = root_bounds(network, ball, budget=UNLIMITED)
    lower, upper = (
        tuple(bound.expand(len(LEVELS), -1) for bound in side)
        for side in (whole.lower, whole.upper)
    )
    before = LayerBounds(lower, upper)
    return caps, before, over_caps(network, caps, before, torch.tensor([0, 1]), UNLIMITED)


@pytest.mark.parametrize("seed", range(6))
def test_every_point_of_a_cap_is_within_its_bounds(seed: int) -> None:
    caps, _, after = example(seed)
    assert isinstance(caps.whole, L2Ball)
    points = in_ball(caps.whole, 20_000, seed)
    values = random_network((3, 9, 8, 2), seed).preactivations(points)[:-1]
    for number in range(len(LEVELS)):
        inside = caps.at(torch.tensor([number])).contains(points)
        assert int(inside.sum()) > 100
        for z, lower, upper in zip(values, after.lower, after.upper, strict=True):
            assert bool((z[inside] >= lower[number]).all())
            assert bool((z[inside] <= upper[number]).all())


@pytest.mark.parametrize("seed", range(6))
def test_thin_caps_have_narrow_bounds_and_others_keep_theirs(seed: int) -> None:
    _, before, after = example(seed)
    for old, new in zip(before.lower + before.upper, after.lower + after.upper, strict=True):
        assert torch.equal(old[2], new[2])
    for k in range(2):
        widths = after.upper[k] - after.lower[k]
        assert float(widths[1].sum()) < 0.95 * float((before.upper[k] - before.lower[k])[1].sum())


def test_bounds_that_contradict_each_other_are_empty_and_do_no_harm() -> None:
    lower = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    upper = torch.tensor([[1.0, 1.0], [1.0, 5.0]])
    bounds = LayerBounds((lower,), (upper,))
    assert empty_ones(bounds, 2, lower.device).tolist() == [False, True]
    mended = bounds.uncrossed()
    assert bool((mended.lower[0] <= mended.upper[0]).all())
    assert torch.equal(mended.upper[0][0], upper[0])


def test_a_defect_of_the_first_layer_widens_its_bounds_over_caps() -> None:
    caps, before, after = example(0)
    network = random_network((3, 9, 8, 2), 0)
    first = network.layers[0]
    assert isinstance(first, Dense)
    unsure = replace(first, defect=torch.full_like(first.bias, 1e-3))
    network = replace(network, layers=(unsure, *network.layers[1:]))
    wide = LayerBounds(
        tuple(b - 1 for b in before.lower), tuple(b + 1 for b in before.upper)
    )  # so that nothing but the caps bounds the neurons
    at = torch.tensor([0, 1])
    known = over_caps(network, caps, wide, at, UNLIMITED)
    assert bool((known.upper[0][at] >= after.upper[0][at] + 0.9e-3).all())
    assert bool((known.lower[0][at] <= after.lower[0][at] - 0.9e-3).all())
