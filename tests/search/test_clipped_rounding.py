"""Rounding of the bounds of hidden neurons over what linear bounds leave."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fgp_vnn.search.bundles import bound
from fgp_vnn.search.clipped_neurons import clip_neurons, lowered, outwards
from tests.helpers.small_networks import sample
from tests.search.test_clipped_neurons import KINDS, clipping, decide, example


def test_what_rounding_may_have_added_is_taken_off_a_linear_bound() -> None:
    _, context, bundles = example("linf", 0)
    linear = bound(context, bundles).result.linear
    assert linear is not None
    weight, value = lowered(linear._replace(least=linear.nominal - 0.25))
    assert torch.equal(weight, linear.weight.squeeze(1))
    gap = linear.constant.squeeze(1) - value
    assert bool((gap >= 0.25).all()) and bool((gap <= 0.25 + 1e-9).all())


def test_bounds_that_wait_with_their_bundle_are_rounded_outwards() -> None:
    _, context, _ = example("linf", 0)
    held = decide(context).first(3)
    assert held["lower"].dtype == torch.float32
    lower, upper = (torch.cat(s, -1) for s in (context.bounds.lower, context.bounds.upper))
    assert bool((held["lower"].double() <= lower).all())
    assert bool((held["upper"].double() >= upper).all())


def test_bounds_in_float32_are_rounded_outwards() -> None:
    _, context, _ = example("linf", 0)
    assert context.coarse is not None
    found = clipping(context, 4)
    assert found.network.dtype == torch.float32
    bounds = outwards(context.bounds, found.network)
    for side, exact in ((bounds.lower, context.bounds.lower), (bounds.upper, context.bounds.upper)):
        assert all(part.dtype == torch.float32 for part in side)
        apart = torch.cat([a.double() - b for a, b in zip(side, exact, strict=True)], -1)
        assert bool((apart <= 0 if side is bounds.lower else apart >= 0).all())
        assert bool((apart != 0).any())


@pytest.mark.parametrize("kind", KINDS)
def test_linear_bounds_that_overflow_clip_nothing(kind: str) -> None:
    _, context, bundles = example(kind, 1)
    bounded = bound(context, bundles)
    linear = bounded.result.linear
    assert linear is not None
    none = torch.full_like(linear.least, -torch.inf)
    lost = replace(bounded, result=bounded.result._replace(linear=linear._replace(least=none)))
    at = torch.arange(len(bundles.signs))
    lower, upper = clip_neurons(context, clipping(context, 8), lost, at)
    points = sample(context.query.domain, 5000, 1)
    z = torch.cat(list(context.query.network.preactivations(points))[:-1], -1)
    for number, signs in enumerate(bundles.signs):
        inside = (z * signs >= 0).all(-1)
        assert bool(((z >= lower[number]) & (z <= upper[number]))[inside].all())
