"""One region handed to HiGHS: a point of the domain in its half-spaces, or evidence of none.

Everything is measured from the domain's centre, in units of the domain's own size, with each
constraint scaled to be at most 1 there. The linear program is

    maximise s  such that  a_i . t + b_i + s <= 0 for all i, t in the domain,

which always has a solution. If s < 0, no t meets all constraints, and the optimal multipliers say
so; otherwise t is a candidate that lies as deep in the region as can be. An l2 ball is no
polyhedron: it is cut out of its box by tangents where solutions lie outside of it, and the convex
quadratic program "the point of the half-spaces nearest to the centre" comes after the first of
them. The solver's word counts for nothing: multipliers are checked by `contradiction`, with all
rounding, and candidates by whoever asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fgp_vnn.domain import Box, Clipped, Domain, L1Ball, L2Ball
from fgp_vnn.halfspaces import HalfSpaces, contradiction

TANGENTS = 200  # that an l2 ball gets at most
TOLERANCE = 1e-9  # of the solver, on numbers around 1
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Answer:
    """Evidence that the region is empty, or candidates, or neither."""

    multipliers: Tensor | None  # [constraints] checked: they prove that there is no point
    points: Tensor  # [points, inputs] candidates of the domain
    solved: int  # programs that were solved


def solve_region(
    domain: Domain, spaces: HalfSpaces, goals: int, seconds: float = float("inf")
) -> Answer:
    """Decide one case [1, constraints, inputs], whose last `goals` constraints matter most.

    A point that meets these with room to spare is the more likely to be confirmed.
    """
    program = _Program(domain, spaces, goals, time.monotonic() + seconds)
    evidence, offsets = _search_ball(program) if program.round else _search(program)
    points = domain.project(program.points(offsets))
    return Answer(evidence, points, program.solved)


class _Solution:
    """An offset t from the centre, its margin s, and the multipliers of the constraints."""

    def __init__(self, columns: Doubles, duals: Doubles, size: tuple[int, int]) -> None:
        constraints, inputs = size
        self.offset = columns[:inputs]
        self.margin = float(columns[-1])
        # The dual of a row with an upper limit is not positive; what is left of others is noise.
        self.multipliers = np.maximum(-duals[:constraints], 0.0)


@dataclass(eq=False)
class _Program:
    """A region in the solver's units, and how many programs it took."""

    domain: Domain
    spaces: HalfSpaces
    goals: int
    end: float
    solved: int = 0
    tangents: list[Doubles] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.units, self.low, self.high = _units(self.domain)
        self.round = isinstance(_ball(self.domain), L2Ball)
        rows, values = (part[0].double().cpu().numpy() for part in self.spaces[:2])
        scaled = rows * self.units
        size = np.abs(scaled).sum(-1) + np.abs(values)
        self.kept = np.flatnonzero(size > 0)
        self.size = size[self.kept]
        self.rows = scaled[self.kept] / self.size[:, None]
        self.values = values[self.kept] / self.size
        self.goal = self.kept >= len(size) - self.goals

    def points(self, offsets: list[Doubles]) -> Tensor:
        """Points [points, inputs] at these offsets from the centre."""
        center = self.domain.center
        moved = np.array(offsets).reshape(-1, len(self.units)) * self.units
        return center + torch.from_numpy(moved).to(center)

    def proof(self, multipliers: Doubles) -> Tensor | None:
        """The multipliers [constraints], if they hold in our own arithmetic."""
        values = self.spaces.values
        whole = np.zeros(values.shape[1])
        whole[self.kept] = multipliers / self.size
        # Around 1, where nothing overflows or underflows on the way.
        whole /= max(float(np.abs(whole).max(initial=0.0)), np.finfo(np.float64).tiny)
        weights = torch.from_numpy(whole).to(values)
        proved = bool(contradiction(self.domain, self.spaces, weights.unsqueeze(0)))
        return weights if proved else None

    def widest(self, *, goals_only: bool = False) -> _Solution | None:
        """The offset with the greatest margin to all constraints, or to the goals alone."""
        margin = self.goal.astype(float) if goals_only else np.ones(len(self.values))
        rows = np.column_stack([self.rows, margin])
        limits = -self.values
        if self.tangents:
            cut = np.column_stack([np.array(self.tangents), np.zeros(len(self.tangents))])
            rows, limits = np.vstack([rows, cut]), np.append(limits, np.ones(len(cut)))
        cost = np.append(np.zeros(len(self.units)), -1.0)
        low, high = np.append(self.low, -2.0), np.append(self.high, 2.0)
        if isinstance(_ball(self.domain), L1Ball):
            return self._run_split(cost, rows, limits, low, high)
        return self._run(cost, rows, limits, low, high)

    def nearest(self) -> _Solution | None:
        """The offset of least length; it has multipliers m with t = -sum m_i a_i."""
        nothing = np.zeros(len(self.units))
        ones = np.ones(len(self.units))
        return self._run(nothing, self.rows, -self.values, self.low, self.high, hessian=ones)

    def _run_split(
        self, cost: Doubles, rows: Doubles, limits: Doubles, low: Doubles, high: Doubles
    ) -> _Solution | None:
        """With t = p - q, p and q >= 0, and sum p + sum q <= 1: an l1 ball."""
        count = len(self.units)
        t, s = slice(0, count), slice(count, None)
        total = np.append(np.ones(2 * count), 0.0)
        solution = self._run(
            np.concatenate([cost[t], -cost[t], cost[s]]),
            np.vstack([np.column_stack([rows[:, t], -rows[:, t], rows[:, s]]), total]),
            np.append(limits, 1.0),
            np.concatenate([np.zeros(2 * count), low[s]]),
            np.concatenate([np.maximum(high[t], 0.0), np.maximum(-low[t], 0.0), high[s]]),
            inputs=2 * count,
        )
        if solution is not None:
            solution.offset = solution.offset[:count] - solution.offset[count:]
        return solution

    def _run(
        self,
        cost: Doubles,
        rows: Doubles,
        limits: Doubles,
        low: Doubles,
        high: Doubles,
        *,
        hessian: Doubles | None = None,
        inputs: int | None = None,
    ) -> _Solution | None:
        """Minimise cost . v + v . hessian v / 2 such that rows v <= limits, low <= v <= high."""
        size = len(self.values), len(self.units) if inputs is None else inputs
        for presolve in ("off", "on"):
            left = self.end - time.monotonic()
            if left <= 0:
                break
            self.solved += 1
            solution = _highs(cost, rows, limits, low, high, hessian, presolve, left)
            if solution is not None:
                return _Solution(*solution, size)
        return None


def _search(program: _Program) -> tuple[Tensor | None, list[Doubles]]:
    """Evidence or offsets in a domain that is a polyhedron."""
    widest = program.widest()
    if widest is None:
        return None, []
    evidence = program.proof(widest.multipliers)
    if evidence is not None:
        return evidence, []
    deepest = program.widest(goals_only=True)
    offsets = [widest.offset] if deepest is None else [deepest.offset, widest.offset]
    return None, [*offsets, sum(offsets, np.zeros_like(widest.offset)) / len(offsets)]


def _search_ball(program: _Program) -> tuple[Tensor | None, list[Doubles]]:
    """The same where the domain is an l2 ball of radius 1, or what a box leaves of it."""
    for turn in range(TANGENTS):
        widest = program.widest()
        if widest is None:
            return None, []
        evidence = program.proof(widest.multipliers)
        if evidence is not None:
            return evidence, []
        inside = widest.offset / max(float(np.linalg.norm(widest.offset)), 1.0)
        if (program.rows @ inside + program.values).max(initial=-np.inf) <= 0:
            return None, _deepen(program, inside)
        if turn == 0:
            nearest = program.nearest()
            evidence = None if nearest is None else program.proof(nearest.multipliers)
            if evidence is not None:
                return evidence, []
            if nearest is not None and _in_ball(nearest.offset):
                return None, _deepen(program, nearest.offset, widest.offset)
        program.tangents.append(widest.offset / np.linalg.norm(widest.offset))
    return None, [inside]


def _in_ball(offset: Doubles) -> bool:
    return float(np.linalg.norm(offset)) <= 1 + TOLERANCE


def _deepen(program: _Program, inside: Doubles, *others: Doubles) -> list[Doubles]:
    """From an offset in ball and region towards those deeper in the region, as far as the ball."""
    deepest = program.widest(goals_only=True)
    ends = [*others] if deepest is None else [deepest.offset, *others]
    return [*(_towards(inside, end) for end in ends), inside]


def _towards(inside: Doubles, end: Doubles) -> Doubles:
    """The last point of the segment in the unit ball: |inside + k way|^2 = 1."""
    way = end - inside
    square, product = float(way @ way), float(inside @ way)
    room = max(1 - float(inside @ inside), 0.0)
    if square == 0:
        return inside
    k = (np.sqrt(product**2 + square * room) - product) / square
    return inside + min(max(float(k), 0.0), 1.0) * way


def _ball(domain: Domain) -> Domain:
    return domain.ball if isinstance(domain, Clipped) else domain


def _units(domain: Domain) -> tuple[Doubles, Doubles, Doubles]:
    """What each input is measured in, and the least and the greatest offset in these units."""
    center = domain.center.double().cpu().numpy()
    ones = np.ones_like(center)
    if isinstance(domain, Box):
        return domain.radius.double().cpu().numpy(), -ones, ones
    ball = _ball(domain)
    if not isinstance(ball, (L1Ball, L2Ball)):
        raise TypeError(f"no program for a {type(domain).__name__}")
    radius = max(float(ball.radius), float(np.finfo(np.float64).tiny))
    if not isinstance(domain, Clipped):
        return radius * ones, -ones, ones
    low = (domain.clip.lower.double().cpu().numpy() - center) / radius
    high = (domain.clip.upper.double().cpu().numpy() - center) / radius
    return radius * ones, np.maximum(low, -1.0), np.minimum(high, 1.0)


def _highs(
    cost: Doubles,
    rows: Doubles,
    limits: Doubles,
    low: Doubles,
    high: Doubles,
    hessian: Doubles | None,
    presolve: str,
    seconds: float,
) -> tuple[Doubles, Doubles] | None:
    """The optimal columns and the duals of the rows, if HiGHS comes to an optimum in time."""
    import highspy

    model = highspy.HighsModel()
    lp = model.lp_
    lp.num_row_, lp.num_col_ = rows.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, low, high
    lp.row_lower_, lp.row_upper_ = np.full(len(limits), -highspy.kHighsInf), limits
    at, columns = np.nonzero(rows)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.searchsorted(at, np.arange(len(rows) + 1)).astype(np.int32)
    lp.a_matrix_.index_ = columns.astype(np.int32)
    lp.a_matrix_.value_ = rows[at, columns]
    if hessian is not None:
        model.hessian_.dim_ = len(hessian)
        model.hessian_.start_ = np.arange(len(hessian) + 1, dtype=np.int32)
        model.hessian_.index_ = np.arange(len(hessian), dtype=np.int32)
        model.hessian_.value_ = hessian
    solver = highspy.Highs()
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "presolve": presolve,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "time_limit": min(seconds, 1e9),
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = solver.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)
