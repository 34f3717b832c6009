"""Bounds on the rounding error of the checker's arithmetic; `bounds` explains them."""

from __future__ import annotations

UNIT = 2.0**-53
SMALL = 2.0**-1022  # more than any underflow loses


def gamma(count: int) -> float:
    """Upper bound on the relative error of `count` roundings; doubles the count first."""
    return 2 * count * UNIT / (1 - 2 * count * UNIT)
