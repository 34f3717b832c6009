"""Sin and Cos: an interval of less than one period meets at most four of their arches.

Errors are written as in `curve`: 4 of 1 for both. The arches of sin end at k pi, those of cos at
(k - 1/2) pi. The computed end is off by 2 of itself, which `blur` covers. For large |z| or long
intervals, only the range is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi

import torch
from torch import Tensor

from fgp_vnn.network.activations.curve import EPS, Curve, Function, Piece, one

_LARGEST = 1e6  # bound on |z| up to which arches are used


def _arches(
    value: Function, slope: Function, shift: float
) -> Callable[[Tensor, Tensor], Sequence[Piece]]:
    """Pieces of a wave, concave from (k + shift) pi to (k + 1 + shift) pi for even k."""

    def pieces(lower: Tensor, upper: Tensor) -> Sequence[Piece]:
        known = (lower > -_LARGEST) & (upper < _LARGEST) & (upper - lower < 2 * pi)
        first = torch.where(known, torch.floor(lower / pi - shift), 0.0)
        found: list[Piece] = []
        for k in (first - 1, first, first + 1, first + 2, first + 3):
            start, end = ((k + i + shift) * pi for i in (0, 1))
            blur = 8 * EPS * (k.abs() + 2) * pi
            curvature = torch.where(torch.remainder(k, 2) == 0, -1.0, 1.0)
            # If not known, no arch applies but the last piece, whose NaN leaves only the range.
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
