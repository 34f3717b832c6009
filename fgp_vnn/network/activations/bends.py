"""Proved ranges of activations' second derivatives over intervals, for second-order expansions.

Errors are absolute, in eps = 2^-52 as in `curve`. With s off by at most 3 (see `sigmoids`),
s (1 - s) (1 - 2 s) has a derivative below 1 in s and five operations: below 16. With t off by 4,
-2 t (1 - t^2) has a derivative of at most 4 and four operations: below 32. A computed s or t may
lie on the wrong side of an extremum, so the test for an extremum has a margin. exp: 4 of itself.
The second derivatives of sin and cos are -sin and -cos, whose ranges come from `waves`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below
from fgp_vnn.network.activations.base import Activation
from fgp_vnn.network.activations.curve import EPS, UNDERFLOW, Curve, Function, one
from fgp_vnn.network.activations.powers import EXP
from fgp_vnn.network.activations.sigmoids import SIGMOID, TANH, sigmoid
from fgp_vnn.network.activations.waves import COS, SIN

_ROOM = 1e-12  # margin around an extremum


@dataclass(frozen=True, eq=False)
class Bend:
    """The second derivative of a function."""

    of: Curve
    range: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # over lower <= z <= upper
    slope_size: Function = one  # the computed f' is off by at most 16 eps times this


def bend_of(activation: Activation) -> Bend | None:
    """The second derivative of an activation; None if it is not known here."""
    return _BENDS.get(activation.name) if isinstance(activation, Curve) else None


def _wave(curve: Curve) -> Bend:
    def span(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
        envelope = curve.envelope(lower, upper)
        return -envelope.greatest, -envelope.least

    return Bend(curve, span)


def _exp_range(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    room = 8 * EPS
    return torch.exp(lower) * (1 - room) - UNDERFLOW, torch.exp(upper) * (1 + room) + UNDERFLOW


def _s_shaped(curve: Curve, value: Function, second: Function, place: float, top: float) -> Bend:
    """The second derivative of an increasing function f with f'' = second(f): its maximum `top` is
    at f = place, and its minimum -top at f = 2 f(0) - place."""
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
