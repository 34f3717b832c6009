"""A minimum-norm attack: projections onto decision boundaries, from many starts at once.

Near x the network is affine, so the boundary with another class is a hyperplane there. A step goes
to a mix of two projections onto it, of x itself and of the centre; a point beyond the boundary is
first moved back towards the centre (the attack FAB, Croce and Hein, 2020). The best points, of this
attack or another, are then polished: moved along the boundary towards the centre's projection, and
along the ray from the centre by bisection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.draws import Draws
from fgp_vnn.base.robustness import Norm
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Network
from fgp_vnn.regions.forms import gradient
from fgp_vnn.strategy import Polish, Projected

ORDERS: dict[Norm, float] = {"l2": 2.0, "linf": math.inf, "l1": 1.0}


@dataclass(frozen=True, eq=False)
class Target:
    """A network whose outputs are the margins of the centre's class, all positive at the centre."""

    network: Network
    center: Tensor  # [inputs]
    norm: Norm
    active: int  # iterations of the active-set projection in the clip box
    clip: Box | None = None  # counterexamples have to lie in this box

    def distance(self, points: Tensor) -> Tensor:
        """Distance of each point from the centre, [points]."""
        result: Tensor = torch.linalg.vector_norm(points - self.center, ORDERS[self.norm], dim=-1)
        return result


class Starts(NamedTuple):
    """Starting points of an attack, and the margin that each one pushes down."""

    points: Tensor  # [starts, inputs]
    rows: Tensor  # [starts, outputs] one-hot: the margin of each start

    def first(self, count: int) -> Starts:
        return Starts(self.points[:count], self.rows[:count])


def starts(target: Target, least: int, seed: int) -> Starts:
    """At least `least` starts, and at least four per class: the centre first, then random points at
    0.5 to 4 times the estimated distance of the boundary."""
    count = target.network.outputs
    times = max(4, -(-least // count))
    rows = torch.eye(count).to(target.center).repeat(times, 1)
    noise = Draws(seed).normal(len(rows), len(target.center)).to(target.center)
    noise = noise / target.distance(target.center + noise).unsqueeze(-1).clamp(min=1e-30)
    scales = [0.0, *(0.5 * 2.0 ** (k % 4) for k in range(times - 1))]
    spread = torch.tensor(scales).to(target.center).repeat_interleave(count).unsqueeze(-1)
    points = target.center + _outlook(target) * spread * noise
    return Starts(points if target.clip is None else target.clip.project(points), rows)


def _outlook(target: Target) -> Tensor:
    """Distance of the nearest boundary if the network were affine, with its slope at the centre."""
    rows = torch.eye(target.network.outputs).to(target.center)
    center = target.center.expand(len(rows), -1)
    values, slope = gradient(target.network, center, rows)
    projected = _onto_hyperplanes(target, center, slope, values.diagonal())
    return target.distance(projected).min()


def polish(target: Target, points: Tensor, budget: Budget, how: Polish) -> Tensor:
    """The nearest of the given points of other classes, moved nearer along their boundaries.

    Each round projects the centre onto the boundary's hyperplane at each point, tries several
    fractions of the way there, and moves each trial point along its ray from the centre onto the
    boundary.
    """
    points = first_of(target, points, how.count)
    if not len(points):
        return points
    rough, fine = how.bisections
    points = _pulled(target, points, rough, budget)
    for _ in range(how.rounds):
        if budget.expired():
            break
        outputs = target.network(points)
        rows = torch.nn.functional.one_hot(outputs.argmin(-1), outputs.shape[-1]).to(points)
        values, slope = gradient(target.network, points, rows)
        center = target.center.expand_as(points)
        at_center = values.amin(-1) + ((center - points) * slope).sum(-1)
        goal = _onto_hyperplanes(target, center, slope, at_center)
        moved = [torch.lerp(points, goal, share) for share in how.shares]
        trial = _pulled(target, torch.cat(moved), rough, budget).view(len(moved), *points.shape)
        length = target.distance(trial)  # [shares, points]
        best = length.argmin(0)
        index = torch.arange(len(points), device=best.device)
        gained = length[best, index] < target.distance(points) * (1 - 1e-6)
        points = torch.where(gained.unsqueeze(-1), trial[best, index], points)
        if not bool(gained.any()):
            break
    return first_of(target, _pulled(target, points, fine, budget), how.count)


def first_of(target: Target, points: Tensor, count: int) -> Tensor:
    """The `count` finite points nearest to the centre, nearest first."""
    points = points[points.isfinite().all(-1)]
    return points[target.distance(points).argsort()[:count]]


def nearer(target: Target, old: Tensor, new: Tensor, outputs: Tensor) -> Tensor:
    """Each new point if it is nearer than the old one and its outputs are those of another class,
    else the old one; an infinite point stands for "none"."""
    better = (outputs.amin(-1) <= 0) & (target.distance(new) < target.distance(old))
    return torch.where(better.unsqueeze(-1), new, old)


def approach(target: Target, begin: Starts, budget: Budget, attack: Projected) -> Tensor:
    """The nearest points [points, inputs] of other classes found from the starts, nearest first."""
    x, rows = begin
    center = target.center
    found = torch.full_like(x, torch.inf)
    for _ in range(attack.steps):
        outputs, slope = gradient(target.network, x, rows)
        found = nearer(target, found, x, outputs)
        if budget.expired():
            break
        crossed = outputs.amin(-1, keepdim=True) <= 0
        value = (outputs * rows).sum(-1)
        back = torch.where(crossed, attack.back, 1.0).to(x)
        value = value + ((back - 1) * (x - center) * slope).sum(-1)
        x = torch.lerp(center.expand_as(x), x, back)
        x = _mixed(target, x, slope, value, attack)
    return first_of(target, found, attack.kept)


def _mixed(target: Target, x: Tensor, slope: Tensor, value: Tensor, attack: Projected) -> Tensor:
    """Step to a mix of the projections of x and of the centre: the centre's has the weight
    d(x) / (d(x) + d(centre)), at most `attack.bias`, where d is the distance to the hyperplane."""
    center = target.center.expand_as(x)
    own = _onto_hyperplanes(target, x, slope, value) - x
    at_center = value + ((center - x) * slope).sum(-1)
    central = _onto_hyperplanes(target, center, slope, at_center) - center
    order = ORDERS[target.norm]
    near = torch.linalg.vector_norm(own, order, dim=-1)
    far = torch.linalg.vector_norm(central, order, dim=-1)
    tiny = torch.finfo(x.dtype).tiny
    share = (near / (near + far).clamp(min=tiny)).clamp(max=attack.bias).unsqueeze(-1)
    step = torch.lerp(x + attack.overshoot * own, center + attack.overshoot * central, share)
    return step if target.clip is None else target.clip.project(step)


def _onto_hyperplanes(target: Target, points: Tensor, slope: Tensor, values: Tensor) -> Tensor:
    """Projections of `points`, in the target's norm and box, onto the zero sets of affine functions
    with the given values [points] at `points` and gradients `slope` [points, inputs]."""
    values = values.unsqueeze(-1)
    if target.clip is not None:
        direction = -values.sign() * slope.sign()
        ahead = torch.where(direction > 0, target.clip.upper - points, points - target.clip.lower)
        room, size = ahead.clamp(min=0), slope.abs()
        if target.norm == "l1":
            return points + direction * _by_largest(size, values.abs(), room)
        return points + direction * _evenly(target, size, values.abs(), room)
    tiny = torch.finfo(slope.dtype).tiny
    if target.norm == "l2":
        return points - values / slope.square().sum(-1, keepdim=True).clamp(min=tiny) * slope
    if target.norm == "linf":
        return points - values / slope.abs().sum(-1, keepdim=True).clamp(min=tiny) * slope.sign()
    steepest = slope.abs().argmax(-1, keepdim=True)
    along = slope.gather(-1, steepest)
    along = torch.where(along == 0, tiny, along)
    return points.scatter_add(-1, steepest, -values / along)


def _by_largest(size: Tensor, need: Tensor, room: Tensor) -> Tensor:
    """Moves with sum size * move = `need` and the least l1 norm: the steepest inputs move first."""
    order = size.argsort(dim=-1, descending=True)
    steep, space = size.gather(-1, order), room.gather(-1, order)
    gain = torch.where(steep > 0, steep * space, 0.0)
    before = torch.nn.functional.pad(gain.cumsum(-1)[..., :-1], (1, 0))
    tiny = torch.finfo(size.dtype).tiny
    left = (need - before).clamp(min=0) / steep.clamp(min=tiny)
    move = torch.where(steep > 0, torch.minimum(left, space), 0.0)
    return torch.zeros_like(size).scatter(-1, order, move)


def _evenly(target: Target, size: Tensor, need: Tensor, room: Tensor) -> Tensor:
    """Moves with sum size * move = `need` and the least l2 or l-infinity norm: all inputs move by a
    multiple of the norm's steepest direction, each at most as far as its `room`."""
    pace = size if target.norm == "l2" else (size > 0).to(size)
    tiny = torch.finfo(size.dtype).tiny
    move = torch.zeros_like(size)
    free = torch.ones_like(size, dtype=torch.bool)
    for _ in range(target.active):
        stuck = torch.where(free, 0.0, size * room).sum(-1, keepdim=True)
        gain = torch.where(free, size * pace, 0.0).sum(-1, keepdim=True).clamp(min=tiny)
        move = torch.where(free, pace * ((need - stuck).clamp(min=0) / gain), room)
        free = free & (move < room)
        move = torch.minimum(move, room)
    return move


def _pulled(target: Target, points: Tensor, bisections: int, budget: Budget) -> Tensor:
    """Move each point along its ray from the centre to the boundary, by bisection; points that end
    in the centre's class or outside the clip box become infinite."""
    center = target.center
    low, high = points.new_zeros(len(points), 1), points.new_ones(len(points), 1)
    short = target.network(points).amin(-1, keepdim=True) > 0
    # A point that has not crossed yet may do so a little farther out.
    high = torch.where(short, 1.25, high)
    for _ in range(bisections):
        if budget.expired():
            break
        middle = (low + high) / 2
        crossed = target.network(center + middle * (points - center)).amin(-1, keepdim=True) <= 0
        low, high = torch.where(crossed, low, middle), torch.where(crossed, middle, high)
    pulled = center + high * (points - center)
    good = target.network(pulled).amin(-1, keepdim=True) <= 0
    if target.clip is not None:
        good = good & target.clip.contains(pulled).unsqueeze(-1)
    return torch.where(good, pulled, torch.full_like(pulled, torch.inf))
