"""Regions that may meet a disjunct, settled by alternating projections and, if asked, by an LP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from fgp_vnn.base.outcome import Confirm
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Domain
from fgp_vnn.regions.gaps import Gap, describe_gaps
from fgp_vnn.regions.halfspaces import HalfSpaces
from fgp_vnn.regions.projections import Settled, alternate
from fgp_vnn.strategy import Projections


@dataclass(frozen=True)
class Effort:
    """Limits on the work for undecided polyhedra."""

    steps: int  # of alternating projections
    lp: bool = False  # hand polyhedra left open to a solver
    how: Projections = field(default_factory=Projections)


def why_open(what: str, gaps: Sequence[Gap], lp: bool) -> str:
    """The reason given for `unknown` when polyhedra stay undecided."""
    how = f"an LP: {describe_gaps(gaps)}" if lp else "projections (try --lp)"
    return f"{what} could not be settled by {how}"


def settle(
    domain: Domain,
    spaces: HalfSpaces,
    goals: int,
    confirm: Confirm,
    budget: Budget,
    effort: Effort,
    proves: Callable[[int, Tensor], bool],
) -> Settled:
    """Settle polyhedra whose last `goals` constraints are the disjunct's rows, by projections and
    then, one after the other, by a solver.

    `proves` checks the multipliers [constraints] of a polyhedron again if the first check failed
    only by rounding.
    """
    closed = torch.zeros(len(spaces.values), dtype=torch.bool, device=spaces.values.device)
    settled = Settled(None, closed, torch.zeros_like(spaces.values))
    if effort.steps and not budget.expired():
        settled = alternate(domain, spaces, confirm, budget, effort.steps, effort.how)
    if not effort.lp or settled.found is not None:
        return settled
    from fgp_vnn.regions.lp import solve_region

    closed, multipliers = settled.closed.clone(), settled.multipliers.clone()
    lps, gaps = 0, list[Gap]()
    for polyhedron in torch.nonzero(~closed).flatten().tolist():
        if budget.expired():
            break
        one = spaces.at(slice(polyhedron, polyhedron + 1))
        proof, how = partial(proves, polyhedron), effort.how.programs
        answer = solve_region(domain, one, goals, budget.left(), proof, how)
        lps += answer.solved
        if answer.multipliers is not None:
            closed[polyhedron], multipliers[polyhedron] = True, answer.multipliers
            continue
        found = confirm(answer.points) if len(answer.points) else None
        if found is not None:
            return Settled(found, closed, multipliers, lps)
        gaps.append(answer.gap)
    return Settled(None, closed, multipliers, lps, tuple(gaps))
