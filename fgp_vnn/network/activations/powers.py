"""Exp, Log, Sqrt, Reciprocal and powers.

Errors in eps. exp: 4 of itself, for the derivative too. log: 4 of itself; 1/z: 1. sqrt is rounded
correctly: 1, and half its reciprocal: 3. z^n for a whole n >= 2 by repeated products: 2 n of
itself, its derivative n z^(n-1): 2 n. Any other power is exp(p log z): the exponent is off by 5 |p
log z|, which moves the result by as much of itself, and exp by 4: 6 + 5 |p log z| of itself, for
the derivative with p - 1 in place of p, and one product. A positive derivative of infinity, as that
of sqrt at 0, gives no tangent there; the others do.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, log

import torch
from torch import Tensor

from fgp_vnn.network.activations.curve import Curve, Function, Piece


def _plain(
    name: str, curvature: float, value: Function, slope: Function, touch: Function, positive: bool
) -> Curve:
    """A function with one curvature and errors that are relative."""
    piece = Piece(
        curvature,
        value,
        slope,
        8,
        lambda z: value(z).abs(),
        lambda z: slope(z).abs(),
        touch=touch,
    )
    least = 0.0 if positive else -inf
    return Curve(name, value, slope, (piece,), (least, inf))


EXP = _plain("Exp", 1, torch.exp, torch.exp, torch.log, True)
SQUARE = _plain("Square", 1, lambda z: z * z, lambda z: 2 * z, lambda d: d / 2, True)


def _half(
    value: Function, slope: Function, curvature: float, touch: Function, *, right: bool = True
) -> Piece:
    """A piece over the positive numbers, or the negative ones, with errors that are relative."""
    start, end = (0.0, inf) if right else (-inf, 0.0)
    sizes = (lambda z: value(z).abs(), lambda z: slope(z).abs())
    return Piece(curvature, value, slope, 8, *sizes, start, end, touch=touch)


_LEAST = 1e-300  # the least argument of what has no value, or no derivative, at 0

LOG = Curve(
    "Log",
    torch.log,
    torch.reciprocal,
    (_half(torch.log, torch.reciprocal, -1, torch.reciprocal),),
    domain=(_LEAST, inf),
)


def _sqrt_slope(z: Tensor) -> Tensor:
    return 0.5 / torch.sqrt(z)


SQRT = Curve(
    "Sqrt",
    torch.sqrt,
    _sqrt_slope,
    (_half(torch.sqrt, _sqrt_slope, -1, lambda d: 0.25 / (d * d)),),
    (0.0, inf),
    (0.0, inf),
)


def _inverse_slope(z: Tensor) -> Tensor:
    return -1 / (z * z)


def _inverse(z: Tensor) -> Tensor:
    return 1 / z


# Both pieces end at 0, where one of them is concave on either side of the function: its value there
# is infinite, its offset no number, and an interval with 0 in it has no bounds.
RECIPROCAL = Curve(
    "Reciprocal",
    torch.reciprocal,
    _inverse_slope,
    (
        _half(_inverse, _inverse_slope, 1, lambda d: (-d).rsqrt()),
        _half(_inverse, _inverse_slope, -1, lambda d: -(-d).rsqrt(), right=False),
    ),
)

# Of a sum of 1 and of exponentials, as in a softmax: no bounds of these make it less than 1.
OF_ONE_OR_MORE = replace(RECIPROCAL, range=(0.0, 1.0), reads=1.0, key=("of one or more",))


def power(exponent: float) -> Curve:
    """z to a constant power: anywhere for whole exponents of at least 1, else for z > 0 only."""
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
    """A positive number, other than 1, to the power of z: exp(z log base). The exponent is off by 2
    of itself, which moves the result by as much of itself."""
    rate = log(base)

    def value(z: Tensor) -> Tensor:
        return torch.exp(rate * z)

    def slope(z: Tensor) -> Tensor:
        return rate * value(z)

    def size(z: Tensor) -> Tensor:
        return (1 + (rate * z).abs()) * value(z)

    piece = Piece(1, value, slope, 16, size, lambda z: abs(rate) * size(z))
    return Curve("Exponential", value, slope, (piece,), (0.0, inf), key=(base,))


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

    sizes = (lambda z: value(z).abs(), lambda z: slope(z).abs())
    even = n % 2 == 0
    left = Piece(1 if even else -1, value, slope, 2 * n + 4, *sizes, end=0.0)
    right = Piece(1, value, slope, 2 * n + 4, *sizes, start=0.0)
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
    return Curve("Pow", value, slope, (piece,), (0.0, inf), (_LEAST, inf), key=(p,))
