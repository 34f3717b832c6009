"""A question to a verifier: a network, a property or balls, and points for the oracle to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Norm = Literal["linf", "l2", "l1"]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Ball:
    """A question of local robustness."""

    center: tuple[float, ...]  # float32 values
    epsilon: float
    norm: Norm


@dataclass(frozen=True, eq=False)
class Case:
    """A question whose wrong answers can be detected; `points` lie in the box, the best first."""

    name: str
    network: bytes
    property: bytes
    points: tuple[tuple[float, ...], ...]
    planted: str = ""  # an unsafe output of onnxruntime, clear of all rounding, as text
    balls: tuple[Ball, ...] = ()


def box_property(
    lower: Sequence[float], upper: Sequence[float], outputs: int, *unsafe: str
) -> bytes:
    """VNN-LIB 1.0: a box, and assertions about the outputs."""
    lines = [f"(declare-const X_{i} Real)" for i in range(len(lower))]
    lines += [f"(declare-const Y_{i} Real)" for i in range(outputs)]
    for i, (low, high) in enumerate(zip(lower, upper, strict=True)):
        lines += [f"(assert (>= X_{i} {float(low)!r}))", f"(assert (<= X_{i} {float(high)!r}))"]
    lines += [f"(assert {part})" for part in unsafe]
    return "\n".join([*lines, ""]).encode()
