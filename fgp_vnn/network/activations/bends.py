"""Second derivatives of activations over intervals, proved, for expansions to second order.

Errors in eps = 2^-52 of 1, as in `curve`. With s off by at most 3 (see `sigmoids`), s (1 - s) (1 -
2 s) has a derivative below 1 in s and five operations: below 16. With t off by 4, -2 t (1 - t^2)
has a derivative of at most 4 and four operations: below 32. A place s or t that is off by as much
may lie on the wrong side of an extremum: these are looked for with room. exp: 4 of itself. Those
of sin and cos are minus themselves, whose ranges `waves` has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below
from fgp_vnn.network.activations.base import Activation
from fgp_vnn.network.activations.curve import EPS, LOST, Curve, Function, one
from fgp_vnn.network.activations.powers import EXP
from fgp_vnn.network.activations.sigmoids import SIGMOID, TANH, sigmoid
from fgp_vnn.network.activations.waves import COS, SIN

_ROOM = 1e-12  # around the place of an extremum


@dataclass(frozen=True, eq=False)
class Bend:
    """The second derivative of a function."""

    of: Curve
    range: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # over lower <= z <= upper
    slope_size: Function = one  # 16 eps of it bound the error of the computed derivative


def bend_of(activation: Activation) -> Bend | None:
    """What is known of an activation's second derivative, if anything is."""
    return _BENDS.get(activation.name) if isinstance(activation, Curve) else None


def _wave(curve: Curve) -> Bend:
    def span(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        fan = curve.fan(lower, upper)
        return -fan.greatest, -fan.least

    return Bend(curve, span)


def _exp_range(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    room = 8 * EPS
    return torch.exp(lower) * (1 - room) - LOST, torch.exp(upper) * (1 + room) + LOST


def _s_shaped(curve: Curve, value: Function, second: Function, place: float, top: float) -> Bend:
    """A second derivative that is `second` of the increasing function's value, with its greatest
    value `top` where that is `place`, and its least, -top, at the place mirrored in f(0)."""
    middle = float(value(torch.zeros((), dtype=torch.float64)))

    def span(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        low, high = value(lower), value(upper)
        ends = second(low), second(high)
        up = (low <= place + _ROOM) & (high >= place - _ROOM)
        mirrored = 2 * middle - place
        down = (low <= mirrored + _ROOM) & (high >= mirrored - _ROOM)
        room = 64 * EPS
        least = torch.where(down, -top, torch.minimum(*ends)) - room
        greatest = torch.where(up, top, torch.maximum(*ends)) + room
        return below(least), above(greatest)

    return Bend(curve, span)


_BENDS = {
    bend.of.name: bend
    for bend in (
        _wave(SIN),
        _wave(COS),
        Bend(EXP, _exp_range, torch.exp),
        _s_shaped(
            SIGMOID, sigmoid, lambda s: s * (1 - s) * (1 - 2 * s), 0.5 - sqrt(3) / 6, sqrt(3) / 18
        ),
        _s_shaped(
            TANH, torch.tanh, lambda t: -2 * t * (1 - t * t), -1 / sqrt(3), 4 / (3 * sqrt(3))
        ),
    )
}
