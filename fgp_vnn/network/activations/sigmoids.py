"""S-shaped functions: bounded, convex for z <= 0 and concave for z >= 0.

Errors are written as in `curve`. sigmoid = 1 / (1 + exp(-z)): exp is off by 4 of itself, which
changes the quotient by at most 4 s (1 - s) <= 1, and there are two operations: 3, at most 8. Its
derivative s (1 - s) has twice that and three operations: at most 10 of 1. tanh is a library
function: 4; its derivative 1 - t^2 has 2 * 4 and two operations. erf: 4; in its derivative
2/sqrt(pi) exp(-z^2), z^2 is off by 1 of itself, which changes the exponential by z^2 exp(-z^2) < 1;
with exp's 4 and three operations this is below 10 of 1.2. atan: 4; its derivative 1 / (1 + z^2) has
three operations. softsign z / (1 + |z|): 2, its derivative 5.
"""

from __future__ import annotations

from math import pi, sqrt

import torch
from torch import Tensor

from fgp_vnn.network.activations.curve import Curve, Function, Piece

_COUNT = 16


def sigmoid(z: Tensor) -> Tensor:
    """1 / (1 + exp(-z)) for each entry, of the shape of z; not rounded outwards."""
    return 1 / (1 + torch.exp(-z))


def _sigmoid_slope(z: Tensor) -> Tensor:
    s = sigmoid(z)
    return s * (1 - s)


def _sigmoid_place(d: Tensor) -> Tensor:
    s = 0.5 + (0.25 - d).clamp(min=0).sqrt()
    return torch.log(s / (1 - s))


def _s_shaped(
    name: str, value: Function, slope: Function, place: Function, ends: tuple[float, float]
) -> Curve:
    """A curve whose slope is the same at z and -z; `place` returns the point z >= 0 with a given
    slope."""
    pieces = (
        Piece(1, value, slope, _COUNT, end=0.0, touch=lambda d: -place(d)),
        Piece(-1, value, slope, _COUNT, start=0.0, touch=place),
    )
    return Curve(name, value, slope, pieces, ends)


SIGMOID = _s_shaped("Sigmoid", sigmoid, _sigmoid_slope, _sigmoid_place, (0.0, 1.0))
TANH = _s_shaped(
    "Tanh",
    torch.tanh,
    lambda z: 1 - torch.tanh(z).square(),
    lambda d: torch.atanh((1 - d).clamp(min=0).sqrt()),
    (-1.0, 1.0),
)
ERF = _s_shaped(
    "Erf",
    torch.erf,
    lambda z: torch.exp(-z * z) * (2 / sqrt(pi)),
    lambda d: (-torch.log(d * (sqrt(pi) / 2))).clamp(min=0).sqrt(),
    (-1.0, 1.0),
)
SOFTSIGN = _s_shaped(
    "Softsign",
    lambda z: z / (1 + z.abs()),
    lambda z: 1 / (1 + z.abs()) ** 2,
    lambda d: d.rsqrt() - 1,
    (-1.0, 1.0),
)
ATAN = _s_shaped(
    "Atan",
    torch.atan,
    lambda z: 1 / (1 + z * z),
    lambda d: (1 / d - 1).clamp(min=0).sqrt(),
    (-1.5707963267948968, 1.5707963267948968),  # the nearest float64 above pi / 2
)
S_SHAPED = (SIGMOID, TANH, ERF, SOFTSIGN, ATAN)  # all strictly increasing
