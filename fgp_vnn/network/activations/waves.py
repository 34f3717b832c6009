"""Sin and Cos: an interval of less than one period meets at most four of their arches.

Errors in eps: 4 for both, of 1. The ends of the arches are multiples k of pi, or of pi and a half
more: the computed product is off by 2 eps of itself, its `blur`. Where |z| is large, or the
interval long, only the range is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi

import torch
from torch import Tensor

from fgp_vnn.network.activations.curve import EPS, Curve, Function, Piece, one

_LARGEST = 1e6  # up to which arches are told apart


def _arches(
    value: Function, slope: Function, shift: float
) -> Callable[[Tensor, Tensor], Sequence[Piece]]:
    """The arch between (k + shift) pi and (k + 1 + shift) pi is concave where k is even."""

    def pieces(lower: Tensor, upper: Tensor) -> Sequence[Piece]:
        known = (lower > -_LARGEST) & (upper < _LARGEST) & (upper - lower < 2 * pi)
        first = torch.where(known, torch.floor(lower / pi - shift), 0.0)
        found: list[Piece] = []
        for k in (first - 1, first, first + 1, first + 2, first + 3):
            start, end = ((k + i + shift) * pi for i in (0, 1))
            blur = 8 * EPS * (k.abs() + 2) * pi
            curvature = torch.where(torch.remainder(k, 2) == 0, -1.0, 1.0)
            # Of what is not known, one piece that gives no bound but the range.
            start = torch.where(known, start, torch.inf)
            found.append(Piece(curvature, value, slope, 8, one, one, start, end, blur, None))
        nothing = torch.full_like(lower, torch.nan)
        rest = torch.where(known, torch.inf, -torch.inf)
        return [*found, Piece(0, lambda z: nothing, one, 0, start=rest)]

    return pieces


def _minus_sin(z: Tensor) -> Tensor:
    return -torch.sin(z)


SIN = Curve("Sin", torch.sin, torch.cos, _arches(torch.sin, torch.cos, 0.0), (-1.0, 1.0))
COS = Curve("Cos", torch.cos, _minus_sin, _arches(torch.cos, _minus_sin, -0.5), (-1.0, 1.0))
