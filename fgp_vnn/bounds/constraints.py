"""Constraints that hold in a bundle besides its bounds, each with a multiplier.

A constraint says s (z - p) >= 0 of a neuron. A closed ReLU has one, of its sign s and p = 0; a
smooth neuron whose interval was cut has one for each end: s = 1 and p its lower end, s = -1 and p
its upper end. For any beta >= 0 a row is at least itself less beta s (z - p): the coefficient of z
falls by beta s, and the constant rises by beta s p.

Constraints of all layers below a target lie side by side: of ReLUs one for each neuron, of smooth
layers those of all lower ends and then those of all upper ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.network.activations.base import RELU, Activation


class Constraints(NamedTuple):
    """Those of one layer, or of several side by side; a sign of 0 means no constraint."""

    sign: Tensor  # [batch, 1, constraints]
    point: Tensor | None  # [batch, 1, constraints]; None where all are 0

    def shift(self, beta: Tensor) -> Tensor | None:
        """What multipliers [batch, rows, constraints] add to the constant of rows."""
        return None if self.point is None else (self.sign * beta * self.point).sum(-1)

    def proved_shift(self, beta: Tensor, layers: int) -> Tensor | None:
        """The same less its rounding error: that of each product and of the sum, and of two more
        sums for each of so many layers, with room for those at the input."""
        found = self.shift(beta)
        if found is None or self.point is None:
            return None
        size_of, count = unit(beta.dtype), beta.shape[-1]
        sizes = (beta * self.point.abs()).sum(-1)
        return found - size_of.share(count + 2 * layers + 16) * sizes - size_of.lost * (4 * count)

    def rise(self, z: Tensor) -> Tensor:
        """How fast rows rise with each multiplier, where z [batch, rows, constraints] arrives."""
        return -self.sign * (z if self.point is None else z - self.point)


class Pressed(NamedTuple):
    """The effect of multipliers on a backward pass."""

    taken: Sequence[Tensor | None]  # from the coefficients of each layer's neurons
    shift: Tensor | None = None  # [batch, rows] added to the constant, its own error taken off


def width(activation: Activation, neurons: int) -> int:
    """How many constraints a layer of so many neurons may have."""
    return neurons if activation is RELU else 2 * neurons


def constraints(
    activations: Sequence[Activation],
    signs: Sequence[Tensor],
    ends: Sequence[Tensor] | None,
    dtype: torch.dtype,
) -> Constraints:
    """Those of layers with signs [batch, n_k], where they are ReLUs, and ends [batch, 2, n_k] of
    intervals, infinite where they were not cut, where they are smooth."""
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
    """What constraints take from the coefficients of each layer's neurons [batch, rows, n_k], where
    `parts` are the products of their signs and multipliers."""
    pairs = zip(activations, parts, strict=False)
    return [part if f is RELU else torch.add(*part.chunk(2, -1)) for f, part in pairs]


def unfolded(
    activations: Sequence[Activation], parts: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """What is known of each layer's neurons, for each of its constraints."""
    pairs = zip(activations, parts, strict=False)
    return [part if f is RELU or part is None else torch.cat([part, part], -1) for f, part in pairs]
