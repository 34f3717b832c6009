"""Exp, Log, Sqrt, Reciprocal and powers.

Errors are written as in `curve`. exp, which is its own derivative: 4 of itself. log: 4 of itself;
its derivative 1/z: 1. sqrt is rounded correctly: 1; its derivative, half its reciprocal: 3. z^n for
an integer n >= 2 by repeated products: 2 n of itself; its derivative n z^(n-1): 2 n. Any other
power is exp(p log z): the exponent is off by 5 of |p log z|, which changes the result by
5 |p log z| of itself, and exp adds 4: 6 + 5 |p log z| of itself. Its derivative has p - 1 in place
of p, and one more product. A derivative of +infinity, such as that of sqrt at 0, gives no tangent
there; other points do.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, log

import torch
from torch import Tensor

from fgp_vnn.network.activations.curve import Curve, Piece, of_piece, relative

_LEAST = 1e-300  # smallest argument of functions without a value or derivative at 0
_RIGHT, _LEFT = (0.0, inf), (-inf, 0.0)


def _sqrt_slope(z: Tensor) -> Tensor:
    return 0.5 / torch.sqrt(z)


def _inverse_slope(z: Tensor) -> Tensor:
    return -1 / (z * z)


_SQUARE = relative(1, torch.square, lambda z: 2 * z, touch=lambda d: d / 2)
_LOG = relative(-1, torch.log, torch.reciprocal, ends=_RIGHT, touch=torch.reciprocal)
_SQRT = relative(-1, torch.sqrt, _sqrt_slope, ends=_RIGHT, touch=lambda d: 0.25 / (d * d))
EXP = of_piece("Exp", relative(1, torch.exp, torch.exp, touch=torch.log), (0.0, inf))
SQUARE = of_piece("Square", _SQUARE, (0.0, inf))
LOG = of_piece("Log", _LOG, domain=(_LEAST, inf))
SQRT = of_piece("Sqrt", _SQRT, range=(0.0, inf), domain=(0.0, inf))
# Both pieces end at 0. One of them is concave for lower lines, the other for upper lines: its value
# at the end 0 is infinite, so its offset is not finite, and an interval with 0 in it has no bounds.
RECIPROCAL = Curve(
    "Reciprocal",
    torch.reciprocal,
    _inverse_slope,
    (
        relative(1, torch.reciprocal, _inverse_slope, 8, _RIGHT, lambda d: (-d).rsqrt()),
        relative(-1, torch.reciprocal, _inverse_slope, 8, _LEFT, lambda d: -(-d).rsqrt()),
    ),
)

# The reciprocal of 1 plus exponentials, as in a softmax: whatever their bounds, it reads >= 1.
OF_ONE_OR_MORE = replace(RECIPROCAL, range=(0.0, 1.0), reads=1.0, key=("of one or more",))


def power(exponent: float) -> Curve:
    """z to a constant power: for all z if the exponent is an integer from 1 to 64, for z != 0 if it
    is -1, else for z > 0."""
    if exponent == 2:
        return SQUARE
    if exponent == 0.5:
        return SQRT
    if exponent == -1:
        return RECIPROCAL
    if exponent == int(exponent) and 1 <= exponent <= 64:
        return _whole_power(int(exponent))
    return _real_power(exponent)


def exponential(base: float) -> Curve:
    """base^z = exp(z log base), for a positive base other than 1. The exponent is off by 2 of
    itself, which changes the result by 2 |z log base| of itself."""
    rate = log(base)

    def value(z: Tensor) -> Tensor:
        return torch.exp(rate * z)

    def slope(z: Tensor) -> Tensor:
        return rate * value(z)

    def size(z: Tensor) -> Tensor:
        return (1 + (rate * z).abs()) * value(z)

    piece = Piece(1, value, slope, 16, size, lambda z: abs(rate) * size(z))
    return of_piece("Exponential", piece, (0.0, inf), key=(base,))


def _repeated(z: Tensor, times: int) -> Tensor:
    result = torch.ones_like(z)
    for _ in range(times):
        result = result * z
    return result


def _whole_power(n: int) -> Curve:
    def value(z: Tensor) -> Tensor:
        return _repeated(z, n)

    def slope(z: Tensor) -> Tensor:
        return n * _repeated(z, n - 1)

    even = n % 2 == 0
    left = relative(1 if even else -1, value, slope, 2 * n + 4, _LEFT)
    right = relative(1, value, slope, 2 * n + 4, _RIGHT)
    return Curve("Pow", value, slope, (left, right), (0.0 if even else -inf, inf), key=(n,))


def _real_power(p: float) -> Curve:
    def value(z: Tensor) -> Tensor:
        return torch.exp(p * torch.log(z))

    def slope(z: Tensor) -> Tensor:
        return p * torch.exp((p - 1) * torch.log(z))

    def size(z: Tensor) -> Tensor:
        return (1 + (p * torch.log(z)).abs()) * value(z)

    def slope_size(z: Tensor) -> Tensor:
        return (1 + ((p - 1) * torch.log(z)).abs()) * slope(z).abs()

    curvature = 1 if p > 1 or p < 0 else -1
    piece = Piece(curvature, value, slope, 16, size, slope_size, start=0.0)
    return of_piece("Pow", piece, range=(0.0, inf), domain=(_LEAST, inf), key=(p,))
