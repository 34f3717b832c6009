"""Strips: an activation between two parallel lines, so that it is affine up to an error.

A line below, low z + floor, equals s z + floor + (low - s) z for any slope s. So s z + floor + min
(low - s) z over the interval is a line below with slope s. Lines above are turned in the same way.
Among the slopes of the envelope, the one with the narrowest strip is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.network.activations.base import Activation, Envelope


class Strip(NamedTuple):
    """|f(z) - slope . z - centre| <= half for each value, over the intervals of a bundle."""

    slope: Tensor  # [operands * n]
    centre: Tensor  # [n]
    half: Tensor  # [n] infinite where an activation has no finite lines


def strip(activation: Activation, envelope: Envelope, lower: Tensor, upper: Tensor) -> Strip:
    """The strip of a layer for lower <= z <= upper [width], from its envelope over one bundle."""
    low, high = (activation.expand(side) for side in (lower, upper))
    slopes = torch.cat([envelope.low[:, 0], envelope.high[:, 0]])  # [6, operands * n]
    below = envelope.low[:, 0], envelope.floor[:, 0]
    above = envelope.high[:, 0], envelope.ceiling[:, 0]
    floors, ceilings = (
        torch.stack([_turned(lines, slope, low, high, sign) for slope in slopes])
        for lines, sign in ((below, 1), (above, -1))
    )
    size_of = unit(lower.dtype)
    # Half of a difference and half of a sum: two roundings each, of at most these sizes.
    room = size_of.share(4) * (floors.abs() + ceilings.abs()) + 4 * size_of.underflow
    halves = (ceilings - floors) / 2 + room
    halves = torch.where(halves.isfinite(), halves, torch.inf)
    half, best = halves.min(0)
    centre = ((ceilings + floors) / 2).gather(0, best.unsqueeze(0))[0]
    times = slopes.shape[-1] // len(half)
    slope = slopes.gather(0, torch.cat([best] * times).unsqueeze(0))[0]
    known = half < torch.inf
    return Strip(slope, torch.where(known, centre, 0.0), half)


def _turned(
    lines: tuple[Tensor, Tensor], slope: Tensor, low: Tensor, high: Tensor, sign: int
) -> Tensor:
    """The best offset [n] of a line with this slope that stays below (sign 1) or above (-1) one of
    the given lines [3, ...] over the intervals [operands * n]."""
    tilts, offsets = lines
    size_of = unit(slope.dtype)
    turn = tilts - slope
    ends = torch.minimum(sign * turn * low, sign * turn * high)  # [3, operands * n]
    sizes = (tilts.abs() + slope.abs()) * torch.maximum(low.abs(), high.abs())
    count = offsets.shape[-1]
    ends, sizes = (part.reshape(len(part), -1, count).sum(-2) for part in (ends, sizes))
    error = size_of.share(8) * (sizes + offsets.abs()) + 16 * size_of.underflow
    found = sign * offsets + ends - error
    # A line without an offset, or that overflowed, does not count.
    return sign * torch.where(found.isfinite(), found, -torch.inf).amax(0)
