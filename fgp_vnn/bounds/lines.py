"""The lines below and above the activations of a layer (its linear relaxation).

Shapes: coefficients and offsets [batch, rows, n], slopes [batch, rows, operands * n]. A value has
one operand, or two if it is a product.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.network.activations.base import Activation, Envelope


class Lines(NamedTuple):
    """One line below and one above each activation of a layer, [batch or 1, rows or 1, n_k]."""

    low: Tensor  # slope of the line below
    chord: Tensor  # slope of the line above
    intercept: Tensor  # of the line above
    floor: Tensor | None = None  # of the line below; None for ReLUs, where it is 0

    def at(self, index: Tensor | slice) -> Lines:
        """The lines of the bundles `index`; lines shared by all bundles stay as they are."""
        low, chord, intercept = (p if len(p) == 1 else p[index] for p in self[:3])
        floor = self.floor if self.floor is None or len(self.floor) == 1 else self.floor[index]
        return Lines(low, chord, intercept, floor)


def middle(envelope: Envelope) -> Lines:
    """The middle ones of an envelope's three lines below and above."""
    parts = envelope.low, envelope.high, envelope.ceiling, envelope.floor
    return Lines(*(part[1].unsqueeze(-2) for part in parts))


def mixed(envelope: Envelope, alpha: Tensor) -> Lines:
    """The envelope's lines interpolated by alpha [batch, rows, n]: 0 is the first line, 1/2 the
    middle, 1 the last."""
    first, last = (1 - 2 * alpha).clamp(min=0), (2 * alpha - 1).clamp(min=0)
    weights = (first, 1 - first - last, last)
    tiled = [_tile(weight, envelope) for weight in weights]
    low, high = (_sum(tiled, part) for part in (envelope.low, envelope.high))
    floor, ceiling = (_weighed(weights, part) for part in (envelope.floor, envelope.ceiling))
    return Lines(low, high, ceiling, floor)


def _sum(weights: list[Tensor], parts: Tensor) -> Tensor:
    a, b, c = (part.unsqueeze(-2) for part in parts)
    return torch.addcmul(torch.addcmul(weights[0] * a, weights[1], b), weights[2], c)


def _weighed(weights: tuple[Tensor, ...], parts: Tensor) -> Tensor:
    """Weighted sum of offsets, some of which may be infinite; those with weight 0 do not count."""
    pairs = zip(weights, parts, strict=True)
    terms = (torch.where(weight > 0, weight * p.unsqueeze(-2), 0.0) for weight, p in pairs)
    return reduce(torch.add, terms)


def _tile(weight: Tensor, envelope: Envelope) -> Tensor:
    """Repeat the number of each value for each of its operands."""
    times = envelope.low.shape[-1] // envelope.floor.shape[-1]
    return weight if times == 1 else torch.cat([weight] * times, -1)


def dot(rows: Tensor, vector: Tensor, onto: Tensor | None = None) -> Tensor:
    """row . vector for rows [batch, rows, n] and a vector [batch or 1, 1, n], plus `onto` [batch or
    1, rows] if given."""
    column = vector.transpose(-1, -2)
    if onto is None:
        return (rows @ column).squeeze(-1)
    if len(onto) == len(rows) == len(column):
        return torch.baddbmm(onto.unsqueeze(-1), rows, column).squeeze(-1)
    return onto + (rows @ column).squeeze(-1)


def pull(
    activation: Activation, coefficient: Tensor, lines: Lines, width: int, constant: Tensor
) -> tuple[Tensor, Tensor]:
    """Backward step through an activation: turns coefficients of its values into coefficients of z
    [batch, rows, width], and adds the offsets to the constant [batch or 1, rows]. A positive
    coefficient takes the line below, a negative one the line above."""
    low, chord, intercept, floor = lines
    negative = coefficient.clamp(max=0)
    if floor is None:
        through = torch.addcmul(negative * chord, coefficient.clamp(min=0), low)
        return through, dot(negative, intercept, constant)
    positive = coefficient.clamp(min=0)
    offset = constant + (_offsets(positive, floor) + _offsets(negative, intercept))
    if chord.shape[-1] != coefficient.shape[-1]:
        halves = zip(low.chunk(2, -1), chord.chunk(2, -1), strict=True)
        parts = torch.cat([torch.addcmul(negative * c, positive, a) for a, c in halves], -1)
    else:
        parts = torch.addcmul(negative * chord, positive, low)
    return activation.gather(parts, width), offset


def _offsets(coefficient: Tensor, offset: Tensor) -> Tensor:
    """Sum [batch, rows] of coefficients times offsets [batch, rows or 1, n]; an infinite offset
    counts only if its coefficient is not 0."""
    if offset.shape[-2] > 1:
        return torch.where(coefficient != 0, coefficient * offset, 0.0).sum(-1)
    none = ~offset.isfinite()
    both = torch.cat([torch.where(none, 0.0, offset), none.to(offset.dtype)], -2)
    finite, used = (coefficient @ both.transpose(-1, -2)).unbind(-1)
    return torch.where(used != 0, -torch.inf, finite)


def push(activation: Activation, coefficient: Tensor, lines: Lines, z: Tensor) -> Tensor:
    """The values [batch, rows, n] of the lines that `pull` chooses, at z [batch, rows, width]."""
    low, chord, intercept, floor = lines
    if floor is None:
        return torch.where(coefficient >= 0, low * z, chord * z + intercept)
    terms = activation.expand(z)
    up = coefficient >= 0
    wide = up if chord.shape[-1] == up.shape[-1] else torch.cat([up, up], -1)
    parts = torch.where(wide, low, chord) * terms
    return _added(parts, up) + torch.where(up, floor, intercept)


def rise(
    activation: Activation, coefficient: Tensor, envelope: Envelope, alpha: Tensor, z: Tensor
) -> Tensor:
    """Gradient of a bound with respect to alpha [batch, rows, n], where z arrives at the layer."""
    terms = activation.expand(z)
    up = coefficient >= 0
    wide = up if terms.shape[-1] == up.shape[-1] else torch.cat([up, up], -1)
    early = alpha < 0.5
    steps = []
    for i in (0, 1):
        slope, offset = (
            torch.where(which, a[i + 1].unsqueeze(-2), b[i + 1].unsqueeze(-2))
            - torch.where(which, a[i].unsqueeze(-2), b[i].unsqueeze(-2))
            for which, a, b in (
                (wide, envelope.low, envelope.high),
                (up, envelope.floor, envelope.ceiling),
            )
        )
        steps.append(_added(slope * terms, up) + offset)
    found: Tensor = 2 * coefficient * torch.where(early, steps[0], steps[1])
    return found.nan_to_num(0.0, 0.0, 0.0)


def gap(activation: Activation, lines: Lines, lower: Tensor, upper: Tensor) -> Tensor:
    """Distance [batch, 1, n] of the two lines at mid-interval: how loose the relaxation is."""
    if lines.floor is None:
        return lines.intercept
    centre = activation.expand(lower / 2 + upper / 2).unsqueeze(-2)
    parts = (lines.chord - lines.low) * centre
    return (_added(parts, lines.intercept) + lines.intercept - lines.floor).clamp(min=0)


def _added(parts: Tensor, like: Tensor) -> Tensor:
    """Sum of the operands' parts for each value."""
    if parts.shape[-1] == like.shape[-1]:
        return parts
    first, second = parts.chunk(2, -1)
    return first + second


def steepest(envelope: Envelope) -> Tensor:
    """The largest absolute slope [batch, operands * n] of an envelope."""
    return torch.maximum(envelope.low.abs().amax(0), envelope.high.abs().amax(0))


def highest(envelope: Envelope) -> Tensor:
    """The largest absolute offset [batch, n] of an envelope."""
    return torch.maximum(envelope.floor.abs().amax(0), envelope.ceiling.abs().amax(0))
