"""Sinh, Cosh, Tan and the inverses of these and of the sine: Asinh, Acosh, Atanh, Asin, Acos.

Errors in eps: 4 for each function itself. The derivative of sinh is cosh and the other way round: 4
of itself. That of tan is 1 + tan^2: 2 * 4 and two operations, below 16 of itself. Those of the
inverses are 1 / r, or minus that, with r = sqrt(1 + z^2), sqrt((z - 1) (z + 1)), (1 - z) (1 + z),
or the root of that: sums of positive numbers, or products of differences that are rounded once, at
most five operations: below 8 of itself. Where a derivative is infinite, at an end of the domain,
there is no tangent; on one of its two sides the function is concave there, and the ends suffice.
"""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

from fgp_vnn.network.activations.curve import Curve, Function, Piece

_STEEP = 1.57  # tan has one branch up to here


def _sizes(value: Function, slope: Function) -> tuple[Function, Function]:
    return lambda z: value(z).abs(), lambda z: slope(z).abs()


def _odd(
    name: str,
    value: Function,
    slope: Function,
    right: float,
    end: float = inf,
) -> Curve:
    """A function with one curvature on the right of 0 and the other on the left, up to +-end."""
    sizes = _sizes(value, slope)
    pieces = (
        Piece(-right, value, slope, 16, *sizes, end=0.0),
        Piece(right, value, slope, 16, *sizes, start=0.0),
    )
    return Curve(name, value, slope, pieces, domain=(-end, end))


def _tan_slope(z: Tensor) -> Tensor:
    t = torch.tan(z)
    return 1 + t * t


def _asinh_slope(z: Tensor) -> Tensor:
    return 1 / torch.sqrt(1 + z * z)


def _acosh_slope(z: Tensor) -> Tensor:
    return 1 / torch.sqrt((z - 1) * (z + 1))


def _atanh_slope(z: Tensor) -> Tensor:
    return 1 / ((1 - z) * (1 + z))


def _asin_slope(z: Tensor) -> Tensor:
    return 1 / torch.sqrt((1 - z) * (1 + z))


def _acos_slope(z: Tensor) -> Tensor:
    return -_asin_slope(z)


SINH = _odd("Sinh", torch.sinh, torch.cosh, 1)
TAN = _odd("Tan", torch.tan, _tan_slope, 1, _STEEP)
ASINH = _odd("Asinh", torch.asinh, _asinh_slope, -1)
ATANH = _odd("Atanh", torch.atanh, _atanh_slope, 1, 1 - 2.0**-40)
ASIN = _odd("Asin", torch.asin, _asin_slope, 1, 1.0)
COSH = Curve(
    "Cosh",
    torch.cosh,
    torch.sinh,
    (Piece(1, torch.cosh, torch.sinh, 8, *_sizes(torch.cosh, torch.sinh)),),
    (1.0, inf),
)
ACOSH = Curve(
    "Acosh",
    torch.acosh,
    _acosh_slope,
    (Piece(-1, torch.acosh, _acosh_slope, 16, *_sizes(torch.acosh, _acosh_slope), start=1.0),),
    (0.0, inf),
    (1.0, inf),
)
ACOS = Curve(
    "Acos",
    torch.acos,
    _acos_slope,
    (
        Piece(1, torch.acos, _acos_slope, 16, *_sizes(torch.acos, _acos_slope), end=0.0),
        Piece(-1, torch.acos, _acos_slope, 16, *_sizes(torch.acos, _acos_slope), start=0.0),
    ),
    domain=(-1.0, 1.0),
)
