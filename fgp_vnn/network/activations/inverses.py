"""Sinh, Cosh, Tan, and the inverse functions Asinh, Acosh, Atanh, Asin, Acos.

Errors are written as in `curve`: 4 of itself for each function. The derivative of sinh is cosh and
vice versa: 4 of itself. That of tan is 1 + tan^2: 2 * 4 and two operations, below 16 of itself. The
derivatives of the inverses are 1 / r or -1 / r, with r = sqrt(1 + z^2), sqrt((z - 1) (z + 1)),
(1 - z) (1 + z), or the square root of the last: sums of positive numbers, or products of
differences that are rounded once, at most five operations: below 8 of itself. If a derivative is
infinite at an end of the domain, there is no tangent; for lower or for upper lines the function is
concave there, and the values at the ends suffice.
"""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

from fgp_vnn.network.activations.curve import Curve, Function, of_piece, relative

_STEEP = 1.57  # tan has one branch up to here


def _turning(name: str, value: Function, slope: Function, right: float, end: float = inf) -> Curve:
    """A function on [-end, end] whose curvature has the sign `right` for z > 0 and the opposite one
    for z < 0."""
    pieces = (
        relative(-right, value, slope, 16, (-inf, 0.0)),
        relative(right, value, slope, 16, (0.0, inf)),
    )
    return Curve(name, value, slope, pieces, domain=(-end, end))


def _tan_slope(z: Tensor) -> Tensor:
    t = torch.tan(z)
    return 1 + t * t


def _acosh_slope(z: Tensor) -> Tensor:
    return 1 / torch.sqrt((z - 1) * (z + 1))


def _asin_slope(z: Tensor) -> Tensor:
    return 1 / torch.sqrt((1 - z) * (1 + z))


SINH = _turning("Sinh", torch.sinh, torch.cosh, 1)
TAN = _turning("Tan", torch.tan, _tan_slope, 1, _STEEP)
ASINH = _turning("Asinh", torch.asinh, lambda z: 1 / torch.sqrt(1 + z * z), -1)
ATANH = _turning("Atanh", torch.atanh, lambda z: 1 / ((1 - z) * (1 + z)), 1, 1 - 2.0**-40)
ASIN = _turning("Asin", torch.asin, _asin_slope, 1, 1.0)
ACOS = _turning("Acos", torch.acos, lambda z: -_asin_slope(z), -1, 1.0)
COSH = of_piece("Cosh", relative(1, torch.cosh, torch.sinh), (1.0, inf))
_ACOSH = relative(-1, torch.acosh, _acosh_slope, count=16, ends=(1.0, inf))
ACOSH = of_piece("Acosh", _ACOSH, range=(0.0, inf), domain=(1.0, inf))
INVERSES = (SINH, TAN, ASINH, ATANH, ASIN, ACOS, COSH, ACOSH)
