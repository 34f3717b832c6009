"""The activation functions by ONNX operator name.

To add one, write its pieces in the file of its family, with the errors of its formulas, and add its
name here. `scripts/evaluation/activation_lines.py` checks it on a million intervals in high
precision.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from fgp_vnn.network.activations.base import Activation
from fgp_vnn.network.activations.gates import HARD_SWISH, SILU, SOFTPLUS, elu, gelu
from fgp_vnn.network.activations.inverses import INVERSES
from fgp_vnn.network.activations.jumps import CEIL, FLOOR, ROUND, SIGN, WITHIN, step
from fgp_vnn.network.activations.powers import EXP, LOG, OF_ONE_OR_MORE, RECIPROCAL, SQRT, SQUARE
from fgp_vnn.network.activations.sigmoids import S_SHAPED
from fgp_vnn.network.activations.waves import COS, SIN

Attributes = dict[str, Any]


def _attribute(given: Attributes, name: str, default: float) -> float:
    """An attribute of a node, with its default rounded to float32 as in a file."""
    return float(given.get(name, np.float32(default)))


def _selu(given: Attributes) -> Activation:
    alpha = _attribute(given, "alpha", 1.67326319217681884765625)
    return elu(alpha, _attribute(given, "gamma", 1.05070102214813232421875), name="Selu")


def _celu(given: Attributes) -> Activation:
    alpha = _attribute(given, "alpha", 1.0)
    return elu(alpha, stretch=alpha, name="Celu")


def _always(activation: Activation) -> Callable[[Attributes], Activation]:
    return lambda given: activation


_FIXED: tuple[Activation, ...] = (
    *S_SHAPED, *INVERSES, CEIL, COS, EXP, FLOOR, HARD_SWISH, LOG, ROUND, SIGN, SILU, SIN, SOFTPLUS,
    SQRT, SQUARE, WITHIN,
)  # fmt: skip
ACTIVATIONS: dict[str, Callable[[Attributes], Activation]] = {
    **{activation.name: _always(activation) for activation in _FIXED},
    "Celu": _celu,
    "Elu": lambda given: elu(_attribute(given, "alpha", 1.0)),
    "Gelu": lambda given: gelu(given.get("unit", sqrt(2))),
    "Reciprocal": lambda given: OF_ONE_OR_MORE if given.get("softmax") else RECIPROCAL,
    "Selu": _selu,
    "Step": lambda given: step(bool(given.get("equal", 0))),
}
