"""The first two ends of a radius, by attacks and plain bounds, and the reduced problem of a search.

A search runs on a `SmallBall`: the ball on the neurons that plain bounds leave unstable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fgp_vnn.attack.boundary import Target, approach, polish, starts
from fgp_vnn.attack.decoupled import decouple
from fgp_vnn.budget.capacity import points_at_once
from fgp_vnn.domain.sets import Box, L2Ball
from fgp_vnn.engine.bounding import bound_root, open_disjuncts, reduce_to, refine
from fgp_vnn.engine.problem import Problem, Through
from fgp_vnn.engine.radius_ends import Ends
from fgp_vnn.search.ball import SearchBall


@dataclass(frozen=True, eq=False)
class SmallBall:
    """The reduced problem whether a ball of some radius holds a counterexample."""

    ball: SearchBall
    lift: Through  # to the network's own input
    scale: float  # a distance in the ball times this is a lower bound on the true distance
    neurons: Tensor  # indices of the ball's neurons among those of the network
    classes: list[int]  # indices of the disjuncts that plain bounds leave open


def attack_nearest(ends: Ends) -> None:
    """Lower the upper end by two minimum-norm attacks or, if they find nothing, by a longer attack
    in the largest ball of interest."""
    problem = ends.largest
    query, norm, clip = problem.query, ends.center.norm, None
    how, seed = problem.strategy.attack, problem.settings.seed
    if ends.center.clip is not None:
        low, high = (torch.from_numpy(b).to(query.domain.center) for b in ends.center.clip)
        clip = Box(low, high)
    target = Target(query.network, _origin(ends, problem), norm, how.projected.active, clip)
    begin = starts(target, how.projected.starts, seed)
    begin = begin.first(points_at_once(query.network, ends.budget.at_once))
    patience = ends.budget.share(ends.numbers.attack_share)
    found = torch.cat(
        [
            decouple(target, begin, patience, how.decoupled),
            approach(target, begin, patience, how.projected),
        ]
    )
    nearest = polish(target, found, patience, how.polish)[: how.polish.offered]
    if ends.offer(problem.lift(nearest)):
        return
    other = ends.classifier.descend(ends.center, ends.maximum, patience)
    if other is not None:
        ends.offer(torch.from_numpy(other.x).unsqueeze(0))


def _origin(ends: Ends, problem: Problem) -> Tensor:
    """The centre as a point of the problem's input space."""
    center = problem.query.domain.center
    if isinstance(problem.query.domain, L2Ball):
        return center
    return torch.from_numpy(ends.center.x).to(center)


def plain_bounds(ends: Ends, tolerance: float) -> None:
    """Raise the lower end to the largest radius that plain linear bounds (CROWN) prove, found by
    regula falsi up to a relative tolerance.

    The least margin falls as the radius grows: it is positive at `low`, not at `high`. Does nothing
    if the radius is already known to this tolerance.
    """
    if ends.plain <= tolerance or ends.budget.expired():
        return
    # If time runs out below, it has run out for every later call as well.
    ends.plain = tolerance
    low, high = 0.0, min(ends.maximum, ends.upper)
    at_low, at_high = _least(ends, 0.0), _least(ends, high)
    if at_high > 0:
        ends.raise_to(high)
        return
    side = 0
    while at_low > 0 and high - low > tolerance * high and not ends.budget.expired():
        share = at_low / (at_low - at_high) if math.isfinite(at_high) else 0.5
        middle = low + min(max(share, ends.numbers.ends), 1 - ends.numbers.ends) * (high - low)
        value = _least(ends, middle)
        if value > 0:
            ends.raise_to(middle)
            at_high = at_high / 2 if side > 0 else at_high  # the Illinois rule
            low, at_low, side = middle, value, 1
        else:
            at_low = at_low / 2 if side < 0 else at_low
            high, at_high, side = middle, value, -1


def _least(ends: Ends, radius: float) -> float:
    """Lower bound on the least margin over the ball, by plain bounds."""
    ends.largest.count(bounds=1)
    least = float(bound_root(ends.problem(radius)).min())
    return least if math.isfinite(least) else -math.inf


def small_ball(ends: Ends, radius: float) -> SmallBall | None:
    """The ball of that radius, reduced to its unstable neurons; None if plain bounds prove it."""
    problem = ends.problem(radius)
    left = open_disjuncts(problem, bound_root(problem))
    if not left:
        return None
    reduce_to(problem, left)
    if len(problem.bounds.lower) > 1:
        refine(problem, ends.budget)
        problem.drop_stable()
    if isinstance(problem.query.domain, L2Ball):
        problem.reduce_inputs()
    query, names, scale = problem.query, problem.log.names, 1.0
    size = radius
    if isinstance(query.domain, L2Ball):
        size, scale = query.domain.radius, radius / query.domain.radius
    ball = SearchBall(query, problem.bounds, _origin(ends, problem), size)
    neurons = torch.from_numpy(names.flat).to(query.network.device)
    return SmallBall(ball, problem.lift, scale, neurons, names.disjuncts.tolist())
