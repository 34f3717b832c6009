"""The part of a ball in which counterexamples can still lie, given a linear bound.

If every counterexample satisfies w . (x - c) + v <= 0, it lies in the half-space n . (x - c) >= t
with n = -w / |w| and t = v / |w| in the dual norm. So its distance to c is at least t, and only a
cap of the ball is left. The higher the level t, the thinner the cap and the tighter all bounds over
it.

Rounding. A cap is the set of n . (x - c) >= t, where n is the stored normal divided by its exact
length, which differs from 1 by at most share(2 inputs + 16). Levels are rounded down so that this
holds. Dividing by a rounded length changes the direction of a normal by at most share(8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive, rounded_down, unit
from fgp_vnn.domain.multipliers import cut_maximiser, cut_support
from fgp_vnn.domain.sets import Box, Domain, L2Ball, norm_of


@dataclass(frozen=True, eq=False)
class Caps(Domain):
    """The points x of a ball around c with normal . (x - c) >= level, for a batch of half-spaces.

    The support of a cap of an l2 ball of radius r has a closed form: r |a| if the ball's own
    maximiser lies in the cap, else a_n t + sqrt(r^2 - t^2) |a - a_n n|. For other sets it is
    computed by a search for the Lagrange multiplier of the half-space.
    """

    whole: Domain
    normal: Tensor  # [batch, inputs] of dual norm 1 up to rounding, or 0 with level 0
    level: Tensor  # [batch, 1] at most the radius
    origin: Tensor | None = None  # [inputs] the point that levels are measured from; None: center
    symmetric = False

    @property
    def center(self) -> Tensor:  # type: ignore[override]
        return self.whole.center

    def support(self, rows: Tensor) -> Tensor:
        if not isinstance(self.whole, L2Ball):
            return cut_support(self.whole, rows, self.normal, self._from_center)
        along, across, _ = self._parts(rows)
        size = torch.hypot(along, norm_of(across))
        radius, inputs, size_of = self.whole.radius, rows.shape[-1], unit(rows.dtype)
        inside = radius * along >= self.level * size
        edge = self.level * along + self._rim * norm_of(across)
        # Each product may lose `lost` to underflow, and each norm the square root of that.
        small = 4 * (radius * size_of.root(inputs) + inputs * size_of.underflow)
        whole: Tensor = torch.where(inside, radius * size, edge)
        return whole + small

    def unsure(self, rows: Tensor, reach: Tensor) -> Tensor:
        """Error bound relative to the ball's support r |a|, because parts of a row may cancel.

        Let D = share(2 n + 16) be the error of the normal's length. Then a_n is off by D and n + 1
        roundings, a - a_n n by 2 D and n + 6 roundings, its norm by n + 4 more; the level is exact,
        and the rim has 4 roundings. The test which of the two cases holds has the same error, and
        taking the wrong case costs no more, since r |a| cos(x - y) is no farther from r |a| than
        r |a| (1 - |cos x - cos y|).

        For other sets, `cut_support` already includes its error; only sums with it are left.
        """
        share = unit(rows.dtype).share(12 * rows.shape[-1] + 96)
        if not isinstance(self.whole, L2Ball):
            return share * reach.abs()
        return share * self.whole.outer_support(rows)

    def outer_support(self, rows: Tensor) -> Tensor:
        return self.whole.outer_support(rows)

    def maximiser(self, rows: Tensor) -> Tensor:
        if not isinstance(self.whole, L2Ball):
            return cut_maximiser(self.whole, rows, self.normal, self._from_center)
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
        begin = self.center if self.origin is None else self.origin
        offset = (points - begin) * self.normal
        return self.whole.contains(points) & (offset.sum(-1) >= self.level.squeeze(-1))

    def box(self) -> Box:
        """The box of the whole ball."""
        return self.whole.box()

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Caps:
        """Rounded to nearest, so a lower precision may lose points of a cap.

        This is for choosing slopes and neurons only: a bound that proves something is computed over
        the caps as they are. `recast` and `left_of` round outwards.
        """
        normal, level = self.normal.to(device, dtype), self.level.to(device, dtype)
        origin = None if self.origin is None else self.origin.to(device, dtype)
        return Caps(self.whole.to(device, dtype), normal, level, origin)

    def at(self, index: Tensor | slice) -> Caps:
        """The caps `index` of the batch."""
        return Caps(self.whole, self.normal[index], self.level[index], self.origin)

    @property
    def _from_center(self) -> Tensor:
        """The levels [batch, 1] of normal . (x - center), rounded down."""
        if self.origin is None:
            return self.level
        size_of, inputs = unit(self.level.dtype), self.normal.shape[-1]
        moved = self.normal * (self.origin - self.center)
        far = self.origin.abs() + self.center.abs()
        sizes = (self.normal.abs() * far).sum(-1, keepdim=True) + self.level.abs()
        lost = size_of.underflow * (4 * inputs + 4 + far.sum(-1, keepdim=True))
        level = self.level + moved.sum(-1, keepdim=True)
        return level - size_of.share(inputs + 8) * sizes - lost

    @property
    def _rim(self) -> Tensor:
        """The radius of the disc that bounds the cap, [batch, 1]."""
        radius = self.whole.radius if isinstance(self.whole, L2Ball) else 0.0
        lost = 4 * (1 + radius) * unit(self.level.dtype).underflow
        return (((radius - self.level) * (radius + self.level)).clamp(min=0) + lost).sqrt()

    def _parts(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Component of the rows along the normal [batch, rows], the rest of the rows [batch, rows,
        inputs], and the normal [batch, 1, inputs]."""
        normal = self.normal.unsqueeze(-2)
        along = (rows * normal).sum(-1)
        return along, rows - along.unsqueeze(-1) * normal, normal


def dual_norm(domain: Domain, rows: Tensor) -> Tensor:
    """The dual norm [...] of rows [..., inputs]: the support of the unit ball of this norm."""
    ball = getattr(domain, "ball", domain)
    if isinstance(ball, L2Ball):
        return norm_of(rows)
    if isinstance(ball, Box):
        return rows.abs().sum(-1)
    return rows.abs().amax(-1)


def half_space(domain: Domain, weight: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Normal [batch, inputs] and level [batch, 1] of the half-space weight . t + value <= 0 of a
    ball around 0, for weight [batch, inputs], value [batch]. The level, in the ball's norm, is
    rounded down. It is 0 (no cut) if it is not positive and finite, or if the weight is too small
    for its direction to be known.
    """
    normal, level, known = _scaled(domain, weight, value)
    return normal, torch.where(known & positive(level), level, 0.0)


def left_of(domain: Domain, weight: Tensor, value: Tensor) -> Caps:
    """The part of a domain where weight . (x - center) + value <= 0. The level may be negative (the
    centre is then inside); if the half-space is unknown, the part is the whole domain."""
    normal, level, known = _scaled(domain, weight, value)
    # A normal shorter than 1 makes a negative level even lower.
    level = level - unit(weight.dtype).share(2 * weight.shape[-1] + 24) * level.abs()
    known = known & level.isfinite()
    return Caps(domain, torch.where(known, normal, 0.0), torch.where(known, level, 0.0))


def recast(exact: Domain, rounded: Domain, weight: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Weight [batch, inputs] and value [batch] of a half-space, converted from the exact domain to
    the precision and the centre of the rounded domain.

    Where w . (x - c) + v <= 0 in the exact domain, w' . (x - c') + v' <= 0 holds as well for
    v' = v + w' . (c' - c) - |w - w'| . |x - c|.
    """
    if rounded is exact:
        return weight, value
    size_of, inputs, single = unit(weight.dtype), weight.shape[-1], rounded.center.dtype
    cast = weight.to(single)
    wide = cast.to(weight.dtype)
    moved = wide * (rounded.center.to(weight.dtype) - exact.center)
    lost = exact.outer_support((weight - wide).unsqueeze(-2)).squeeze(-1)
    sizes = value.abs() + moved.abs().sum(-1) + lost
    gone = lost + size_of.share(inputs + 16) * sizes + size_of.underflow * (4 * inputs + 16)
    return cast, rounded_down(value + moved.sum(-1) - gone, single)


def _scaled(domain: Domain, weight: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Normal [batch, inputs], level [batch, 1] and whether the direction is known [batch, 1]."""
    size_of, inputs = unit(weight.dtype), weight.shape[-1]
    size = size_of.grow(inputs + 4) * (dual_norm(domain, weight) + size_of.root(inputs))
    size = size.unsqueeze(-1)
    normal = -weight / size
    # The reach of a clipped ball from its centre is not its width.
    far = (domain.box().upper - domain.box().lower).amax(-1, keepdim=True)
    far = torch.maximum(far, 2 * domain.outer_support(normal.unsqueeze(-2)))
    level = value.unsqueeze(-1) / size
    level = level - size_of.share(4) * level.abs() - size_of.share(8) * far - size_of.underflow
    known = (size > size_of.root(inputs) / size_of.eps) & (size < torch.inf)
    return normal, level, known


def both(caps: Caps, normal: Tensor, level: Tensor) -> Caps:
    """The caps intersected with further half-spaces normal [batch, inputs], level [batch, 1].

    In l2, take the point of the two half-spaces' intersection nearest to c, a n1 + b n2 with
    a, b >= 0: the half-space that touches it contains the intersection. In other norms only the
    half-space with the higher level is kept.
    """
    higher = level > caps.level
    one = replace(
        caps,
        normal=torch.where(higher, normal, caps.normal),
        level=torch.where(higher, level, caps.level),
    )
    if not isinstance(caps.whole, L2Ball):
        return one
    cosine = (caps.normal * normal).sum(-1, keepdim=True)
    below = (1 - cosine.square()).clamp(min=1e-9)
    first = (caps.level - cosine * level) / below
    second = (level - cosine * caps.level) / below
    meet = (first > 0) & (second > 0) & (level > 0)
    point = first * caps.normal + second * normal
    # The weighted sum of the two inequalities, minus its rounding error anywhere in the ball: from
    # the lengths of the normals and from the sums of two terms.
    size_of = unit(point.dtype)
    total = first * caps.level + second * level
    share = size_of.share(2 * point.shape[-1] + 24)
    total = total - (first + second) * (share * caps.whole.radius + size_of.underflow)
    joint, higher_still = half_space(caps.whole, -point, total.squeeze(-1))
    meet = meet & (higher_still > one.level)
    return Caps(
        caps.whole,
        torch.where(meet, joint, one.normal),
        torch.where(meet, higher_still, one.level),
    )
