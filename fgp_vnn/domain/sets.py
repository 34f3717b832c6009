"""Sets of inputs: boxes, l2 balls and l1 balls (`clipped` has balls clipped to a box).

A domain knows its centre c and its support function h(w) = max over the domain of w . (x - c). The
minimum of an affine function w . (x - c) + v over the domain is then v - h(-w). A domain's tensors
have the shape [inputs], or [batch, inputs] for a batch of domains; rows have the shape
[..., rows, inputs], with the batch in front.

A computed support is below the exact one by at most `unsure`. The loss to underflow is already
added to it, by the theorem in `base.rounding`, so that `unsure` counts only its roundings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fgp_vnn.base.rounding import larger_radius, moved_center, rounded_down, unit


class Domain(ABC):
    """A convex, compact set of inputs with a centre that lies in it."""

    center: Tensor  # [..., inputs] the point that distances are measured from
    symmetric = True  # about the centre

    @abstractmethod
    def support(self, rows: Tensor) -> Tensor:
        """Upper bound on row . (x - center), [..., rows]; exact unless the domain is clipped."""

    @abstractmethod
    def maximiser(self, rows: Tensor) -> Tensor:
        """A point of the domain that maximises row . x, [..., rows, inputs]."""

    def height(self, rows: Tensor, normal: Tensor) -> Tensor:
        """normal . (maximiser - center), [batch, rows], for normals [batch, 1, inputs]."""
        offset = self.maximiser(rows) - self.center.unsqueeze(-2)
        return (offset @ normal.mT).squeeze(-1)

    @abstractmethod
    def project(self, points: Tensor) -> Tensor:
        """A point of the domain near each of the points [..., rows, inputs]."""

    @abstractmethod
    def contains(self, points: Tensor) -> Tensor:
        """Whether each point [..., inputs] lies in the domain, with no tolerance."""

    @abstractmethod
    def box(self) -> Box:
        """The smallest box around the domain."""

    @abstractmethod
    def to(self, device: torch.device | str, dtype: torch.dtype) -> Domain:
        """The same set on another device or in another precision."""

    def sharp_support(self, rows: Tensor) -> Tensor:
        """The support computed with more work: the exact maximum up to rounding."""
        return self.support(rows)

    def outer_support(self, rows: Tensor) -> Tensor:
        """Upper bound on sum |row_i| |x_i - center_i|, the weight of rounding errors."""
        return self.support(rows)

    def reach(self, rows: Tensor) -> Tensor:
        """Upper bound on |row . (x - center)|, [..., rows]."""
        support = self.support(rows)
        return support if self.symmetric else torch.maximum(support, self.support(-rows))

    def unsure(self, rows: Tensor, reach: Tensor) -> Tensor:
        """Upper bound on how far the computed support `reach` [..., rows] of the rows is too low.

        The support is a sum of products of nonnegative numbers. Its roundings: a subtraction and a
        sum for each radius, a product, as many sums as there are inputs, a square root, and five
        more for a clipped ball.
        """
        return unit(rows.dtype).share(rows.shape[-1] + 10) * reach


def along(sizes: Tensor, radius: Tensor) -> Tensor:
    """sum sizes_i radius_i of nonnegative numbers, plus its possible loss to underflow."""
    lost = unit(sizes.dtype).underflow
    if sizes.dim() == 2 and radius.dim() == 3:  # the same rows in each box of a batch
        return (radius.squeeze(-2) + lost) @ sizes.T + lost * sizes.shape[-1]
    if sizes.dim() == 3 and radius.shape == (len(sizes), 1, sizes.shape[-1]):
        return (sizes @ (radius + lost).mT).squeeze(-1) + lost * sizes.shape[-1]
    if radius.dim() == 2 and len(radius) == 1:  # one box
        return sizes @ (radius[0] + lost) + lost * sizes.shape[-1]
    return (sizes * (radius + lost)).sum(-1) + lost * sizes.shape[-1]


def _times(radius: float, norm: Tensor) -> Tensor:
    """radius * norm, plus its possible loss to underflow."""
    return radius * norm + unit(norm.dtype).underflow


def _around(center: Tensor, radius: float) -> Box:
    """The box around a ball; one sum rounds off at most half an eps of the size of its terms."""
    size = unit(center.dtype)
    spare = size.share(1) * (center.abs() + radius) + size.underflow
    return Box(center - (radius + spare), center + (radius + spare))


def norm_of(rows: Tensor, *, keepdim: bool = False) -> Tensor:
    """The l2 norm of each row."""
    result: Tensor = torch.linalg.vector_norm(rows, dim=-1, keepdim=keepdim)
    return result


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """lower <= x <= upper, coordinate by coordinate: an l-infinity ball with a radius for each."""

    lower: Tensor  # [..., inputs]
    upper: Tensor  # [..., inputs]

    @cached_property
    def center(self) -> Tensor:  # type: ignore[override]
        return self.lower + (self.upper - self.lower) / 2

    @cached_property
    def radius(self) -> Tensor:
        """Distance [..., inputs] from the rounded centre to the farther side of the box."""
        return torch.maximum(self.upper - self.center, self.center - self.lower)

    @property
    def sizes(self) -> Tensor:
        """The largest |x_i| in the box, [..., inputs]."""
        return torch.maximum(self.lower.abs(), self.upper.abs())

    def support(self, rows: Tensor) -> Tensor:
        return along(rows.abs(), self.radius.unsqueeze(-2))

    def maximiser(self, rows: Tensor) -> Tensor:
        return torch.where(rows > 0, self.upper.unsqueeze(-2), self.lower.unsqueeze(-2))

    def height(self, rows: Tensor, normal: Tensor) -> Tensor:
        return (rows.sign() @ (self.radius.unsqueeze(-2) * normal).mT).squeeze(-1)

    def project(self, points: Tensor) -> Tensor:
        lower, upper = self.lower.unsqueeze(-2), self.upper.unsqueeze(-2)
        return torch.minimum(torch.maximum(points, lower), upper)

    def contains(self, points: Tensor) -> Tensor:
        return ((self.lower <= points) & (points <= self.upper)).all(-1)

    def box(self) -> Box:
        return self

    def at(self, index: Tensor) -> Box:
        """The boxes `index` of a batch of boxes [batch, inputs]."""
        return Box(self.lower[index], self.upper[index])

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Box:
        """The box, rounded outwards if the precision is lower or a bound is not a normal number."""
        return Box(
            rounded_down(self.lower.to(device), dtype), -rounded_down(-self.upper.to(device), dtype)
        )


@dataclass(frozen=True, eq=False)
class L2Ball(Domain):
    """||x - center||_2 <= radius."""

    center: Tensor  # [inputs]
    radius: float

    def support(self, rows: Tensor) -> Tensor:
        return _times(self.radius, norm_of(rows) + unit(rows.dtype).root(rows.shape[-1]))

    def maximiser(self, rows: Tensor) -> Tensor:
        norm = norm_of(rows, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)
        return self.center + self.radius * (rows / norm)

    def project(self, points: Tensor) -> Tensor:
        offset = points - self.center
        norm = norm_of(offset, keepdim=True)
        return torch.where(norm > self.radius, self.center + offset * (self.radius / norm), points)

    def contains(self, points: Tensor) -> Tensor:
        return norm_of(points - self.center) <= self.radius

    def box(self) -> Box:
        return _around(self.center, self.radius)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> L2Ball:
        """Rounded to another precision: the radius grows by as much as the centre moves."""
        center, moved = moved_center(self.center, device, dtype)
        length = float(norm_of(moved))
        if bool(moved.any()):
            length += unit(moved.dtype).root(len(moved))
        return L2Ball(center, larger_radius(self.radius, length, len(moved), dtype))


@dataclass(frozen=True, eq=False)
class L1Ball(Domain):
    """||x - center||_1 <= radius."""

    center: Tensor  # [inputs]
    radius: float

    def support(self, rows: Tensor) -> Tensor:
        return _times(self.radius, rows.abs().amax(-1))

    def maximiser(self, rows: Tensor) -> Tensor:
        index = rows.abs().argmax(-1, keepdim=True)
        step = torch.zeros_like(rows).scatter(
            -1, index, self.radius * rows.gather(-1, index).sign()
        )
        return self.center + step

    def project(self, points: Tensor) -> Tensor:
        """Soft thresholding, by the level at which the l1 norm of the result is the radius."""
        offset = points - self.center
        sizes = offset.abs().sort(dim=-1, descending=True).values
        count = torch.arange(1, sizes.shape[-1] + 1, device=sizes.device, dtype=sizes.dtype)
        levels = (sizes.cumsum(-1) - self.radius) / count
        last = (sizes > levels).sum(-1, keepdim=True).clamp(min=1) - 1
        shrunk = offset.sign() * (offset.abs() - levels.gather(-1, last)).clamp(min=0)
        inside = offset.abs().sum(-1, keepdim=True) <= self.radius
        return torch.where(inside, points, self.center + shrunk)

    def contains(self, points: Tensor) -> Tensor:
        return (points - self.center).abs().sum(-1) <= self.radius

    def box(self) -> Box:
        return _around(self.center, self.radius)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> L1Ball:
        """Rounded to another precision: the radius grows by as much as the centre moves."""
        center, moved = moved_center(self.center, device, dtype)
        return L1Ball(center, larger_radius(self.radius, float(moved.sum()), len(moved), dtype))
