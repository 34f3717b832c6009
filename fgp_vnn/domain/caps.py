"""The part of a ball that linear bounds leave to counterexamples.

Where a counterexample needs w . (x - c) + v <= 0, it lies in the half-space n . (x - c) >= t with
n = -w / |w| and t = v / |w|, the norm being the dual one: so it is no nearer to c than t, and what
is left of the ball is a cap. The higher the level t, the thinner the cap, and the tighter all
bounds over it.

Rounding. A cap is the set of n . (x - c) >= t for n the stored normal divided by its exact length,
which is off from 1 by at most `length`; levels are rounded down so that this holds. A normal that
was divided by its length as it is rounded points elsewhere by at most share(8).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive, unit
from fgp_vnn.domain.sets import Box, Domain, L2Ball, norm_of


@dataclass(frozen=True, eq=False)
class Caps(Domain):
    """The points x of a ball around c with normal . (x - c) >= level, for a batch of half-spaces.

    The support of a cap of an l2 ball of radius r has a closed form: r |a| where the ball's own
    maximiser lies in the cap, else a_n t + sqrt(r^2 - t^2) |a - a_n n|. Other balls are left whole.
    """

    whole: Domain
    normal: Tensor  # [batch, inputs] of dual length 1 up to rounding, or 0 with the level 0
    level: Tensor  # [batch, 1] at least 0, at most the radius
    symmetric = False

    @property
    def center(self) -> Tensor:  # type: ignore[override]
        return self.whole.center

    def support(self, rows: Tensor) -> Tensor:
        if not isinstance(self.whole, L2Ball):
            return self.whole.support(rows)
        along, across, _ = self._parts(rows)
        size = torch.hypot(along, norm_of(across))
        radius, inputs, size_of = self.whole.radius, rows.shape[-1], unit(rows.dtype)
        inside = radius * along >= self.level * size
        edge = self.level * along + self._rim * norm_of(across)
        # Products lose something to underflow, and norms the root of that.
        small = 4 * (radius * size_of.root(inputs) + inputs * size_of.lost)
        whole: Tensor = torch.where(inside, radius * size, edge)
        return whole + small

    def unsure(self, rows: Tensor, reach: Tensor) -> Tensor:
        """Relative to the ball's support r |a|, for parts of a row cancel.

        With D = share(2 n + 16) for the normal's length: a_n has n + 1 roundings and is off by D,
        a - a_n n by 2 D and n + 6, its norm by n + 4 more, the level by nothing and the rim by 4.
        Which of the two cases holds is judged up to the same, and where the wrong one is taken,
        that is off by no more: for r |a| cos(x - y) is no farther from r |a| than
        r |a| (1 - |cos x - cos y|).
        """
        if not isinstance(self.whole, L2Ball):
            return self.whole.unsure(rows, reach)
        share = unit(rows.dtype).share(12 * rows.shape[-1] + 96)
        return share * self.whole.outer_support(rows)

    def outer_support(self, rows: Tensor) -> Tensor:
        return self.whole.outer_support(rows)

    def maximiser(self, rows: Tensor) -> Tensor:
        if not isinstance(self.whole, L2Ball):
            return self.whole.maximiser(rows)
        along, across, normal = self._parts(rows)
        length = norm_of(across)
        size = torch.hypot(along, length)
        tiny = torch.finfo(rows.dtype).tiny
        inside = (self.whole.radius * along >= self.level * size).unsqueeze(-1)
        free = self.whole.radius * rows / size.clamp(min=tiny).unsqueeze(-1)
        edge = (self._rim / length.clamp(min=tiny)).unsqueeze(-1) * across
        return self.center + torch.where(inside, free, self.level.unsqueeze(-1) * normal + edge)

    def project(self, points: Tensor) -> Tensor:
        return self.whole.project(points)

    def contains(self, points: Tensor) -> Tensor:
        offset = (points - self.center) * self.normal
        return self.whole.contains(points) & (offset.sum(-1) >= self.level.squeeze(-1))

    def box(self) -> Box:
        """The box of the whole ball, for every cap."""
        box = self.whole.box()
        return Box(box.lower.expand_as(self.normal), box.upper.expand_as(self.normal))

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Caps:
        normal, level = self.normal.to(device, dtype), self.level.to(device, dtype)
        return Caps(self.whole.to(device, dtype), normal, level)

    def at(self, index: Tensor) -> Caps:
        """Some of the caps."""
        return Caps(self.whole, self.normal[index], self.level[index])

    @property
    def _rim(self) -> Tensor:
        """The radius of the disc that bounds the cap, [batch, 1]."""
        radius = self.whole.radius if isinstance(self.whole, L2Ball) else 0.0
        lost = 4 * (1 + radius) * unit(self.level.dtype).lost
        return (((radius - self.level) * (radius + self.level)).clamp(min=0) + lost).sqrt()

    def _parts(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows along the normal [batch, rows], and across it [batch, rows, inputs]."""
        normal = self.normal.unsqueeze(-2)
        along = (rows * normal).sum(-1)
        return along, rows - along.unsqueeze(-1) * normal, normal


def dual_norm(domain: Domain, rows: Tensor) -> Tensor:
    """The dual norm [...] of rows [..., inputs]: what a ball of radius 1 of that kind reaches."""
    ball = getattr(domain, "ball", domain)
    if isinstance(ball, L2Ball):
        return norm_of(rows)
    if isinstance(ball, Box):
        return rows.abs().sum(-1)
    return rows.abs().amax(-1)


def half_space(domain: Domain, weight: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Normal [batch, inputs] and level [batch, 1] of what weight . t + value <= 0 leaves of a ball
    around 0, for weight [batch, inputs], value [batch]; the level of t in the norm, rounded down.

    What is not finite, or too small for its direction to be known, is no bound.
    """
    size_of, inputs = unit(weight.dtype), weight.shape[-1]
    size = size_of.grow(inputs + 4) * (dual_norm(domain, weight) + size_of.root(inputs))
    size = size.unsqueeze(-1)
    far = (domain.box().upper - domain.box().lower).amax(-1, keepdim=True)
    level = value.unsqueeze(-1) / size
    level = level - size_of.share(4) * level.abs() - size_of.share(8) * far - size_of.lost
    known = positive(level) & (size > size_of.root(inputs) / size_of.eps)
    return -weight / size, torch.where(known, level, 0.0)


def both(caps: Caps, normal: Tensor, level: Tensor) -> Caps:
    """The caps cut once more, by half-spaces normal [batch, inputs], level [batch, 1].

    In l2 the half-space at the point nearest to c of the two half-spaces' intersection holds it:
    a n1 + b n2 with a, b >= 0. Otherwise the higher of the two is kept.
    """
    higher = level > caps.level
    one = Caps(
        caps.whole,
        torch.where(higher, normal, caps.normal),
        torch.where(higher, level, caps.level),
    )
    if not isinstance(caps.whole, L2Ball):
        return one
    cosine = (caps.normal * normal).sum(-1, keepdim=True)
    below = (1 - cosine.square()).clamp(min=1e-9)
    first = (caps.level - cosine * level) / below
    second = (level - cosine * caps.level) / below
    meet = (first > 0) & (second > 0) & (level > 0)
    point = first * caps.normal + second * normal
    # The sum of the two inequalities, less what rounding did to it anywhere in the ball: to the
    # lengths of the normals, and to the sums of two terms.
    size_of = unit(point.dtype)
    total = first * caps.level + second * level
    share = size_of.share(2 * point.shape[-1] + 24)
    total = total - (first + second) * (share * caps.whole.radius + size_of.lost)
    joint, higher_still = half_space(caps.whole, -point, total.squeeze(-1))
    meet = meet & (higher_still > one.level)
    return Caps(
        caps.whole,
        torch.where(meet, joint, one.normal),
        torch.where(meet, higher_still, one.level),
    )
