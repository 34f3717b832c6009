"""One region handed to a solver: a point of the domain in its half-spaces, or proof of none.

Everything is measured from the domain's centre, in units of the domain's own size, with each
constraint scaled to be at most 1 there. The program is

    maximise s  such that  a_i . t + b_i + s <= 0 for all i, t in the domain,

which always has a solution. If s < 0, no t meets all constraints, and the optimal multipliers prove
it; otherwise t is a candidate as deep in the region as possible. The solver is not trusted:
`contradiction` checks multipliers, with all rounding, and the caller checks candidates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.regions.gaps import FAILED, Gap
from fgp_vnn.regions.halfspaces import HalfSpaces, contradiction, nominal, sum_error
from fgp_vnn.regions.programs import Doubles, Norm, Optimum, RegionProgram, solve_program
from fgp_vnn.strategy import Programs

NOTHING = -5000  # an exponent below that of any number


@dataclass(frozen=True, eq=False)
class RegionEvidence:
    """Evidence that the region is empty, or candidates, or neither."""

    multipliers: Tensor | None  # [constraints] checked: they prove that there is no point
    points: Tensor  # [points, inputs] candidates in the domain
    solved: int  # programs handed to the solver
    gap: Gap = FAILED  # what is left open without evidence


def solve_region(
    domain: Domain,
    spaces: HalfSpaces,
    goals: int,
    seconds: float = float("inf"),
    proves: Callable[[Tensor], bool] = lambda multipliers: False,
    how: Programs | None = None,
) -> RegionEvidence:
    """Decide one polyhedron [1, constraints, inputs], whose last `goals` constraints matter most.

    A point that meets these with a margin is more likely to be confirmed. `proves` is called with
    multipliers [constraints] that fail only because of the errors of the constraints.
    """
    region = _Region(domain, spaces, goals, time.monotonic() + seconds, how or Programs())
    widest = region.widest()
    if widest is None:
        return RegionEvidence(None, region.points([]), region.solved)
    evidence = region.proof(widest.multipliers, proves)
    if evidence is not None:
        return RegionEvidence(evidence, region.points([]), region.solved)
    offsets = [widest.point]
    deepest = region.widest(goals_only=True)
    if deepest is not None:
        offsets = [deepest.point, (deepest.point + widest.point) / 2, widest.point]
    points = region.points(offsets)
    return RegionEvidence(None, points, region.solved, region.gap(widest.multipliers, points))


class _Region:
    """A region in the solver's units, and the number of programs solved for it."""

    def __init__(
        self, domain: Domain, spaces: HalfSpaces, goals: int, end: float, how: Programs
    ) -> None:
        self._domain, self._end, self._how = domain, end, how
        self._units, self._share, self._low, self._high = _units(domain)
        self._norm = _norm_of(domain)
        rows, values, errors = (part[0].double().cpu().numpy() for part in spaces)
        finite = np.isfinite(rows).all(-1) & np.isfinite(values) & np.isfinite(errors)
        rows, values, errors = (
            np.where(finite.reshape(-1, *[1] * (part.ndim - 1)), part, 0.0)
            for part in (rows, values, errors)
        )
        self._overflow = not finite.all()
        self._powers = _powers(rows, values, self._units)
        even = (
            np.ldexp(rows.T, -self._powers).T,
            *(np.ldexp(part, -self._powers) for part in (values, errors)),
        )
        self._even = HalfSpaces(
            *(torch.from_numpy(part).to(spaces.values).unsqueeze(0) for part in even)
        )
        # Errors included: a constraint that is 0 up to rounding is met with equality, if at all.
        reach = domain.outer_support(self._even.rows) + self._even.values.abs() + self._even.errors
        size = reach[0].double().cpu().numpy()
        # A constraint of zeros is left out, although its support, rounded up, is above 0.
        some = (even[0] != 0).any(-1) | (even[1] != 0) | (even[2] != 0)
        self._kept = np.flatnonzero(some & (size > 0) & np.isfinite(size))
        self._size = size[self._kept]
        self._rows = even[0][self._kept] * self._units / self._size[:, None]
        self._limits = -even[1][self._kept] / self._size
        self._goal = (self._kept >= len(size) - goals).astype(np.float64)
        self.solved = 0

    def points(self, offsets: list[Doubles]) -> Tensor:
        """Points [points, inputs] of the domain at, or next to, these offsets from the centre."""
        center = self._domain.center
        moved = np.array(offsets).reshape(-1, len(self._units)) * self._units
        if self._norm != "box":
            moved *= 1 - self._how.inward
        return self._domain.project(center + torch.from_numpy(moved).to(center))

    def widest(self, *, goals_only: bool = False) -> Optimum | None:
        """The offset with the greatest margin to all constraints, or to the goals alone."""
        if time.monotonic() >= self._end:
            return None
        self.solved += 1
        margin = self._goal if goals_only else np.ones_like(self._limits)
        sides = (self._low, self._high, self._share, self._norm)
        program = RegionProgram(self._rows, self._limits, margin, *sides)
        return solve_program(program, self._end, self._how)

    def proof(self, multipliers: Doubles, proves: Callable[[Tensor], bool]) -> Tensor | None:
        """The multipliers [constraints] if they are a checked proof, else None."""
        weights = self._weights(multipliers)
        whole = weights[0].double().cpu().numpy()
        # Scaled to around 1, nothing overflows.
        whole = np.ldexp(whole, self._powers[whole > 0].min(initial=0) - self._powers)
        mine = torch.from_numpy(whole).to(weights)
        proved = bool(contradiction(self._domain, self._even, weights))
        if not proved:
            exact = self._even._replace(errors=torch.zeros_like(self._even.errors))
            proved = bool(contradiction(self._domain, exact, weights)) and proves(mine)
        return mine if proved else None

    def gap(self, multipliers: Doubles, points: Tensor) -> Gap:
        """How far the multipliers are from a proof, and the points from the region."""
        weights = self._weights(multipliers)
        least = nominal(self._domain, self._even, weights)
        rounding = sum_error(self._domain, self._even, weights)
        worst = (points - self._domain.center) @ self._even.rows[0].T + self._even.values
        kept = torch.from_numpy(self._kept).to(worst.device)
        size = torch.from_numpy(self._size).to(worst)
        most = (worst[:, kept] / size).amax(-1).amin() if len(kept) else worst.new_tensor(-1.0)
        return Gap(float(least), float(most), np.inf if self._overflow else float(rounding))

    def _weights(self, multipliers: Doubles) -> Tensor:
        """Multipliers [1, constraints] of the scaled constraints; times their sizes they sum to
        1."""
        weights = np.zeros(self._even.values.shape[1])
        total = float(multipliers.sum())
        if total > 0:
            weights[self._kept] = multipliers / total / self._size
        return torch.from_numpy(weights).to(self._even.values).unsqueeze(0)


def _powers(rows: Doubles, values: Doubles, units: Doubles) -> NDArray[np.int64]:
    """The powers of 2 [constraints] that scale each constraint to about 1 in the domain.

    Scaling by powers of 2 is exact, except for float64 underflow.
    """
    within = np.where(rows == 0, NOTHING, np.frexp(rows)[1]) + np.where(
        units == 0, NOTHING, np.frexp(units)[1]
    )
    most = np.maximum(
        within.max(-1, initial=NOTHING), np.where(values == 0, NOTHING, np.frexp(values)[1])
    )
    return np.where(most > NOTHING // 2, most, 0)


def _norm_of(domain: Domain) -> Norm:
    ball = domain.ball if isinstance(domain, Clipped) else domain
    return "l2" if isinstance(ball, L2Ball) else "l1" if isinstance(ball, L1Ball) else "box"


def _units(domain: Domain) -> tuple[Doubles, Doubles, Doubles, Doubles]:
    """The unit of each input, absolute and as a part of the ball's radius, and the least and the
    greatest offset in these units."""
    center = domain.center.double().cpu().numpy()
    ones = np.ones_like(center)
    if isinstance(domain, Box):
        return domain.radius.double().cpu().numpy(), ones, -ones, ones
    if isinstance(domain, (L1Ball, L2Ball)):
        return domain.radius * ones, ones, -ones, ones
    if not isinstance(domain, Clipped):
        raise TypeError(f"no program for a {type(domain).__name__}")
    radius = domain.ball.radius
    low, high = (
        ((side.double().cpu().numpy() - center) / (radius or 1.0)).clip(-1, 1)
        for side in (domain.clip.lower, domain.clip.upper)
    )
    room = np.maximum(high, -low)
    some = np.where(room > 0, room, 1.0)
    return radius * room, room, low / some, high / some
