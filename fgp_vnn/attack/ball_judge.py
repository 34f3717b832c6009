"""The last word on a counterexample in a ball, and on what is a ball."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from torch import Tensor

from fgp_vnn.attack.confirm import snap
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.robustness import NORMS, Doubles, Floats, Norm, other_class
from fgp_vnn.base.verdict import Counterexample


@dataclass(frozen=True, eq=False)
class BallPoints:
    """The float32 points of a ball that lie in a box, by exact arithmetic."""

    center: Doubles  # [inputs]
    epsilon: float
    norm: Norm
    lower: Doubles  # [inputs] of the ball's box, cut to the clip box
    upper: Doubles  # [inputs]

    def inside(self, point: Doubles) -> Floats | None:
        """The point as float32, moved towards the centre until it lies in the ball."""
        if not np.isfinite(point).all():
            return None
        for shrink in (1.0, 1.0 - 1e-7, 1.0 - 1e-6, 1.0 - 1e-5):
            moved = self.center + shrink * self._cut(point - self.center)
            x = snap(moved, self.lower, self.upper).astype(np.float32)
            if within(x, self.center, self.epsilon, self.norm) and self._boxed(x):
                return x
        return None

    def _cut(self, offset: Doubles) -> Doubles:
        if self.norm == "linf":
            return offset
        size = float(np.linalg.norm(offset, 2 if self.norm == "l2" else 1))
        return offset * (self.epsilon / size) if size > self.epsilon else offset

    def _boxed(self, x: Floats) -> bool:
        return bool(((self.lower <= x) & (x <= self.upper)).all())


@dataclass(frozen=True, eq=False)
class BallJudge(BallPoints):
    """Decides whether a point is a counterexample: in the ball and the box as float32 values, and
    given another class, or a tie, by running the network."""

    run: Callable[[Floats], Floats]  # the original network, [inputs] -> [outputs]
    label: int

    def __call__(self, points: Tensor) -> Counterexample | None:
        """The first of the points [points, inputs] that is a counterexample."""
        for point in points.detach().cpu().double().numpy():
            x = self.inside(point)
            if x is None:
                continue
            y = self.run(x)
            if np.isfinite(y).all() and y[other_class(y, self.label)] >= y[self.label]:
                return Counterexample(x.astype(np.float64), y)
        return None


def within(x: Floats, center: Doubles, epsilon: float, norm: Norm) -> bool:
    """Whether ||x - center|| <= epsilon, for the exact values of the floating-point numbers.

    Float64 decides unless the distance is within its rounding error of epsilon.
    """
    offset = np.abs(x.astype(np.float64) - center)
    if norm == "linf":
        size, limit = float(offset.max(initial=0.0)), epsilon
    elif norm == "l1":
        size, limit = float(offset.sum()), epsilon
    else:
        size, limit = float(offset @ offset), epsilon * epsilon
    slack = 4 * (len(offset) + 4) * np.finfo(np.float64).eps * limit + 1e-290  # also underflow
    if abs(size - limit) > slack:
        return size < limit
    exact = [abs(Fraction(float(a)) - Fraction(float(c))) for a, c in zip(x, center, strict=True)]
    if norm == "linf":
        return max(exact, default=Fraction(0)) <= Fraction(epsilon)
    if norm == "l1":
        return sum(exact, Fraction(0)) <= Fraction(epsilon)
    return sum((a * a for a in exact), Fraction(0)) <= Fraction(epsilon) ** 2


def check_ball(x: Doubles, epsilon: float, norm: str, clip: Sequence[float] | None) -> None:
    """Refuse what is no ball around an input of the clip box."""
    if norm not in NORMS:
        raise InputError(f"norm is {norm!r}; it must be one of {', '.join(NORMS)}")
    if not (0 <= epsilon < math.inf):
        raise InputError(f"epsilon is {epsilon}; it must be a number of at least 0")
    if not np.isfinite(x).all():
        raise InputError("the input has values that are not finite")
    if clip is None:
        return
    if not -math.inf < clip[0] <= clip[1] < math.inf:
        raise InputError(f"the clip box [{clip[0]}, {clip[1]}] is empty or infinite")
    if x.min(initial=math.inf) < clip[0] or x.max(initial=-math.inf) > clip[1]:
        raise InputError(
            f"the input has values from {x.min():g} to {x.max():g}, outside of the clip box "
            f"[{clip[0]:g}, {clip[1]:g}]"
        )
