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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fgp_vnn.domain import Box, Clipped, Domain, L1Ball, L2Ball
from fgp_vnn.halfspaces import HalfSpaces, contradiction

TANGENTS = 200  # that an l2 ball gets at most
TOLERANCE = 1e-9  # of the solver, on numbers around 1
# A program that fails is tried once more; 0 threads are as many as another user of HiGHS has set.
ATTEMPTS: tuple[dict[str, Any], ...] = (
    {"presolve": "off", "threads": 1},
    {"presolve": "on", "threads": 0},
)
TINY = float(np.finfo(np.float64).tiny)
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Answer:
    """Evidence that the region is empty, or candidates, or neither."""

    multipliers: Tensor | None  # [constraints] checked: they prove that there is no point
    points: Tensor  # [points, inputs] candidates of the domain
    solved: int  # programs that were solved


def solve_region(
    domain: Domain,
    spaces: HalfSpaces,
    goals: int,
    seconds: float = float("inf"),
    proves: Callable[[Tensor], bool] = lambda multipliers: False,
) -> Answer:
    """Decide one case [1, constraints, inputs], whose last `goals` constraints matter most.

    A point that meets these with room to spare is the more likely to be confirmed. `proves` is
    asked about multipliers [constraints] that fail by the errors of the constraints alone.
    """
    region = _Region(domain, spaces, goals, time.monotonic() + seconds, proves)
    evidence, offsets = _search_ball(region) if region.round else _search(region)
    return Answer(evidence, region.points(offsets), region.solved)


class _Optimum(NamedTuple):
    """An offset t from the centre, and the multipliers of the constraints."""

    offset: Doubles  # [inputs]
    multipliers: Doubles  # [constraints]


class _Region:
    """A region in the solver's units, and how many programs it took."""

    def __init__(
        self,
        domain: Domain,
        spaces: HalfSpaces,
        goals: int,
        end: float,
        proves: Callable[[Tensor], bool],
    ) -> None:
        self._domain, self._spaces, self._end, self._proves = domain, spaces, end, proves
        self._units, self._low, self._high = _units(domain)
        ball = domain.ball if isinstance(domain, Clipped) else domain
        self.round, self._split = isinstance(ball, L2Ball), isinstance(ball, L1Ball)
        rows, values = (part[0].double().cpu().numpy() for part in spaces[:2])
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = rows * self._units
            size = np.abs(scaled).sum(-1) + np.abs(values)
        self._kept = np.flatnonzero((size > 0) & np.isfinite(size))
        self._size = size[self._kept]
        self.rows = scaled[self._kept] / self._size[:, None]
        self.values = values[self._kept] / self._size
        self._goal = self._kept >= len(size) - goals
        self.tangents: list[Doubles] = []
        self.solved = 0

    def points(self, offsets: list[Doubles]) -> Tensor:
        """Points [points, inputs] of the domain at, or next to, these offsets from the centre."""
        center = self._domain.center
        moved = np.array(offsets).reshape(-1, len(self._units)) * self._units
        return self._domain.project(center + torch.from_numpy(moved).to(center))

    def proof(self, multipliers: Doubles) -> Tensor | None:
        """The multipliers [constraints], if they hold in our own arithmetic."""
        values = self._spaces.values
        whole = np.zeros(values.shape[1])
        whole[self._kept] = multipliers / self._size
        whole /= max(float(whole.max(initial=0.0)), TINY)  # around 1 nothing overflows
        weights = torch.from_numpy(whole).to(values)
        proved = bool(contradiction(self._domain, self._spaces, weights.unsqueeze(0)))
        if not proved:
            exact = self._spaces._replace(errors=torch.zeros_like(values))
            if bool(contradiction(self._domain, exact, weights.unsqueeze(0))):
                proved = self._proves(weights)
        return weights if proved else None

    def met(self, offset: Doubles) -> bool:
        """Whether the constraints hold there, as far as the solver's arithmetic goes."""
        return bool((self.rows @ offset + self.values <= 0).all())

    def widest(self, *, goals_only: bool = False) -> _Optimum | None:
        """The offset with the greatest margin to all constraints, or to the goals alone."""
        margin = self._goal.astype(float) if goals_only else np.ones(len(self.values))
        rows, limits = np.column_stack([self.rows, margin]), -self.values
        if self.tangents:
            cut = np.column_stack([np.array(self.tangents), np.zeros(len(self.tangents))])
            rows, limits = np.vstack([rows, cut]), np.append(limits, np.ones(len(cut)))
        low, high = np.append(self._low, -2.0), np.append(self._high, 2.0)
        count = len(self._units)
        cost = np.append(np.zeros(count), -1.0)
        if not self._split:
            return self._run(cost, rows, limits, low, high)
        # An l1 ball: t = p - q with p, q >= 0 and sum p + sum q <= 1.
        rows = np.column_stack([rows[:, :count], -rows[:, :count], rows[:, count:]])
        total = np.append(np.ones(2 * count), 0.0)
        low = np.append(np.zeros(2 * count), -2.0)
        high = np.concatenate([high[:count].clip(0), (-self._low).clip(0), high[count:]])
        cost = np.append(np.zeros(2 * count), -1.0)
        optimum = self._run(cost, np.vstack([rows, total]), np.append(limits, 1.0), low, high)
        if optimum is None:
            return None
        positive, negative = optimum.offset[:count], optimum.offset[count : 2 * count]
        return optimum._replace(offset=positive - negative)

    def nearest(self) -> _Optimum | None:
        """The offset of least length; it has multipliers m with t = -sum m_i a_i."""
        nothing = np.zeros(len(self._units))
        square = np.ones(len(self._units))
        return self._run(nothing, self.rows, -self.values, self._low, self._high, square)

    def _run(
        self,
        cost: Doubles,
        rows: Doubles,
        limits: Doubles,
        low: Doubles,
        high: Doubles,
        square: Doubles | None = None,
    ) -> _Optimum | None:
        """Minimise cost . v + sum square v^2 / 2 such that rows v <= limits, low <= v <= high."""
        for attempt in ATTEMPTS:
            left = self._end - time.monotonic()
            if left <= 0:
                break
            self.solved += 1
            solved = _highs(cost, rows, limits, low, high, square, attempt, left)
            if solved is not None:
                columns, duals = solved
                # A row with an upper limit has a dual of at most 0; above it there is noise.
                multipliers = (-duals[: len(self.values)]).clip(0)
                offset = columns if square is not None else columns[:-1]
                return _Optimum(offset, multipliers)
        return None


def _search(region: _Region) -> tuple[Tensor | None, list[Doubles]]:
    """Evidence or offsets in a domain that is a polyhedron."""
    widest = region.widest()
    if widest is None:
        return None, []
    evidence = region.proof(widest.multipliers)
    if evidence is not None:
        return evidence, []
    deepest = region.widest(goals_only=True)
    if deepest is None:
        return None, [widest.offset]
    return None, [deepest.offset, (deepest.offset + widest.offset) / 2, widest.offset]


def _search_ball(region: _Region) -> tuple[Tensor | None, list[Doubles]]:
    """The same where the domain is an l2 ball of radius 1, or what a box leaves of it."""
    inside: list[Doubles] = []
    for turn in range(TANGENTS):
        widest = region.widest()
        if widest is None:
            break
        evidence = region.proof(widest.multipliers)
        if evidence is not None:
            return evidence, []
        length = float(np.linalg.norm(widest.offset))
        inside = [widest.offset / max(length, 1.0)]
        if length <= 1 or region.met(inside[0]):
            return None, _deepen(region, inside[0], inside[0])
        nearest = region.nearest() if turn == 0 else None
        if nearest is not None:
            evidence = region.proof(nearest.multipliers)
            if evidence is not None:
                return evidence, []
            if float(np.linalg.norm(nearest.offset)) <= 1 + TOLERANCE:
                return None, _deepen(region, nearest.offset, widest.offset)
        region.tangents.append(widest.offset / length)
    return None, inside


def _deepen(region: _Region, inside: Doubles, widest: Doubles) -> list[Doubles]:
    """From an offset in ball and region towards those deeper in the region, as far as the ball."""
    deepest = region.widest(goals_only=True)
    ends = [widest] if deepest is None else [deepest.offset, widest]
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


def _units(domain: Domain) -> tuple[Doubles, Doubles, Doubles]:
    """What each input is measured in, and the least and the greatest offset in these units."""
    center = domain.center.double().cpu().numpy()
    ones = np.ones_like(center)
    if isinstance(domain, Box):
        return domain.radius.double().cpu().numpy(), -ones, ones
    if isinstance(domain, (L1Ball, L2Ball)):
        return domain.radius * ones, -ones, ones
    if not isinstance(domain, Clipped):
        raise TypeError(f"no program for a {type(domain).__name__}")
    radius = domain.ball.radius
    low, high = (
        ((side.double().cpu().numpy() - center) / (radius or 1.0)).clip(-1, 1)
        for side in (domain.clip.lower, domain.clip.upper)
    )
    return radius * ones, low, high


def _highs(
    cost: Doubles,
    rows: Doubles,
    limits: Doubles,
    low: Doubles,
    high: Doubles,
    square: Doubles | None,
    attempt: dict[str, Any],
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
    if square is not None:
        model.hessian_.dim_ = len(square)
        model.hessian_.start_ = np.arange(len(square) + 1, dtype=np.int32)
        model.hessian_.index_ = np.arange(len(square), dtype=np.int32)
        model.hessian_.value_ = square
    solver = highspy.Highs()
    options: dict[str, Any] = {
        **attempt,
        "output_flag": False,
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
