"""Distances of the parts of regions that other classes have, by projections.

In l2 the nearest point of a polyhedron is found exactly. The projections are Euclidean, so that in
other norms their multipliers prove less than the distance itself: there the last question is only
whether such a part meets the ball of the radius that is to be proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fgp_vnn.bounds import LayerBounds
from fgp_vnn.caps import SHAVE
from fgp_vnn.deadline import Deadline
from fgp_vnn.domain import Box, Clipped, Domain, L1Ball, L2Ball
from fgp_vnn.query import Query
from fgp_vnn.search.projections import HalfSpaces, alternate, nearest

STEPS = (400, 4000)  # of alternating projections, at first and where that was not enough


@dataclass(frozen=True, eq=False)
class Ball:
    """A query about a ball around `origin`, and bounds of its neurons."""

    query: Query
    bounds: LayerBounds
    origin: Tensor  # [inputs]
    radius: float

    def free(self) -> Domain:
        """The whole ball, where a clip box cuts it."""
        domain = self.query.domain
        if isinstance(domain, Box):
            return Box(self.origin - self.radius, self.origin + self.radius)
        return domain.ball if isinstance(domain, Clipped) else domain

    def within(self, radius: float) -> Domain:
        """The part of the domain that is no farther from the origin than that."""
        return _shrunk(self.query.domain, self.origin, min(radius, self.radius))


@dataclass(frozen=True)
class Reporter:
    """What the search asks of those who hold the two ends, in distances of the ball."""

    goal: Callable[[], float]  # the level at which a bundle is done with
    lower: Callable[[float], None]  # hears of a new certified radius
    offer: Callable[[Tensor], bool]  # takes points of other classes; whether one is nearer


def distances(
    ball: Ball,
    spaces: HalfSpaces,
    reporter: Reporter,
    deadline: Deadline,
    *,
    tries: tuple[int, ...] = STEPS,
) -> Tensor:
    """Lower bounds [cases] of the distances of intersections of half-spaces from the origin.

    Points that are reached nearer than the goal are offered, which may bring the goal down.
    """
    free = ball.free()
    result = spaces.values.new_zeros(len(spaces.values))
    for steps in tries:
        left = torch.nonzero(result < reporter.goal()).flatten()
        if not len(left):
            break
        mine = HalfSpaces(*(part[left] for part in spaces))
        part, points = nearest(free, mine, steps=steps)
        reached = part * ball.radius * (1 - SHAVE)
        near = reached < reporter.goal()
        if bool(near.any()):
            reporter.offer(points[near])
        if not isinstance(free, L2Ball) and bool((reached < reporter.goal()).any()):
            goal = ball.within(reporter.goal() * (1 + SHAVE))
            _, empty = alternate(goal, mine, _taken_by(reporter), deadline, steps=steps)
            reached = torch.where(empty, torch.inf, reached)
        result[left] = torch.maximum(result[left], reached)
    return result


def _taken_by(reporter: Reporter) -> Callable[[Tensor], None]:
    """Points go to the reporter, and the projections go on."""

    def take(points: Tensor) -> None:
        reporter.offer(points)

    return take


def _shrunk(domain: Domain, origin: Tensor, radius: float) -> Domain:
    """The points of a domain no farther from the origin than the radius, in its own norm."""
    if isinstance(domain, L2Ball):
        return L2Ball(domain.center, radius)
    if isinstance(domain, L1Ball):
        return L1Ball(domain.center, radius)
    if isinstance(domain, Box):
        lower = torch.maximum(domain.lower, origin - radius * (1 + SHAVE))
        return Box(lower, torch.minimum(domain.upper, origin + radius * (1 + SHAVE)))
    if isinstance(domain, Clipped):
        ball = _shrunk(domain.ball, origin, radius)
        if isinstance(ball, (L2Ball, L1Ball)):
            return Clipped(ball, domain.clip)
    raise TypeError(f"a {type(domain).__name__} is no ball")
