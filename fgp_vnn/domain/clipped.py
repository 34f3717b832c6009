"""Balls clipped to a box: inputs near a point, each coordinate within its own valid range."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball, along, norm_of

BISECTIONS = 26  # give the level to 8 digits, and the bound at it to twice as many


@dataclass(frozen=True, eq=False)
class Clipped(Domain):
    """The intersection of a ball and a box that contains the ball's centre."""

    ball: L2Ball | L1Ball
    clip: Box
    symmetric = False

    @property
    def center(self) -> Tensor:  # type: ignore[override]
        return self.ball.center

    def support(self, rows: Tensor) -> Tensor:
        """The smaller of the two supports: an upper bound, tight where one of the sets binds."""
        return torch.minimum(self.ball.support(rows), along(rows.abs(), self._room(rows)))

    def sharp_support(self, rows: Tensor) -> Tensor:
        """The minimum of h_ball(u) + h_clip(row - u) over all u.

        Every u gives an upper bound, even if u itself was rounded; row - u may lose `lost` to
        underflow, multiplied by the room. The best u is min(|row|, t) for l1 and min(|row|, t room)
        for l2, with the signs of the row and a single number t.
        """
        size, room = rows.abs(), self._room(rows)
        if isinstance(self.ball, L1Ball):
            part = torch.minimum(size, _l1_level(size, room, self.ball.radius))
        else:
            part = torch.minimum(size, room * _l2_level(size, room, self.ball.radius))
        rest = size - part + unit(rows.dtype).underflow
        return torch.fmin(self.support(rows), self.ball.support(part) + along(rest, room))

    def _room(self, rows: Tensor) -> Tensor:
        """Distance from the centre to the clip box's face on the side that each row points to."""
        return torch.where(rows > 0, self.clip.upper - self.center, self.center - self.clip.lower)

    def outer_support(self, rows: Tensor) -> Tensor:
        return self.ball.support(rows)

    def maximiser(self, rows: Tensor) -> Tensor:
        """The ball's maximiser projected into both sets: a good point, not always the maximiser."""
        return self.project(self.ball.maximiser(rows))

    def project(self, points: Tensor) -> Tensor:
        """Project into the ball, then into the box; the latter never moves a point away from the
        centre."""
        return self.clip.project(self.ball.project(points))

    def contains(self, points: Tensor) -> Tensor:
        return self.ball.contains(points) & self.clip.contains(points)

    def box(self) -> Box:
        outer = self.ball.box()
        lower = torch.maximum(outer.lower, self.clip.lower)
        return Box(lower, torch.minimum(outer.upper, self.clip.upper))

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Clipped:
        return Clipped(self.ball.to(device, dtype), self.clip.to(device, dtype))


def _l1_level(size: Tensor, room: Tensor, radius: float) -> Tensor:
    """Threshold [..., 1] on |row_i|: taken by falling |row_i|, the inputs above it can use their
    whole room before the radius is used up; 0 if all inputs can."""
    size, order = size.sort(dim=-1, descending=True)
    used = room.gather(-1, order).cumsum(-1) >= radius
    return torch.where(used, size, torch.zeros_like(size)).amax(-1, keepdim=True)


def _l2_level(size: Tensor, room: Tensor, radius: float) -> Tensor:
    """The t [..., 1] for which row / t, clamped to the room, has l2 norm equal to the radius, or
    about 0 if there is none."""
    low = torch.zeros_like(size[..., :1])
    high = norm_of(size, keepdim=True) / max(radius, torch.finfo(size.dtype).tiny)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        more = norm_of(torch.minimum(size, middle * room), keepdim=True) > middle * radius
        low, high = torch.where(more, middle, low), torch.where(more, high, middle)
    return high
