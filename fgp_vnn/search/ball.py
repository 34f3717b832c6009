"""The ball that is searched for the nearest counterexample, and distances of regions in it.

The nearest point of a polyhedron is found in l2 by alternating projections and a final linear
solve, in other norms by primal-dual steps with the projections of the norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.query import Query
from fgp_vnn.regions.halfspaces import HalfSpaces
from fgp_vnn.regions.nearest_points import nearest, nearest_in_norm
from fgp_vnn.regions.projections import alternate
from fgp_vnn.strategy import Projections

Number = TypeVar("Number", float, Tensor)


@dataclass(frozen=True, eq=False)
class SearchBall:
    """A query about a ball around `origin`, and bounds of its neurons."""

    query: Query
    bounds: LayerBounds
    origin: Tensor  # [inputs]
    radius: float

    def free(self) -> Domain:
        """The whole ball, without a clip box that cuts it."""
        domain = self.query.domain
        if isinstance(domain, Box):
            return L1Ball(self.origin, self.radius).box()
        return domain.ball if isinstance(domain, Clipped) else domain

    @cached_property
    def _moved(self) -> float:
        """Upper bound on how far rounding moved the centre of the whole ball from the origin."""
        moved = float((self.free().center - self.origin).abs().sum())
        return unit(self.origin.dtype).grow(len(self.origin) + 4) * moved

    def distance(self, part: Number) -> Number:
        """Lower bound on the distance from the origin to points that are not inside `part` times
        the whole ball."""
        return part * self.radius * (1 - unit(self.origin.dtype).share(4)) - self._moved

    def part(self, distance: Number) -> Number:
        """The `part`, rounded down, for which `part` times the whole ball contains only points
        nearer than `distance` to the origin."""
        return (distance - self._moved) / (self.radius * unit(self.origin.dtype).grow(4))

    def holding(self, distance: float) -> float:
        """The `part`, at most 1, for which `part` times the whole ball contains every point of it
        nearer than `distance` to the origin."""
        room = unit(self.origin.dtype).grow(8)
        return min((distance + self._moved) / self.radius * room, 1.0)

    def within(self, radius: float) -> Domain:
        """The points of the domain at most `radius` from the origin."""
        domain, radius = self.query.domain, min(radius, self.radius)
        if isinstance(domain, (L2Ball, L1Ball)):
            return replace(domain, radius=radius)
        if isinstance(domain, Clipped):
            return replace(domain, ball=replace(domain.ball, radius=radius))
        if isinstance(domain, Box):
            around = L1Ball(self.origin, radius).box()
            lower = torch.maximum(domain.lower, around.lower)
            return Box(lower, torch.minimum(domain.upper, around.upper))
        raise TypeError(f"a {type(domain).__name__} is no ball")


@dataclass(frozen=True)
class Reporter:
    """Callbacks to the owner of the lower and upper bound on the radius, in the ball's units."""

    goal: Callable[[], float]  # the level at which a bundle is closed
    lower: Callable[[float], None]  # called with each new certified radius
    offer: Callable[[Tensor], bool]  # takes points of other classes; returns whether one is nearer


def distances(
    ball: SearchBall,
    spaces: HalfSpaces,
    reporter: Reporter,
    budget: Budget,
    projections: Projections,
) -> Tensor:
    """Lower bounds [polyhedra] on the distances from the origin to intersections of half-spaces.

    Points found nearer than the goal are offered, which may lower the goal. When time is up, the
    bounds proved so far are returned.
    """
    free = ball.free()
    if len(ball.origin) <= projections.clip_inputs:
        spaces = _with_box(spaces, ball)
    find = nearest if isinstance(free, L2Ball) else nearest_in_norm
    look = projections.look
    result = spaces.values.new_zeros(len(spaces.values))
    for steps in projections.nearest:
        left = torch.nonzero(~(result >= reporter.goal())).flatten()
        if not len(left) or budget.expired():
            break
        mine = HalfSpaces(*(part[left] for part in spaces))
        part, points = find(free, mine, budget, steps=steps, look=look)
        reached = ball.distance(part)
        near = ~(reached >= reporter.goal())
        if bool(near.any()):
            reporter.offer(points[near])
            # An empty intersection has no nearest point: test whether it has one within the goal.
            goal = ball.within(reporter.goal())
            moved = about(mine, goal.center - free.center)
            # No candidate is confirmed: the nearest points have already been offered.
            empty = alternate(goal, moved, lambda points: None, budget, steps, projections).closed
            reached = torch.where(empty, torch.inf, reached)
        result[left] = torch.fmax(result[left], reached)  # ignores NaN
    return result


def about(spaces: HalfSpaces, shift: Tensor) -> HalfSpaces:
    """The half-spaces relative to a centre moved by `shift` [inputs], with errors that also cover
    the rounding of `shift` itself."""
    size_of, inputs = unit(shift.dtype), len(shift)
    values = spaces.values + spaces.rows @ shift
    terms = spaces.values.abs() + spaces.rows.abs() @ shift.abs()
    small = size_of.underflow * (2 * inputs + 4 + spaces.rows.abs().sum(-1))
    errors = size_of.grow(2) * spaces.errors + size_of.share(inputs + 6) * terms + small
    return spaces._replace(values=values, errors=errors)


def _with_box(spaces: HalfSpaces, ball: SearchBall) -> HalfSpaces:
    """The half-spaces and those of the clip box, if there is one."""
    domain = ball.query.domain
    box = domain.clip if isinstance(domain, Clipped) else domain
    if not isinstance(box, Box):
        return spaces
    count, _, inputs = spaces.rows.shape
    eye = torch.eye(inputs, dtype=spaces.rows.dtype, device=spaces.rows.device)
    center = ball.free().center
    rows = torch.cat([-eye, eye]).expand(count, -1, -1)
    values = torch.cat([box.lower - center, center - box.upper]).expand(count, -1)
    size_of = unit(rows.dtype)
    errors = size_of.share(2) * values.abs() + size_of.underflow  # of one subtraction
    parts = (rows, values, errors)
    return HalfSpaces(*(torch.cat(pair, 1) for pair in zip(spaces, parts, strict=True)))
