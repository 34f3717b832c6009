"""Words for a reader."""

from __future__ import annotations

NO_CERTIFICATE = "no certificate"  # what the reason of an unsat without its proof begins with


def plural(number: int, noun: str) -> str:
    """A number with its noun: `1 point`, `2 points`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
