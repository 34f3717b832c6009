"""Bounds on rounding errors, all from one theorem.

Let u be the unit roundoff of a precision and t its smallest normal number. Every operation computes
(a op b)(1 + d) + e with |d| <= u and |e| <= t, whether small results are subnormal or flushed to
zero. If small operands are flushed too, computed operands are normal already; operands that are not
computed (weights, centres, biases, or their casts to a lower precision) may be off by t.

*Theorem.* Let a result be a sum of terms, each of which passes through at most T roundings. Let S
be the sum of the terms' absolute values, N the number of all operations, and R the sum of the
absolute values of the factors that are multiplied by numbers that are not computed. If T u <= 1/8,
then the result is off by at most

    share(T) S + underflow (N + R),    share(T) = 2 T u,    underflow = 8 t.

This also holds if the bound itself is computed from S, with at most T roundings of each term.

*Proof.* A term is off by at most (1 + u)^T - 1 <= T u / (1 - T u) <= (8/7) T u of its size. A sum
loses up to 3 t, including its operands, and a product by x up to (1 + |x|) t; later operations make
that at most 8/7 times larger: (24/7) t (N + R). Computing S loses as much, of which share(T) <= 1/4
counts, and the roundings of S make it smaller by (8/7) T u <= 1/7 of itself. So the computed
share(T) S is at least 2 T u (6/7) S - (6/7) t (N + R), and 2 (6/7) > 8/7. And 24/7 + 6/7 < 8.

Later multiplications also scale what a result has lost: `AffineMap.underflows` tracks this. A sum
of bounds without this margin, such as defects, is multiplied by `grow(T)`. A sum that is too long
or that overflows has an infinite or NaN error; `below` turns it into the trivial bound -infinity,
and a comparison with it proves nothing.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import torch
from torch import Tensor


class Unit(NamedTuple):
    """The constants of the theorem in one precision."""

    eps: float  # twice the unit roundoff
    tiny: float  # the smallest normal number

    @property
    def underflow(self) -> float:
        """Upper bound on the loss of one operation to underflow, including its own rounding."""
        return 8 * self.tiny

    @property
    def negligible(self) -> float:
        """Threshold below which a norm may be underflow alone: a smaller neuron may be treated as 0
        if its value is added to the defect."""
        return sqrt(self.underflow / self.eps)

    def root(self, count: int) -> float:
        """Upper bound on the loss of the norm of `count` numbers when their squares underflow."""
        return sqrt(4 * self.underflow * count)

    def share(self, operations: float) -> float:
        """Relative error of this many roundings; infinite if there are too many for the theorem."""
        return operations * self.eps if operations * self.eps <= 0.25 else inf

    def grow(self, operations: float) -> float:
        """Factor from a computed sum of nonnegative terms to an upper bound on the exact one."""
        return 1 + self.share(operations)


def unit(dtype: torch.dtype) -> Unit:
    """The constants of a precision."""
    info = torch.finfo(dtype)
    return Unit(info.eps, info.tiny)


def below(bound: Tensor) -> Tensor:
    """The lower bounds, with -infinity in place of values that overflowed or are not numbers."""
    return bound.nan_to_num(-inf, -inf, -inf)


def above(bound: Tensor) -> Tensor:
    """The upper bounds, with +infinity in place of values that overflowed or are not numbers."""
    return bound.nan_to_num(inf, inf, inf)


def positive(bound: Tensor, or_zero: Tensor | bool = False) -> Tensor:
    """Which lower bounds prove that a value is positive, or nonnegative where `or_zero` is set; a
    bound that overflowed proves nothing.

    Every decision to close, drop or skip something compares by this function.
    """
    return ((bound > 0) | (bound == 0) & or_zero) & (bound < inf)


def rounded_down(values: Tensor, dtype: torch.dtype) -> Tensor:
    """The values in another precision, rounded down to normal numbers or 0."""
    cast, tiny = values.to(dtype), unit(dtype).tiny
    cast = torch.where(cast > values, cast.nextafter(torch.full_like(cast, -torch.inf)), cast)
    flushed = torch.where(values < 0, -tiny, 0.0).to(dtype)
    return torch.where(cast.abs() < tiny, flushed, cast)


def moved_center(
    center: Tensor, device: torch.device | str, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """A centre in another precision, and how far each coordinate has moved, in float64."""
    cast = center.to(device, dtype)
    return cast, (cast.to("cpu", torch.float64) - center.cpu().double()).abs()


def larger_radius(radius: float, moved: float, inputs: int, dtype: torch.dtype) -> float:
    """Upper bound on the radius after the centre has moved. The norm of the move is the root of a
    sum of squares, which has three roundings more than there are inputs."""
    if moved:
        radius = (radius + moved) * unit(torch.float64).grow(inputs + 8)
    return max(radius, unit(dtype).tiny) if radius else radius
