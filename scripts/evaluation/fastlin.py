"""A plain implementation of Fast-Lin (Weng et al., ICML 2018), a baseline for radii.

A ReLU whose input lies in [l, u] with l < 0 < u is bounded by two lines of the same slope
d = u / (u - l), namely d z and d (z - l), so one matrix per layer serves both sides. NumPy in
float64, rounding ignored: for comparison, not for proofs. Fully connected networks only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reference_walk import Array, Layer, forward

DUAL = {"l2": 2, "linf": 1, "l1": np.inf}
Line = tuple[Array, Array]  # slope, and offset of the upper line, of each ReLU of a layer


def fastlin_radius(
    layers: Sequence[Layer], x: Array, norm: str, maximum: float, *, steps: int = 20
) -> float:
    """The largest radius up to `maximum` at which Fast-Lin proves the class of x, by bisection."""
    if proves(layers, x, norm, maximum):
        return maximum
    low, high = 0.0, maximum
    for _ in range(steps):
        middle = (low + high) / 2
        if proves(layers, x, norm, middle):
            low = middle
        else:
            high = middle
    return low


def proves(layers: Sequence[Layer], x: Array, norm: str, radius: float) -> bool:
    """Whether Fast-Lin proves that no other class reaches that of x within the radius."""
    label = int(forward(layers, x)[-1].argmax())
    lines: list[Line] = []
    for k in range(len(layers) - 1):
        lower, upper = bounds(layers[:k], lines, layers[k], x, norm, radius)
        lines.append(_lines(lower, upper))
    weight, bias = layers[-1]
    others = np.arange(len(bias)) != label
    margins = weight[label] - weight[others], bias[label] - bias[others]
    lower, _ = bounds(layers[:-1], lines, margins, x, norm, radius)
    return bool((lower > 0).all())


def bounds(
    before: Sequence[Layer], lines: Sequence[Line], last: Layer, x: Array, norm: str, radius: float
) -> tuple[Array, Array]:
    """Bounds over the ball on an affine map of the last ReLUs, propagated back to the input."""
    rows, low = last[0], last[1]
    high = low
    for (weight, bias), (slope, offset) in zip(reversed(before), reversed(lines), strict=True):
        low = low + np.minimum(rows, 0) @ offset
        high = high + np.maximum(rows, 0) @ offset
        rows = rows * slope
        low, high = low + rows @ bias, high + rows @ bias
        rows = rows @ weight
    reach = radius * np.linalg.norm(rows, DUAL[norm], axis=1)
    return low + rows @ x - reach, high + rows @ x + reach


def _lines(lower: Array, upper: Array) -> Line:
    slope = np.where(lower >= 0, 1.0, 0.0)
    open_ = (lower < 0) & (upper > 0)
    slope[open_] = upper[open_] / (upper[open_] - lower[open_])
    return slope, np.where(open_, -slope * lower, 0.0)
