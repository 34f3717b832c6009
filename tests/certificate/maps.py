"""Maps of the checker's networks, and their values in exact rational numbers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from fgp_vnn.certificate.checker.network import AffineMap, CheckedNetwork


def affine(weights: Mapping[int, Any], bias: Any) -> AffineMap:
    """A map whose entries are exact."""
    matrices = {s: np.asarray(w, dtype=np.float64) for s, w in weights.items()}
    offset = np.asarray(bias, dtype=np.float64)
    sizes = {s: np.abs(w) for s, w in matrices.items()}
    return AffineMap(matrices, offset, sizes, np.abs(offset), 0)


def exact(values: Any) -> Any:
    """An array of fractions."""
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(values)


def exact_values(network: CheckedNetwork, x: Any) -> list[Any]:
    """The outputs of all maps of a network of ReLUs at x [inputs]."""
    values, result = [exact(x)], []
    for part in network.maps:
        z = exact(part.bias)
        for s, weight in part.weights.items():
            z = z + exact(weight) @ values[s]
        result.append(z)
        values.append(np.maximum(z, exact(np.zeros(1))))
    return result
