"""A classifier (its greatest output is its answer), and problems on balls around its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from fgp_vnn.attack.ball_judge import BallJudge
from fgp_vnn.base.robustness import Doubles, Floats, Norm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.engine.settings import Settings
from fgp_vnn.engine.steps import attack_longer
from fgp_vnn.network.model import AffineMap, Combination, Dense, Network
from fgp_vnn.query import Query, ask_outputs
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.inputs import RowSpace, fix_inputs

Clip = tuple[Doubles, Doubles]  # [inputs] each
Classes = tuple[int, tuple[int, ...] | None]  # a class, and its targets (None: all others)


@dataclass(frozen=True, eq=False)
class Center:
    """An input, its class, and the shape of the balls around it."""

    x: Doubles  # [inputs]
    label: int
    norm: Norm
    clip: Clip | None = None  # the balls are cut to this box
    moves: NDArray[np.bool_] | None = None  # [inputs] False: the input is fixed; None: all move
    sizes: Doubles | None = None  # [inputs] half-widths of the l-infinity ball of radius 1
    targets: tuple[int, ...] | None = None  # classes that make a counterexample; None: all others

    def reach(self, radius: float) -> float | Doubles:
        """The radius of the ball; in the l-infinity norm possibly one radius per input."""
        return radius if self.sizes is None else radius * self.sizes

    def box(self, radius: float) -> tuple[Doubles, Doubles]:
        """The bounding box of the ball, cut to the clip box, up to rounding."""
        reach = self.reach(radius)
        return self._cut(self.x - reach, self.x + reach)

    def ball(self, radius: float, device: torch.device) -> Domain:
        """The ball of that radius, cut to the clip box; a box is rounded outwards."""
        center = torch.from_numpy(self.x).to(device)
        if self.norm == "linf":
            reach = self.reach(radius)
            outer = np.nextafter(self.x - reach, -np.inf), np.nextafter(self.x + reach, np.inf)
            lower, upper = self._cut(*outer)
            return Box(torch.from_numpy(lower).to(device), torch.from_numpy(upper).to(device))
        kind: type[L2Ball] | type[L1Ball] = L2Ball if self.norm == "l2" else L1Ball
        whole = kind(center, float(radius))
        if self.clip is None and self.moves is None:
            return whole
        far = np.full_like(self.x, np.finfo(np.float64).max / 4)
        low, high = self._cut(-far, far)
        clip = Box(torch.from_numpy(low).to(device), torch.from_numpy(high).to(device))
        return Clipped(whole, clip)

    def _cut(self, lower: Doubles, upper: Doubles) -> tuple[Doubles, Doubles]:
        """A box cut to the clip box, with the fixed inputs at their values."""
        if self.clip is not None:
            lower, upper = np.maximum(lower, self.clip[0]), np.minimum(upper, self.clip[1])
        if self.moves is not None:
            lower, upper = (np.where(self.moves, side, self.x) for side in (lower, upper))
        return lower, upper


@dataclass(frozen=True, eq=False)
class Classifier:
    """A prepared network: everything that depends on the network alone is computed once."""

    network: Network  # float64
    run: Callable[[Floats], Floats]  # the original program, [inputs] -> [outputs]
    settings: Settings
    strategy: Strategy
    space: RowSpace | None  # the input subspace that the network reads, for l2 balls
    _outputs: dict[Classes, AffineMap] = field(default_factory=dict, init=False)  # margins

    def problems(self, center: Center, radius: float, budget: Budget) -> Iterator[Problem]:
        """Problems that ask whether the ball holds a counterexample, to try until one is decided.

        The row space cannot be used for a clipped l2 ball. So the ball without the clip box, in its
        row space, comes first, and the clipped ball follows only if that stays open.
        """
        clipped = center.clip is not None and center.moves is None
        if clipped and center.norm == "l2" and self.space is not None:
            yield self.problem(center, radius, budget, unclipped=True)
        yield self.problem(center, radius, budget)

    def descend(self, center: Center, radius: float, budget: Budget) -> Counterexample | None:
        """A counterexample in the ball, if the longer attack finds one."""
        problem = self.problem(center, radius, budget)
        problem.settings = replace(self.settings, attack=True)
        verdict = attack_longer(problem)
        return None if verdict is None else verdict.counterexample

    def problem(
        self, center: Center, radius: float, budget: Budget, *, unclipped: bool = False
    ) -> Problem:
        """The problem whether another class reaches the label's output in the ball, with or without
        (`unclipped`) the clip box; an l2 ball is reduced to the row space where there is one."""
        # In the unclipped ball an LP would find points outside the clip box.
        settings = replace(self.settings, lp=False) if unclipped else self.settings
        free = replace(center, clip=None) if unclipped else center
        query = self._query(free.ball(radius, self.network.device), center)
        judge = self.judge(center, radius)
        problem = Problem(query, judge, settings, budget, self.strategy, NullLog(query))
        if self.space is not None and isinstance(query.domain, L2Ball):
            problem.enter(*self.space.restrict(query, query.domain))
        elif center.moves is not None:
            _fix(problem, center)
        return problem

    def judge(self, center: Center, radius: float) -> BallJudge:
        """The judge that confirms counterexamples in the ball."""
        ball = center.x, center.reach(radius), center.norm, *center.box(radius)
        return BallJudge(*ball, self.run, center.label, center.targets)

    def _query(self, domain: Domain, center: Center) -> Query:
        classes = center.label, center.targets
        if classes not in self._outputs:
            self._outputs[classes] = margins(self.network.output, *classes)
        return ask_outputs(replace(self.network, output=self._outputs[classes]), domain)


def _fix(problem: Problem, center: Center) -> None:
    """Remove the fixed inputs from the problem, where the network's maps allow it."""
    domain, moves = problem.query.domain, torch.from_numpy(center.moves)
    if not isinstance(domain, Clipped):
        return  # a box loses its fixed inputs in a later step
    kept = torch.nonzero(moves.to(domain.center.device)).flatten()
    ball = replace(domain.ball, center=domain.center[kept])
    inner: Domain = ball
    if center.clip is not None:
        inner = Clipped(ball, Box(domain.clip.lower[kept], domain.clip.upper[kept]))
    fixed = fix_inputs(problem.query, kept, domain.center, inner)
    if fixed is not None:
        problem.enter(*fixed)


def margins(output: AffineMap, label: int, targets: Sequence[int] | None = None) -> AffineMap:
    """The map of the margins y_label - y_j, for all other classes j or for the targets."""
    count = output.outputs
    eye = torch.eye(count, dtype=output.bias.dtype, device=output.bias.device)
    others = [j for j in (range(count) if targets is None else targets) if j != label]
    rows = eye[label] - eye[others]
    if not isinstance(output, Dense) or output.terms is not None or output.defect is not None:
        return Combination(output, rows, torch.zeros_like(rows[:, 0]))
    weights = tuple(rows @ weight for weight in output.weights)
    sizes = tuple(rows.abs() @ weight.abs() for weight in output.weights)
    terms = (*sizes, rows.abs() @ output.bias.abs())
    return Dense(output.sources, weights, rows @ output.bias, terms=terms, rounded=count + 1)
