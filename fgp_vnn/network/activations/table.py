"""The activations by their ONNX operators.

To add one: write its pieces in a file of its family, with the error of its formulas, and a line
here. `scripts/evaluation/activation_lines.py` checks it on a million intervals in high precision.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from fgp_vnn.network.activations.base import Activation
from fgp_vnn.network.activations.gates import HARD_SWISH, SILU, SOFTPLUS, elu, gelu
from fgp_vnn.network.activations.inverses import (
    ACOS,
    ACOSH,
    ASIN,
    ASINH,
    ATANH,
    COSH,
    SINH,
    TAN,
)  # fmt: skip
from fgp_vnn.network.activations.powers import EXP, LOG, OF_ONE_OR_MORE, RECIPROCAL, SQRT, SQUARE
from fgp_vnn.network.activations.sigmoids import ATAN, ERF, SIGMOID, SOFTSIGN, TANH
from fgp_vnn.network.activations.steps import CEIL, FLOOR, ROUND, SIGN, WITHIN, step
from fgp_vnn.network.activations.waves import COS, SIN

Attributes = dict[str, Any]


def _attribute(given: Attributes, name: str, default: float) -> float:
    """An attribute, which a file holds in float32."""
    return float(given.get(name, np.float32(default)))


def _selu(given: Attributes) -> Activation:
    alpha = _attribute(given, "alpha", 1.67326319217681884765625)
    return elu(alpha, _attribute(given, "gamma", 1.05070102214813232421875), name="Selu")


def _celu(given: Attributes) -> Activation:
    alpha = _attribute(given, "alpha", 1.0)
    return elu(alpha, stretch=alpha, name="Celu")


ACTIVATIONS: dict[str, Callable[[Attributes], Activation]] = {
    "Acos": lambda given: ACOS,
    "Acosh": lambda given: ACOSH,
    "Asin": lambda given: ASIN,
    "Asinh": lambda given: ASINH,
    "Atan": lambda given: ATAN,
    "Atanh": lambda given: ATANH,
    "Ceil": lambda given: CEIL,
    "Celu": _celu,
    "Cos": lambda given: COS,
    "Cosh": lambda given: COSH,
    "Elu": lambda given: elu(_attribute(given, "alpha", 1.0)),
    "Erf": lambda given: ERF,
    "Exp": lambda given: EXP,
    "Floor": lambda given: FLOOR,
    "Gelu": lambda given: gelu(given.get("unit", sqrt(2))),
    "HardSwish": lambda given: HARD_SWISH,
    "Log": lambda given: LOG,
    "Reciprocal": lambda given: OF_ONE_OR_MORE if given.get("softmax") else RECIPROCAL,
    "Round": lambda given: ROUND,
    "Selu": _selu,
    "Sigmoid": lambda given: SIGMOID,
    "Sign": lambda given: SIGN,
    "SiLU": lambda given: SILU,
    "Sin": lambda given: SIN,
    "Sinh": lambda given: SINH,
    "Softplus": lambda given: SOFTPLUS,
    "Softsign": lambda given: SOFTSIGN,
    "Sqrt": lambda given: SQRT,
    "Square": lambda given: SQUARE,
    "Step": lambda given: step(bool(given.get("equal", 0))),
    "Tan": lambda given: TAN,
    "Tanh": lambda given: TANH,
    "Within": lambda given: WITHIN,
}
