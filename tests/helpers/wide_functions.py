"""Activations in the long double of the machine, with what their values may be off.

A value is off by at most `UNIT` times its size. The C library documents at most 5 units in the last
place for each of the functions used here; `UNIT` has room for 64, and a test compares them with
mpmath. Where long double is float64, as on some processors, it decides next to nothing, and what is
not decided is left to mpmath: slow, and as exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Wide = NDArray[Any]  # of long double
Function = Callable[[Wide], Wide]

UNIT = 64 * np.finfo(np.longdouble).eps
TINY = np.finfo(np.longdouble).tiny  # what underflows is off by less
_SQRT_PI = np.sqrt(np.arctan(np.longdouble(1)) * 4)
_ALPHA, _GAMMA = np.longdouble(1.67326319217681884765625), np.longdouble(1.05070102214813232421875)
_SATURATED = 6.5  # beyond which erf is 1 up to 4e-20


@dataclass(frozen=True)
class WideFunction:
    """A function, the size of its error over `UNIT` (None: its own), and its greatest range."""

    value: Function
    error_size: Function | None = None
    range: tuple[float, float] = (-inf, inf)

    def enclosure(self, z: Wide) -> tuple[Wide, Wide]:
        """Numbers below and above the function's value at each of these places."""
        value = self.value(z)
        size = np.abs(value) if self.error_size is None else self.error_size(z)
        error = np.where(size > 0, UNIT * size + TINY, 0)
        return np.maximum(value - error, self.range[0]), np.minimum(value + error, self.range[1])


def _exact(function: Function) -> WideFunction:
    return WideFunction(function, np.zeros_like)


def _erf(x: Wide) -> Wide:
    """2 / sqrt(pi) exp(-x^2) times the sum of 2^n x^(2n+1) / (2n+1)!!, whose terms are all of one
    sign: term n is off by 3 n units, and the terms that count have n below 2 x^2 + 60."""
    x = np.clip(x, -_SATURATED, _SATURATED)
    square = x * x
    term, total = x.copy(), x.copy()
    for n in range(1, int(2 * float(np.max(square, initial=0))) + 60):
        term *= 2 * square / (2 * n + 1)
        total += term
    result: Wide = total * np.exp(-square) * (2 / _SQRT_PI)
    return result


def _gelu(z: Wide) -> Wide:
    result: Wide = z * (1 + _erf(z / np.sqrt(np.longdouble(2)))) / 2
    return result


def _elu(z: Wide) -> Wide:
    return np.where(z > 0, z, np.expm1(np.minimum(z, 0)))


def _selu(z: Wide) -> Wide:
    result: Wide = _GAMMA * np.where(z > 0, z, _ALPHA * np.expm1(np.minimum(z, 0)))
    return result


def _sigmoid(z: Wide) -> Wide:
    return 1 / (1 + np.exp(-z))


def _softplus(z: Wide) -> Wide:
    return np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0)


WIDE: dict[str, WideFunction] = {
    "Acos": WideFunction(np.arccos),
    "Acosh": WideFunction(np.arccosh),
    "Asin": WideFunction(np.arcsin),
    "Asinh": WideFunction(np.arcsinh),
    "Atan": WideFunction(np.arctan),
    "Atanh": WideFunction(np.arctanh),
    "Ceil": _exact(np.ceil),
    "Celu": WideFunction(_elu),
    "Cos": WideFunction(np.cos, range=(-1, 1)),
    "Cosh": WideFunction(np.cosh, range=(1, inf)),
    "Elu": WideFunction(_elu),
    "Erf": WideFunction(_erf, lambda z: np.full_like(z, 8), (-1, 1)),
    "Exp": WideFunction(np.exp),
    "Exponential 2": WideFunction(lambda z: np.power(np.longdouble(2), z)),
    "Exponential 0.3": WideFunction(lambda z: np.power(np.longdouble(0.3), z)),
    "Floor": _exact(np.floor),
    "Gelu": WideFunction(_gelu, lambda z: 8 * np.abs(z)),
    "HardSwish": WideFunction(lambda z: z * np.clip(z + 3, 0, 6) / 6, range=(-0.375, inf)),
    "Log": WideFunction(np.log),
    "Pow 3": WideFunction(lambda z: z * z * z),
    "Pow 4": WideFunction(lambda z: z * z * z * z, range=(0, inf)),
    "Pow -0.5": WideFunction(lambda z: 1 / np.sqrt(z)),
    "Pow 1.5": WideFunction(lambda z: z * np.sqrt(z)),
    "Reciprocal": WideFunction(lambda z: 1 / z),
    "Round": _exact(np.rint),
    "Selu": WideFunction(_selu),
    "Sigmoid": WideFunction(_sigmoid, range=(0, 1)),
    "Sign": _exact(np.sign),
    "SiLU": WideFunction(lambda z: z * _sigmoid(z)),
    "Sin": WideFunction(np.sin, range=(-1, 1)),
    "Sinh": WideFunction(np.sinh),
    "Softplus": WideFunction(_softplus),
    "Softsign": WideFunction(lambda z: z / (1 + np.abs(z))),
    "Sqrt": WideFunction(np.sqrt),
    "Square": WideFunction(lambda z: z * z, range=(0, inf)),
    "Step": _exact(lambda z: (z > 0).astype(z.dtype)),
    "Tan": WideFunction(np.tan),
    "Within": _exact(np.copy),
    "Tanh": WideFunction(np.tanh, range=(-1, 1)),
}
