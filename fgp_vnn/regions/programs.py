"""The convex programs that decide a region, solved by HiGHS and Clarabel.

A program asks for the point v that leaves the greatest margin s to its constraints,

    maximise s  such that  rows v + margin s <= limits,  low <= v <= high,

with share * v in the unit ball of l1 or l2 if the domain is a ball. All numbers are around 1. HiGHS
solves the polyhedra, Clarabel the l2 balls. Their answers are only proposals: neither their status
nor their accuracy is relied on.
"""

from __future__ import annotations

import time
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.strategy import Programs

LIMIT = 2.0  # of the margin, which is at most 1 for rows of size 1
# A program that fails is tried once more; 0 threads means as many as another user of HiGHS has set.
ATTEMPTS: tuple[dict[str, Any], ...] = (
    {"presolve": "off", "threads": 1},
    {"presolve": "on", "threads": 0},
)
Doubles = NDArray[np.float64]
Norm = Literal["box", "l1", "l2"]


class RegionProgram(NamedTuple):
    """One program over the points [inputs] of a domain."""

    rows: Doubles  # [constraints, inputs]
    limits: Doubles  # [constraints]
    margin: Doubles  # [constraints] 0 where a constraint only has to hold
    low: Doubles  # [inputs]
    high: Doubles  # [inputs]
    share: Doubles  # [inputs] length of a step of 1 in the unit ball
    norm: Norm  # of the ball; "box" if there is no ball


class Optimum(NamedTuple):
    """A point, and the multipliers of the constraints."""

    point: Doubles  # [inputs]
    multipliers: Doubles  # [constraints] at least 0


def solve_program(program: RegionProgram, end: float, how: Programs) -> Optimum | None:
    """The solver's proposal, if it is found before the monotonic clock shows `end` and is
    finite."""
    with np.errstate(invalid="ignore"):
        solver = _clarabel if program.norm == "l2" else _highs
        solved = solver(program, end, how)
    if solved is None or not all(np.isfinite(part).all() for part in solved):
        return None
    return solved


def _left(end: float) -> float:
    return min(max(end - time.monotonic(), 0.0), 1e9)


def _clarabel(program: RegionProgram, end: float, how: Programs) -> Optimum | None:
    """Minimise -s such that limits - rows v - margin s >= 0, v and s are within their limits, and
    (1, share v) is in the cone |t| <= t_0."""
    import clarabel
    from scipy import sparse

    rows, limits, margin, low, high, share, _ = program
    count = len(low)
    eye = sparse.identity(count, format="csr")
    above, below = high * share < 1, low * share > -1  # where a side cuts the ball
    matrix = sparse.bmat(
        [
            [rows, margin[:, None]],
            [eye[above], None],
            [-eye[below], None],
            [None, np.ones((1, 1))],
            [np.zeros((1, count)), None],
            [-sparse.diags(share), None],
        ],
        format="csc",
    )
    right = np.concatenate([limits, high[above], -low[below], [LIMIT, 1.0], np.zeros(count)])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.direct_solve_method = "qdldl"
    settings.time_limit = _left(end)
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = how.sharp
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((count + 1, count + 1)),
        np.append(np.zeros(count), -1.0),
        matrix,
        right,
        [clarabel.NonnegativeConeT(len(right) - count - 1), clarabel.SecondOrderConeT(count + 1)],
        settings,
    )
    solution = solver.solve()
    status = clarabel.SolverStatus
    if solution.status not in (status.Solved, status.AlmostSolved, status.InsufficientProgress):
        return None
    multipliers = np.array(solution.z)[: len(limits)]
    return Optimum(np.array(solution.x)[:count], multipliers.clip(0))


def _highs(program: RegionProgram, end: float, how: Programs) -> Optimum | None:
    rows, limits, margin, low, high, share, norm = program
    count = len(low)
    if norm == "l1":
        # v = p - q with p, q >= 0 and share . p + share . q <= 1.
        rows = np.vstack([np.column_stack([rows, -rows]), np.append(share, share)])
        limits, margin = np.append(limits, 1.0), np.append(margin, 0.0)
        low, high = np.zeros(2 * count), np.append(high, -low).clip(0)
    rows = np.column_stack([rows, margin])
    low, high = np.append(low, -LIMIT), np.append(high, LIMIT)
    names = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
    tolerances = dict.fromkeys(names, how.tolerance)
    for attempt in ATTEMPTS:
        solved = _vertex(rows, limits, low, high, attempt | tolerances, _left(end))
        if solved is not None:
            columns, duals = solved
            point = (
                columns[:count] - columns[count : 2 * count] if norm == "l1" else columns[:count]
            )
            # A row with an upper limit has a dual of at most 0; a positive one is noise.
            return Optimum(point, (-duals[: len(program.limits)]).clip(0))
    return None


def _vertex(
    rows: Doubles,
    limits: Doubles,
    low: Doubles,
    high: Doubles,
    attempt: dict[str, Any],
    seconds: float,
) -> tuple[Doubles, Doubles] | None:
    """Maximise the last column such that rows v <= limits and low <= v <= high. Returns the columns
    v and the duals of the rows if HiGHS finds an optimum in time, else None."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows.shape
    lp.col_cost_ = np.append(np.zeros(len(low) - 1), -1.0)
    lp.col_lower_, lp.col_upper_ = low, high
    lp.row_lower_, lp.row_upper_ = np.full(len(limits), -highspy.kHighsInf), limits
    at, columns = np.nonzero(rows)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.searchsorted(at, np.arange(len(rows) + 1)).astype(np.int32)
    lp.a_matrix_.index_ = columns.astype(np.int32)
    lp.a_matrix_.value_ = rows[at, columns]
    solver = highspy.Highs()
    for name, value in (attempt | {"output_flag": False, "time_limit": seconds}).items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = solver.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)
