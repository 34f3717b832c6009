"""Numbers that are hard on floating-point arithmetic."""

from __future__ import annotations

import numpy as np

from hostile_cases.case import Array

SINGLE = np.finfo(np.float32)
EDGES = np.array(
    [
        SINGLE.max,
        -SINGLE.max,
        SINGLE.max / 2,
        SINGLE.tiny,
        -SINGLE.tiny,
        float(SINGLE.tiny) * (1 - 2**-23),
        SINGLE.smallest_subnormal,
        -SINGLE.smallest_subnormal,
        2.0**127,
        2.0**-127,
        1.0,
        -1.0,
    ]
)


def single(values: Array | float) -> Array:
    """Round to float32, with values beyond its range clipped to its ends."""
    top = float(SINGLE.max)
    with np.errstate(under="ignore"):
        return np.clip(np.asarray(values, np.float64), -top, top).astype(np.float32)


def magnitude(random: np.random.Generator) -> float:
    """A size from 1e-45 to 3e38: a power of ten or of two, or an edge of float32."""
    kind = random.integers(4)
    if kind == 0:
        return float(abs(random.choice(EDGES)))
    if kind == 1:
        return float(2.0 ** random.integers(-149, 128))
    if kind == 2:
        return float(10.0 ** random.uniform(-3, 3))
    return float(10.0 ** random.uniform(-45, 38.4))


def entries(random: np.random.Generator, size: float, *shape: int) -> Array:
    """float32 values of about `size`, possibly with some 0, equal, on a grid or far smaller."""
    values = random.normal(size=shape)
    kind = random.integers(5)
    if kind == 0:
        values = np.round(values * 2) / 2
    elif kind == 1:
        values = np.sign(values)
    elif kind == 2:
        values = values * 10.0 ** random.uniform(-12, 0, size=shape)
    if random.random() < 0.3:
        values = values * (random.random(size=shape) < 0.7)
    with np.errstate(over="ignore", under="ignore"):
        return single(values * size)


def near(random: np.random.Generator, value: float, size: float) -> float:
    """A float64 equal to a value, next to it, close to it or far from it."""
    kind = random.integers(6)
    if kind == 0:
        return value
    if kind == 1:
        return float(np.nextafter(value, random.choice([-np.inf, np.inf])))
    step = (1e-12, 1e-7, 1e-3, 0.5)[kind - 2] * max(abs(value), size * random.choice([0.0, 1.0]))
    with np.errstate(over="ignore", under="ignore"):
        moved = value + step * random.choice([-1.0, 1.0])
    return float(moved) if np.isfinite(moved) else value
