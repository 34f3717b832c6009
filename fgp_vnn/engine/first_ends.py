"""The first two ends of a radius, by attacks and plain bounds, and the question made small.

What is left to a search is a `Stage`: the ball on those neurons that plain bounds leave unstable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fgp_vnn.attack.boundary import Approach, Target, approach, polish, starts
from fgp_vnn.attack.decoupled import Decoupled, decouple
from fgp_vnn.bounds.hidden import refine_layers
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import points_at_once
from fgp_vnn.domain.sets import Box, L2Ball
from fgp_vnn.engine.certifier import ball
from fgp_vnn.engine.decide import remaining, shrink
from fgp_vnn.engine.ends import Ends
from fgp_vnn.query import Query
from fgp_vnn.search.ball import Ball
from fgp_vnn.strategy import Ascent
from fgp_vnn.transform.inputs import Lift, reduce_inputs
from fgp_vnn.transform.stable import collapse

SLOPES = Ascent(steps=20, rate=0.3, decay=0.95)
ATTACK_SHARE = 0.4  # of the time, at most, for attacks
ROUGH, FINE = 0.1, 1e-3  # relative, how closely the radius of plain bounds is found
Through = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Stage:
    """The question whether a ball of some radius holds a counterexample, made small."""

    ball: Ball
    lift: Through  # to the network's own input
    scale: float  # a distance in the ball times this is at most the true distance
    neurons: Tensor  # places of the ball's neurons among those of the network
    classes: list[int]  # numbers of the disjuncts that plain bounds leave open


def reduced(ends: Ends, radius: float) -> tuple[Query, Through, float]:
    """The query about the ball of that radius, in the row space of the first layer if it can be."""
    certifier = ends.certifier
    device = certifier.network.device
    query = certifier.query(ball(ends.x, radius, ends.norm, ends.clip, device), ends.label)
    domain = query.domain
    if certifier.space is None or not isinstance(domain, L2Ball):
        return query, lambda points: points, 1.0
    small, lift = certifier.space.restrict(query, domain)
    return small, lift, 1 / certifier.space.stretch


def attack(ends: Ends) -> None:
    """The upper end, by minimum-norm attacks of two kinds."""
    query, lift, _ = reduced(ends, 1.0)
    clip = None
    if ends.clip is not None:
        low, high = (torch.full_like(query.domain.center, bound) for bound in ends.clip)
        clip = Box(low, high)
    center = torch.from_numpy(ends.x).to(query.domain.center)
    center = query.domain.center if isinstance(query.domain, L2Ball) else center
    target = Target(query.network, center, ends.norm, clip)
    begin = starts(target, seed=ends.certifier.settings.seed)
    begin = begin.first(points_at_once(query.network, ends.budget.at_once))
    patience = ends.budget.share(ATTACK_SHARE)
    found = [
        decouple(target, begin, patience, Decoupled()),
        approach(target, begin, patience, Approach()),
    ]
    if not ends.offer(lift(polish(target, torch.cat(found), patience)[:3])):
        _descend(ends, patience)


def _descend(ends: Ends, budget: Budget) -> None:
    """A longer attack in the largest ball of interest, where projections lead nowhere."""
    witness = ends.certifier.descend(ends.x, ends.maximum, ends.norm, ends.clip, ends.label, budget)
    if witness is not None:
        ends.offer(torch.from_numpy(witness.x).unsqueeze(0))


def plain_bounds(ends: Ends, tolerance: float) -> None:
    """The greatest radius that linear bounds prove by themselves (CROWN), by regula falsi.

    The least margin falls as the radius grows: positive at `low`, not at `high`. Nothing is done
    if that has been found before, as closely.
    """
    if ends.plain <= tolerance or ends.budget.expired():
        return
    ends.plain = tolerance
    low, high = 0.0, min(ends.maximum, ends.upper)
    at_low, at_high = _least(ends, 0.0), _least(ends, high)
    if at_high > 0:
        ends.raise_to(high)
        return
    side = 0
    while at_low > 0 and high - low > tolerance * high and not ends.budget.expired():
        share = at_low / (at_low - at_high) if math.isfinite(at_high) else 0.5
        middle = low + min(max(share, 0.05), 0.95) * (high - low)
        value = _least(ends, middle)
        if value > 0:
            ends.raise_to(middle)
            at_high = at_high / 2 if side > 0 else at_high  # the Illinois rule
            low, at_low, side = middle, value, 1
        else:
            at_low = at_low / 2 if side < 0 else at_low
            high, at_high, side = middle, value, -1


def _least(ends: Ends, radius: float) -> float:
    """The least margin that plain bounds prove over the ball."""
    ends.count("bounds")
    query, _, _ = reduced(ends, radius)
    least = float(shrink(query, ends.budget).least.min())
    return least if math.isfinite(least) else -math.inf


def stage(ends: Ends, radius: float) -> Stage | None:
    """The ball of that radius on its unstable neurons; None if plain bounds prove it."""
    query, lift, scale = reduced(ends, radius)
    small = shrink(query, ends.budget)
    classes = torch.nonzero(~query.closed(small.least)).flatten().tolist()
    if not classes:
        return None
    neurons, bounds = small.neurons, small.bounds
    query = small.query.only(classes)
    if len(bounds.lower) > 1:
        bounds = refine_layers(query, bounds, SLOPES, ends.budget)
        collapsed, kept = collapse(query, bounds, budget=ends.budget)
        neurons = neurons[remaining(query, collapsed, bounds)]
        query, bounds = collapsed, kept
    origin = query.domain.center
    if not isinstance(query.domain, L2Ball):
        origin = torch.from_numpy(ends.x).to(origin)
        return Stage(Ball(query, bounds, origin, radius), lift, scale, neurons, classes)
    before = query.domain.radius
    query, inner = reduce_inputs(query)
    if not isinstance(query.domain, L2Ball):
        raise AssertionError("a ball stays a ball")
    scale *= before / query.domain.radius
    around = Ball(query, bounds, query.domain.center, query.domain.radius)
    return Stage(around, _then(inner, lift), scale, neurons, classes)


def _then(inner: Lift, outer: Through) -> Through:
    return lambda points: outer(inner(points))
