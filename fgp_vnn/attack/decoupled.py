"""A minimum-norm attack that updates the length and the direction of a perturbation separately.

A ball around the centre shrinks when the point has crossed a boundary and grows when it has not;
each step goes down the slope of a margin and projects back into the ball (after DDN, Rony et al.,
2019, and FMN, Pintor et al., 2021). Until a start has crossed for the first time, its ball reaches
a little beyond where the boundary would be if the margin were affine.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fgp_vnn.attack.boundary import Starts, Target, first_of, nearer
from fgp_vnn.attack.descent import unit_step
from fgp_vnn.base.robustness import Norm
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.regions.forms import gradient
from fgp_vnn.strategy import Decoupled

DUALS: dict[Norm, float] = {"l2": 2.0, "linf": 1.0, "l1": math.inf}


def decouple(target: Target, begin: Starts, budget: Budget, attack: Decoupled) -> Tensor:
    """The nearest points [points, inputs] of other classes found from the starts, nearest first."""
    x, rows = begin.first(math.ceil(attack.share * len(begin.points)))
    center, ball = target.center, _unit_ball(target)
    found = torch.full_like(x, torch.inf)
    radius = x.new_full((len(x),), torch.inf)
    for k in range(attack.steps):
        outputs, slope = gradient(target.network, x, rows)
        found = nearer(target, found, x, outputs)
        if budget.expired():
            break
        slope = _free(target, x, slope)
        change = _between(attack.change, k / attack.steps)
        best = target.distance(found)
        estimate = _estimate(target, x, slope, (outputs * rows).sum(-1))
        larger = torch.where(best < torch.inf, radius, estimate) * (1 + change)
        smaller = torch.minimum(radius * (1 - change), best)
        radius = torch.where(outputs.amin(-1) <= 0, smaller, larger)
        # In units of the radius, so that one projection serves all points.
        scale, length = radius.unsqueeze(-1), _between(attack.length, k / attack.steps)
        # For l1, whose steepest ascent moves a single input, the direction of l2 is used.
        moved = (x - center) / scale - length * unit_step(ball, slope)
        x = center + scale * ball.project(moved)
        x = x if target.clip is None else target.clip.project(x)
    return first_of(target, found, attack.kept)


def _between(ends: tuple[float, float], done: float) -> float:
    first, last = ends
    return last + (first - last) * (1 + math.cos(math.pi * done)) / 2


def _unit_ball(target: Target) -> Domain:
    zero, one = torch.zeros_like(target.center), torch.ones_like(target.center)
    if target.norm == "linf":
        return Box(-one, one)
    return L2Ball(zero, 1.0) if target.norm == "l2" else L1Ball(zero, 1.0)


def _free(target: Target, x: Tensor, slope: Tensor) -> Tensor:
    """The slope, set to 0 at inputs where a step down would leave the clip box."""
    if target.clip is None:
        return slope
    low, high = x <= target.clip.lower, x >= target.clip.upper
    return torch.where((low & (slope > 0)) | (high & (slope < 0)), 0.0, slope)


def _estimate(target: Target, x: Tensor, slope: Tensor, values: Tensor) -> Tensor:
    """Distance from the centre [points] at which margins with these values at x would be 0 if they
    were affine: the distance of x plus the value divided by the dual norm of the slope."""
    size: Tensor = torch.linalg.vector_norm(slope, DUALS[target.norm], dim=-1)
    return target.distance(x) + values / size.clamp(min=torch.finfo(x.dtype).eps)
