"""The final check of a counterexample in a ball, and the validation of a ball's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from torch import Tensor

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.robustness import NORMS, Doubles, Floats, Norm, other_class
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.property.numbers import snap

LARGEST = 1e300  # radius: sums over the inputs of a larger ball can overflow in float64


@dataclass(frozen=True, eq=False)
class BallPoints:
    """The intersection of a ball and a box, with membership decided by exact arithmetic."""

    center: Doubles  # [inputs]
    epsilon: float | Doubles  # the l-infinity norm also allows one per input
    norm: Norm
    lower: Doubles  # [inputs] of the ball's bounding box, cut to the clip box
    upper: Doubles  # [inputs]

    def inside(self, point: Doubles) -> Doubles | None:
        """The point as float32 values, moved towards the centre until it lies in the ball; None if
        that fails. An input with no float32 between its bounds (a fixed input) stays a float64."""
        if not np.isfinite(point).all():
            return None
        for shrink in (1.0, 1.0 - 1e-7, 1.0 - 1e-6, 1.0 - 1e-5):
            moved = self.center + shrink * self._cut(point - self.center)
            x = snap(moved, self.lower, self.upper)
            boxed = bool(((self.lower <= x) & (x <= self.upper)).all())
            if boxed and within(x, self.center, self.epsilon, self.norm):
                return x
        return None

    def _cut(self, offset: Doubles) -> Doubles:
        if self.norm == "linf" or not isinstance(self.epsilon, (int, float)):
            return offset
        size = float(np.linalg.norm(offset, 2 if self.norm == "l2" else 1))
        return offset * (self.epsilon / size) if size > self.epsilon else offset


@dataclass(frozen=True, eq=False)
class BallJudge(BallPoints):
    """Decides whether a point is a counterexample: as float32 values it lies in the ball and the
    box, and the network gives it another class or a tie."""

    run: Callable[[Floats], Floats]  # the original network, [inputs] -> [outputs]
    label: int
    targets: tuple[int, ...] | None = None  # classes that make a counterexample; None: all others

    def __call__(self, points: Tensor) -> Counterexample | None:
        """The first of the points [points, inputs] that is a counterexample."""
        for point in points.detach().cpu().double().numpy():
            x = self.inside(point)
            if x is None:
                continue
            y = self.run(x.astype(np.float32))
            if np.isfinite(y).all() and self._other(y) >= float(y[self.label]):
                return Counterexample(x, y)
        return None

    def _other(self, y: Floats) -> float:
        """The greatest output among the target classes other than the label; -inf without any."""
        if self.targets is None:
            return float(y[other_class(y, self.label)])
        return max((float(y[t]) for t in self.targets if t != self.label), default=-np.inf)


def within(x: Floats | Doubles, center: Doubles, epsilon: float | Doubles, norm: Norm) -> bool:
    """Whether ||x - center|| <= epsilon, for the exact values of the floating-point numbers; the
    l-infinity norm also allows one epsilon per input.

    Float64 decides unless the distance is within rounding error of epsilon; then fractions do.
    """
    offset = np.abs(x.astype(np.float64) - center)
    eps = np.finfo(np.float64).eps
    if norm == "linf":
        limits = np.broadcast_to(epsilon, offset.shape)
        near = np.abs(offset - limits) <= 8 * eps * limits + 1e-290
        if (offset > limits)[~near].any():
            return False
        pairs = zip(x[near], center[near], limits[near], strict=True)
        return all(_apart(a, c) <= Fraction(float(e)) for a, c, e in pairs)
    radius = float(epsilon)
    if norm == "l1":
        size, limit = float(offset.sum()), radius
    else:
        size, limit = float(offset @ offset), radius * radius
    slack = 4 * (len(offset) + 4) * eps * limit + 1e-290  # 1e-290 covers underflow
    if abs(size - limit) > slack:
        return size < limit
    exact = [_apart(a, c) for a, c in zip(x, center, strict=True)]
    if norm == "l1":
        return sum(exact, Fraction(0)) <= Fraction(radius)
    return sum((a * a for a in exact), Fraction(0)) <= Fraction(radius) ** 2


def _apart(a: float, b: float) -> Fraction:
    return abs(Fraction(float(a)) - Fraction(float(b)))


def check_ball(
    x: Doubles, epsilon: float | Doubles, norm: str, clip: Sequence[float | Doubles] | None
) -> None:
    """Raise InputError unless these describe a ball around an input inside the clip box."""
    if norm not in NORMS:
        raise InputError(f"norm is {norm!r}; it must be one of {', '.join(NORMS)}")
    if not (np.greater_equal(epsilon, 0) & np.isfinite(epsilon)).all():
        raise InputError(f"epsilon is {epsilon}; it must be a number of at least 0")
    if np.greater(epsilon, LARGEST).any():
        raise InputError(f"epsilon is {np.max(epsilon)}; it must be at most {LARGEST:g}")
    if norm != "linf" and np.ndim(epsilon):
        raise InputError(f"an epsilon for each input is for the norm linf; in {norm} it is one")
    if not np.isfinite(x).all():
        raise InputError("the input has values that are not finite")
    if clip is None:
        return
    low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64), x.shape) for side in clip)
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
        raise InputError(
            f"the clip box, from {low.min():g} to {high.max():g}, is empty or infinite for an input"
        )
    if (x < low).any() or (x > high).any():
        raise InputError(
            f"the input has values from {x.min():g} to {x.max():g}, outside of the clip box "
            f"[{low.min():g}, {high.max():g}]"
        )
