"""The lower and the upper bound of a radius while a search narrows them; both are always valid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.attack.boundary import ORDERS
from fgp_vnn.base.radius import Ended, Radius
from fgp_vnn.base.robustness import Doubles, other_class
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.classifier import Center, Classifier
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.settings import Settings
from fgp_vnn.strategy import RadiusSearch

if TYPE_CHECKING:
    from fgp_vnn.engine.radius_search import Attempt

Progress = Callable[[float, float], None]  # called with the lower and the upper bound


@dataclass(eq=False)
class Ends:
    """Current bounds of a radius: `lower` is proved, a counterexample is at distance `upper`."""

    classifier: Classifier
    center: Center
    maximum: float
    gap: float
    budget: Budget
    progress: Progress
    largest: Problem = field(init=False)  # the problem of the ball of radius `maximum`
    lower: float = 0.0
    upper: float = math.inf
    counterexample: Counterexample | None = None
    waiting: list[Attempt] = field(default_factory=list)  # unproved, the smallest radius last
    reason: str = "the search has nothing left to try"  # why it ends below the goal, if it does
    plain: float = math.inf  # tolerance of the last `plain_bounds`; inf: not computed yet

    def __post_init__(self) -> None:
        self.largest = self.problem(self.maximum)

    @property
    def settings(self) -> Settings:
        """The user's settings."""
        return self.classifier.settings

    @property
    def numbers(self) -> RadiusSearch:
        """The tuning numbers of the search for a radius."""
        return self.classifier.strategy.radius

    @property
    def goal(self) -> float:
        """The lower bound at which the search ends."""
        return min(self.maximum, self.upper * (1 - self.gap))

    @property
    def done(self) -> bool:
        """Whether the lower bound has reached the goal."""
        return self.lower >= self.goal

    def problem(self, radius: float) -> Problem:
        """The problem whether the ball of that radius holds a counterexample."""
        return self.classifier.problem(self.center, radius, self.budget)

    def raise_to(self, lower: float) -> None:
        """Raise the lower bound: no counterexample is nearer than `lower`."""
        # A counterexample of the float32 program may be nearer than any of the real network.
        lower = min(lower, self.upper)
        if lower > self.lower:
            self.lower = lower
            self.progress(self.lower, self.upper)

    def offer(self, points: Tensor) -> bool:
        """Lower the upper bound if one of the points [points, inputs], nearest first, is a nearer
        counterexample; returns whether one is.

        A point counts if the original program, in float32, and the network in float64 both give
        another class, or a tie, to float32 values that lie in the clip box.
        """
        improved = False
        for point in points.detach().cpu().double().numpy():
            if not np.isfinite(point).all():
                continue
            for overshoot in self.numbers.overshoots:
                moved = self.center.x + (1 + overshoot) * (point - self.center.x)
                if self.distance(moved) >= self.upper:
                    break
                if self._take(moved):
                    improved = True
                    break
        return improved

    def answer(self, method: str) -> Radius:
        """The answer that a method has reached."""
        ended: Ended = "inconclusive"
        reason = self.reason
        if math.isfinite(self.upper) and self.lower >= self.upper * (1 - self.gap):
            ended, reason = "tight", ""
        elif self.lower >= self.maximum:
            ended, reason = "max", ""
        elif self.budget.expired():
            ended, reason = "timeout", ""
        return Radius(
            self.lower,
            self.upper,
            self.center.label,
            self.counterexample,
            ended,
            method,
            statistics=self.largest.statistics,
            reason=reason,
        )

    def distance(self, point: Doubles) -> float:
        """Distance from the centre, rounded up by more than the float64 error."""
        offset = point - self.center.x
        length = float(np.linalg.norm(offset, ORDERS[self.center.norm]))
        return length * (1 + (len(offset) + 8) * float(np.finfo(np.float64).eps))

    def _take(self, point: Doubles) -> bool:
        limit = self.upper if math.isfinite(self.upper) else 2 * self.distance(point) + 1
        found = self.classifier.judge(self.center, limit)(torch.from_numpy(point).unsqueeze(0))
        if found is None or self.distance(found.x) >= self.upper:
            return False
        network, label = self.classifier.network, self.center.label
        values = network(torch.from_numpy(found.x).to(network.device).unsqueeze(0))[0].cpu().numpy()
        if values[other_class(values, label)] < values[label]:
            return False
        self.upper, self.counterexample = self.distance(found.x), found
        self.progress(self.lower, self.upper)
        return True
