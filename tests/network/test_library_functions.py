"""The proofs of smooth activations take the library's functions to be within 4 units in the last
place; here that is measured on this machine, in high precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch
from torch import Tensor

UNITS = 4  # what `network/activations/curve.py` takes for granted

# The function, its exact value, the powers of ten of its arguments, and whether these have signs.
FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Any, tuple[float, float], bool]] = {
    "exp": (torch.exp, mpmath.exp, (-20, 2.84), True),
    "expm1": (torch.expm1, mpmath.expm1, (-20, 2.8), True),
    "log": (torch.log, mpmath.log, (-300, 300), False),
    "log1p": (torch.log1p, mpmath.log1p, (-20, 20), False),
    "tanh": (torch.tanh, mpmath.tanh, (-20, 1.3), True),
    "atan": (torch.atan, mpmath.atan, (-20, 20), True),
    "atanh": (torch.atanh, mpmath.atanh, (-20, -1e-6), True),
    "asin": (torch.asin, mpmath.asin, (-20, -1e-9), True),
    "acos": (torch.acos, mpmath.acos, (-20, -1e-9), True),
    "asinh": (torch.asinh, mpmath.asinh, (-20, 20), True),
    "acosh": (torch.acosh, mpmath.acosh, (1e-9, 20), False),
    "sinh": (torch.sinh, mpmath.sinh, (-20, 2.8), True),
    "cosh": (torch.cosh, mpmath.cosh, (-20, 2.8), True),
    "tan": (torch.tan, mpmath.tan, (-20, 0.195), True),
    "erf": (torch.erf, mpmath.erf, (-20, 0.77), True),
    "sin": (torch.sin, mpmath.sin, (-10, 18), True),
    "cos": (torch.cos, mpmath.cos, (-10, 18), True),
    "sqrt": (torch.sqrt, mpmath.sqrt, (-300, 300), False),
    "reciprocal": (torch.reciprocal, lambda x: 1 / x, (-300, 300), True),
    "cube root": (lambda x: x ** (1 / 3), lambda x: x ** mpmath.mpf(1 / 3), (-300, 300), False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_library_is_as_exact_as_the_proofs_need(name: str) -> None:
    function, exact, (low, high), signed = FUNCTIONS[name]
    random = torch.Generator().manual_seed(0)
    count = 403  # no multiple of a vector's length
    x = 10 ** (low + (high - low) * torch.rand(count, generator=random, dtype=torch.float64))
    if signed:
        x = x * (2 * torch.randint(0, 2, (count,), generator=random) - 1)
    checked = 0
    with mpmath.workdps(60):
        for argument, value in zip(x.tolist(), function(x).tolist(), strict=True):
            wanted = exact(mpmath.mpf(argument))
            if not 1e-300 < abs(wanted) < 1e300:
                continue
            checked += 1
            unit = math.ulp(float(abs(wanted)))
            assert abs(mpmath.mpf(value) - wanted) <= UNITS * unit, argument
    assert checked > count / 2
