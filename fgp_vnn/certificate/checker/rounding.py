"""What the checker's arithmetic may be off by; `bounds` says why."""

from __future__ import annotations

UNIT = 2.0**-53
SMALL = 2.0**-1022  # more than what an underflow takes away


def gamma(count: int) -> float:
    """A bound on the relative error of `count` roundings; the count is doubled first."""
    return 2 * count * UNIT / (1 - 2 * count * UNIT)
