"""Functions like ReLU: SiLU, GELU, Softplus, Elu, Selu, Celu, HardSwish.

Errors are written as in `curve`, and s = sigmoid(z) is off by 3 (see `sigmoids`). SiLU z s: 4 of
|z|; in its derivative s (1 + z (1 - s)) the inner product is off by 5 of |z|: in total, at most 12
of 1 + |z|. GELU z (1 + erf(x)) / 2 with x = z / c: x is off by 1 of itself, which changes erf by
x erf'(x) < 1; with erf's 4 and three operations, GELU is off by 8 of |z|. The second term of its
derivative has exp(-x^2), off by 4 + 3 x^2 of itself, where x^3 exp(-x^2) < 1 and z / c = x: below
24 of 1. Softplus log1p(exp(-|z|)) + max(z, 0): 4 + 4 + 1 of 1 + |z|. expm1 and exp: 4; their
argument is off by 1 of itself, which changes them by less than 1; with two products: 8 of the
factor.

The curvature of SiLU has the sign of 2 - z tanh(z / 2), which decreases in |z|; that of GELU has
the sign of c^2 - z^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, pi, sqrt

import torch
from torch import Tensor

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.activations.curve import EPS, Curve, Function, Piece, of_piece, one
from fgp_vnn.network.activations.sigmoids import sigmoid


def _size(z: Tensor) -> Tensor:
    return 1 + z.abs()


def _square_size(z: Tensor) -> Tensor:
    return (1 + z.abs()) ** 2


def _bump(value: Function, slope: Function, ends: tuple[float, float]) -> Sequence[Piece]:
    """Pieces of a function that is convex between two inflection points, which are known to the
    last digit, and concave outside."""
    left, right = ends
    blur = 4 * EPS * max(-left, right)

    def piece(curvature: float, start: float, end: float) -> Piece:
        return Piece(curvature, value, slope, 24, _size, _size, start, end, blur)

    return piece(-1, -inf, left), piece(1, left, right), piece(-1, right, inf)


def _silu(z: Tensor) -> Tensor:
    return z * sigmoid(z)


def _silu_slope(z: Tensor) -> Tensor:
    s = sigmoid(z)
    return s * (1 + z * (1 - s))


_SILU_END = 2.3993572805154677
SILU = Curve(
    "SiLU", _silu, _silu_slope, _bump(_silu, _silu_slope, (-_SILU_END, _SILU_END)),
    (-0.27847, inf),
)  # fmt: skip


def gelu(unit: float) -> Curve:
    """z (1 + erf(z / unit)) / 2; its second derivative is a positive factor times unit^2 - z^2."""
    factor = 1 / (unit * sqrt(pi))

    def value(z: Tensor) -> Tensor:
        return z * (0.5 * (1 + torch.erf(z / unit)))

    def slope(z: Tensor) -> Tensor:
        x = z / unit
        return 0.5 * (1 + torch.erf(x)) + z * (factor * torch.exp(-x * x))

    pieces = _bump(value, slope, (-unit, unit))
    return Curve("Gelu", value, slope, pieces, (-0.1202 * unit, inf), key=(unit,))


def _softplus(z: Tensor) -> Tensor:
    return torch.log1p(torch.exp(-z.abs())) + z.clamp(min=0)


SOFTPLUS = of_piece("Softplus", Piece(1, _softplus, sigmoid, 16, _size, one), (0.0, inf))


def elu(alpha: float, scale: float = 1.0, stretch: float = 1.0, name: str = "Elu") -> Curve:
    """scale z for z >= 0 and scale alpha expm1(z / stretch) below, for positive factors."""
    if not (alpha >= 0 and scale > 0 and stretch > 0):
        raise UnsupportedError(f"{name} with a negative factor is not convex below 0")
    factor = scale * alpha

    def left(z: Tensor) -> Tensor:
        return factor * torch.expm1(z / stretch)

    def left_slope(z: Tensor) -> Tensor:
        return factor / stretch * torch.exp(z / stretch)

    def function(z: Tensor) -> Tensor:
        return torch.where(z > 0, scale * z, left(z.clamp(max=0)))

    def slope(z: Tensor) -> Tensor:
        return torch.where(z > 0, scale, left_slope(z.clamp(max=0)))

    steep = factor / stretch
    pieces = (
        Piece(
            1, left, left_slope, 16, lambda z: factor * one(z), lambda z: steep * one(z), end=0.0
        ),
        Piece(0, lambda z: scale * z, lambda z: scale * one(z), 4, torch.abs, one, start=0.0),
    )
    # expm1 > -1; the bound includes the rounding of the product with the factor.
    least = -factor * (1 + 4 * EPS)
    return Curve(name, function, slope, pieces, (least, inf), key=(alpha, scale, stretch))


HARD_SWISH = Curve(
    "HardSwish",
    lambda z: z * (z + 3).clamp(0, 6) / 6,
    lambda z: torch.where(z.abs() < 3, z / 3 + 0.5, (z > 0).to(z.dtype)),
    (
        Piece(0, torch.zeros_like, torch.zeros_like, 0, end=-3.0),
        Piece(
            1, lambda z: z * (z + 3) / 6, lambda z: z / 3 + 0.5, 8, _square_size, _size, -3.0, 3.0
        ),
        Piece(0, lambda z: z, one, 0, start=3.0),
    ),
    (-0.375, inf),
)
