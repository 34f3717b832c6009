"""A network whose greatest output is its answer, and problems about the balls around its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from fgp_vnn.attack.ball_judge import BallJudge
from fgp_vnn.base.robustness import Doubles, Floats, Norm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box, Clipped, Domain, L1Ball, L2Ball
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.engine.settings import Settings
from fgp_vnn.engine.steps import attack_longer
from fgp_vnn.network.model import AffineMap, Combination, Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.inputs import RowSpace

Clip = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Center:
    """An input, its class, and what counts as near to it."""

    x: Doubles  # [inputs]
    label: int
    norm: Norm
    clip: Clip | None  # inputs with a value outside do not count

    def ball(self, radius: float, device: torch.device) -> Domain:
        """The inputs within the radius, and in the clip box; a box is rounded outwards."""
        center = torch.from_numpy(self.x).to(device)
        if self.norm == "linf":
            lower = np.nextafter(self.x - radius, -np.inf)
            upper = np.nextafter(self.x + radius, np.inf)
            if self.clip is not None:
                lower, upper = np.maximum(lower, self.clip[0]), np.minimum(upper, self.clip[1])
            return Box(torch.from_numpy(lower).to(device), torch.from_numpy(upper).to(device))
        kind: type[L2Ball] | type[L1Ball] = L2Ball if self.norm == "l2" else L1Ball
        whole = kind(center, float(radius))
        if self.clip is None:
            return whole
        low, high = (torch.full_like(center, bound) for bound in self.clip)
        return Clipped(whole, Box(low, high))


@dataclass(frozen=True, eq=False)
class Classifier:
    """A network made ready: what depends on the network alone is computed once."""

    network: Network  # float64
    run: Callable[[Floats], Floats]  # the original program, [inputs] -> [outputs]
    settings: Settings
    strategy: Strategy
    space: RowSpace | None  # of the input, for l2 balls
    _outputs: dict[int, AffineMap] = field(default_factory=dict, init=False)  # margins of classes

    def problems(self, center: Center, radius: float, budget: Budget) -> Iterator[Problem]:
        """Whether the ball holds a counterexample, as problems to try until one is decided.

        A clipped l2 ball has no row space: the whole ball, in its own, comes first, and both sets
        only where that is left open.
        """
        if center.clip is not None and center.norm == "l2" and self.space is not None:
            yield self.problem(center, radius, budget, whole=True)
        yield self.problem(center, radius, budget)

    def descend(self, center: Center, radius: float, budget: Budget) -> Counterexample | None:
        """A counterexample in the ball, if a longer attack finds one."""
        problem = self.problem(center, radius, budget)
        problem.settings = replace(self.settings, attack=True)
        verdict = attack_longer(problem)
        return None if verdict is None else verdict.counterexample

    def problem(
        self, center: Center, radius: float, budget: Budget, *, whole: bool = False
    ) -> Problem:
        """Can another class reach the label's output in the ball, or in the whole of it without
        the clip box? In the row space of the input, where an l2 ball has one."""
        # In the whole ball an LP finds points that the clip box shuts out.
        settings = replace(self.settings, lp=False) if whole else self.settings
        free = replace(center, clip=None) if whole else center
        query = self._query(free.ball(radius, self.network.device), center.label)
        judge = self.judge(center, radius)
        problem = Problem(query, judge, settings, budget, self.strategy, NullLog(query))
        if self.space is not None and isinstance(query.domain, L2Ball):
            problem.enter(*self.space.restrict(query, query.domain))
        return problem

    def judge(self, center: Center, radius: float) -> BallJudge:
        """What has the last word on points of the ball."""
        low, high = (-math.inf, math.inf) if center.clip is None else center.clip
        lower, upper = np.maximum(center.x - radius, low), np.minimum(center.x + radius, high)
        return BallJudge(center.x, radius, center.norm, lower, upper, self.run, center.label)

    def _query(self, domain: Domain, label: int) -> Query:
        others, device = self.network.outputs - 1, self.network.device
        if label not in self._outputs:
            self._outputs[label] = margins(self.network.output, label)
        return Query(
            replace(self.network, output=self._outputs[label]),
            domain,
            torch.arange(others, device=device),
            torch.zeros(others, dtype=torch.bool, device=device),
            others,
        )


def margins(output: AffineMap, label: int) -> AffineMap:
    """y_label - y_j for all other classes j."""
    count = output.outputs
    eye = torch.eye(count, dtype=output.bias.dtype, device=output.bias.device)
    others = [j for j in range(count) if j != label]
    rows = eye[label] - eye[others]
    if not isinstance(output, Dense) or output.terms is not None or output.defect is not None:
        return Combination(output, rows, torch.zeros_like(rows[:, 0]))
    weights = tuple(rows @ weight for weight in output.weights)
    sizes = tuple(rows.abs() @ weight.abs() for weight in output.weights)
    terms = (*sizes, rows.abs() @ output.bias.abs())
    return Dense(output.sources, weights, rows @ output.bias, terms=terms)
