"""Constraints on the neurons of a bundle, each with a Lagrange multiplier.

A constraint says s (z - p) >= 0 of a neuron. A closed ReLU has one, with its sign s and p = 0. A
smooth neuron whose interval was cut has one for each end: s = 1 and p the lower end, s = -1 and p
the upper end. For any beta >= 0, the row minus beta s (z - p) is a lower bound of the row: the
coefficient of z falls by beta s, and the constant rises by beta s p.

The constraints of all layers below a target are concatenated: for ReLU layers one per neuron, for
smooth layers those of all lower ends and then those of all upper ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.network.activations.base import RELU, Activation


class Constraints(NamedTuple):
    """Constraints of one layer, or of several concatenated; a sign of 0 means no constraint."""

    sign: Tensor  # [batch, 1, constraints] s
    point: Tensor | None  # [batch, 1, constraints] p; None if all are 0

    def shift(self, beta: Tensor) -> Tensor | None:
        """Change [batch, rows] of the constant by multipliers [batch, rows, constraints]; None: no
        change."""
        return None if self.point is None else (self.sign * beta * self.point).sum(-1)

    def proved_shift(self, beta: Tensor, layers: int) -> Tensor | None:
        """`shift` minus its rounding error: of each product, of the sum, of two later sums for each
        of `layers` layers, and of those at the input."""
        found = self.shift(beta)
        if found is None or self.point is None:
            return None
        size_of, count = unit(beta.dtype), beta.shape[-1]
        sizes = (beta * self.point.abs()).sum(-1)
        lost = size_of.underflow * (4 * count)
        return found - size_of.share(count + 2 * layers + 16) * sizes - lost

    def rise(self, z: Tensor) -> Tensor:
        """Gradient of the rows' bounds by each multiplier, at z [batch, rows, constraints]."""
        return -self.sign * (z if self.point is None else z - self.point)


class Pressed(NamedTuple):
    """The effect of multipliers on a backward pass."""

    taken: Sequence[Tensor | None]  # subtracted from the coefficients of each layer's neurons
    shift: Tensor | None = None  # [batch, rows] added to the constant, minus its rounding error


def width(activation: Activation, neurons: int) -> int:
    """Number of constraints in the layout of a layer with this many neurons."""
    return neurons if activation is RELU else 2 * neurons


def constraints(
    activations: Sequence[Activation],
    signs: Sequence[Tensor],
    ends: Sequence[Tensor] | None,
    dtype: torch.dtype,
) -> Constraints:
    """The constraints of ReLU layers with signs [batch, n_k] and of smooth layers with the ends
    [batch, 2, n_k] of their neurons' intervals (infinite where not cut)."""
    if not signs:
        return Constraints(torch.zeros(0, dtype=dtype), None)
    if ends is None:
        return Constraints(torch.cat(list(signs), -1).unsqueeze(-2).to(dtype), None)
    each, points = [], []
    for activation, sign, end in zip(activations, signs, ends, strict=True):
        if activation is RELU:
            each.append(sign.to(dtype))
            points.append(torch.zeros_like(each[-1]))
        else:
            cut = end.isfinite()
            each.append(torch.cat([cut[:, 0].to(dtype), -cut[:, 1].to(dtype)], -1))
            points.append(torch.where(cut, end, 0.0).flatten(1).to(dtype))
    return Constraints(*(torch.cat(parts, -1).unsqueeze(-2) for parts in (each, points)))


def folded(activations: Sequence[Activation], parts: Sequence[Tensor]) -> list[Tensor]:
    """The amounts [batch, rows, n_k] that constraints subtract from the coefficients of each
    layer's neurons; `parts` are the constraints' signs times their multipliers."""
    pairs = zip(activations, parts, strict=False)
    return [part if f is RELU else torch.add(*part.chunk(2, -1)) for f, part in pairs]


def unfolded(
    activations: Sequence[Activation], parts: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The values of each layer's neurons, repeated for each of its constraints."""
    pairs = zip(activations, parts, strict=False)
    return [part if f is RELU or part is None else torch.cat([part, part], -1) for f, part in pairs]
