"""Lower bounds of a network's values: plain bounds, optimised bounds, or splits up to a gap.

The rows are shifted so that 0 is the lowest known value minus the gap. A bundle is then closed
exactly where a search that decides a query would close it, so the engine's steps work unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.attack.lowest import Lowest, lowest_by_descent
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.engine.bounding import bound_outputs, bound_root, refine
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network.model import Combination, Network
from fgp_vnn.query import Query, ask_values
from fgp_vnn.search.best_first import BestFirst
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.bundles import bundles_at_once, context_and_root
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.inputs import split_inputs
from fgp_vnn.search.value import Least
from fgp_vnn.strategy import Strategy

Method = Literal["plain", "optimised", "split"]
METHODS: tuple[Method, ...] = ("plain", "optimised", "split")
Hear = Callable[[Tensor, Tensor], None]  # takes proved bounds [rows], lowest known values [rows]


@dataclass(frozen=True, eq=False)
class ValueRows:
    """Linear combinations of the results of one map of a network."""

    network: Network
    target: int  # number of the map: 0 feeds the first ReLU layer, the last one is the output
    rows: Tensor  # [rows, outputs of the map]

    def ask(self, domain: Domain, offset: Tensor | None = None) -> Query:
        return ask_values(self.network, domain, self.target, self.rows, offset)


@dataclass(frozen=True, eq=False)
class Lows:
    """For each row, a proved lower bound and the point with the lowest value found."""

    least: Tensor  # [rows]
    reached: Tensor  # [rows] the values at the points, up to rounding
    points: Tensor  # [rows, inputs]
    closed: Tensor  # [rows] whether `least` and `reached` differ by at most the gap or rounding
    statistics: dict[str, int]


def find_lows(
    rows: ValueRows,
    domain: Domain,
    method: Method,
    gap: float,
    budget: Budget,
    settings: Settings,
    hear: Hear,
) -> Lows:
    """Lower bounds of rows over a domain. With splits, the search ends when each bound is within
    the gap (relative to the value, or to 1 if that is larger) of a value that a point reaches, when
    only rounding is between them, or when time is up.
    """
    query, strategy = rows.ask(domain), Strategy()
    lowest = Lowest.of(query)
    lowest_by_descent(query, lowest, budget, replace(strategy.attack.long, seed=settings.seed))
    allowed = gap * lowest.value.abs().clamp(min=1)
    shift = lowest.value - allowed
    problem = _problem(rows.ask(domain, -shift), settings, budget)
    least = _bounded(problem, method)
    hear(_unshifted(least, shift), lowest.value)
    near = allowed
    if method == "split" and not budget.expired() and bool((least <= 0).any()):
        near = torch.fmax(allowed, _rounding(rows, lowest, least, problem))
        inner = Lowest(allowed.clone(), Lowest.of(problem.query).points)

        def heard(low: Tensor) -> None:
            hear(_unshifted(torch.fmax(least, low), shift), inner.value + shift)

        if bool((least < allowed - near).any()):
            least = torch.fmax(least, _split(problem, inner, near, heard))
        better = inner.value < allowed
        lowest.look(problem.lift(inner.points)[better].to(lowest.points), query)
    least = _unshifted(least, shift)
    closed = lowest.value - least <= near
    return Lows(least, lowest.value, lowest.points, closed, problem.statistics)


def _rounding(rows: ValueRows, lowest: Lowest, least: Tensor, problem: Problem) -> Tensor:
    """Distance [rows] between a proved bound and a value that rounding alone causes, measured at
    the lowest known point of the row with the lowest bound. No search comes nearer."""
    point = lowest.points[int(least.argmin())]
    proved = least_at(rows, point, problem.settings, problem.budget)
    lost = rows.ask(Box(point, point)).network(point.unsqueeze(0))[0] - proved
    return torch.where(lost.isfinite(), problem.strategy.inputs.rounding * lost, 0.0)


def least_at(rows: ValueRows, point: Tensor, settings: Settings, budget: Budget) -> Tensor:
    """Proved lower bounds [rows] on the values at one point [inputs]."""
    return bound_root(_problem(rows.ask(Box(point, point)), settings, budget))


def _problem(query: Query, settings: Settings, budget: Budget) -> Problem:
    """A problem without counterexamples: its judge rejects every point."""
    return Problem(query, lambda points: None, settings, budget, Strategy(), NullLog(query))


def _bounded(problem: Problem, method: Method) -> Tensor:
    """Proved lower bounds [rows]; shrinks the problem."""
    problem.reduce_inputs()
    least = bound_root(problem)
    if method == "plain":
        return least
    problem.shrink()
    least = torch.fmax(least, bound_outputs(problem, problem.strategy.slopes.rows))
    if len(problem.bounds.lower) > 1 and bool((least <= 0).any()):
        refine(problem, problem.budget.share(problem.strategy.hidden.refine_share))
        problem.shrink()
        least = torch.fmax(least, bound_outputs(problem, problem.strategy.slopes.rows))
    return least


def _split(problem: Problem, lowest: Lowest, gap: Tensor, hear: Callable[[Tensor], None]) -> Tensor:
    """Lower bounds [rows] by neuron splits and, for a box with few inputs, by input splits: neither
    is always better. In smooth networks only inputs are split."""
    if not problem.query.network.piecewise_linear:
        return _split_smooth(problem, lowest, gap, hear)
    strategy, budget = problem.strategy, problem.budget
    ascent, neurons = strategy.slopes.values, strategy.neurons
    context, root = context_and_root(problem.query, problem.bounds, budget, ascent, neurons)
    goal = Least(context, lowest, gap, strategy.projections)
    frontier = Frontier(budget.waiting)
    search = BestFirst(goal, frontier, bundles_at_once(context, neurons.batch))

    def run(most: float) -> Tensor:
        """Lower bounds [rows] once `most` bundles are bounded, if the search has not ended then."""

        def enough() -> bool:
            hear(goal.least(frontier))
            return budget.expired() or search.bundles >= most

        search.run(enough)
        return goal.least(frontier)

    search.begin(root, {})
    some = problem.query.network.inputs <= strategy.inputs.some
    by_boxes = isinstance(problem.query.domain, Box) and some
    most = strategy.short.most if by_boxes else None
    least = run(torch.inf if most is None else most)
    if by_boxes and not budget.expired():
        least = torch.fmax(least, _split_boxes(problem, least, lowest, gap))
        hear(least)
        if bool((least < lowest.value - gap).any()):
            least = torch.fmax(least, run(torch.inf))
    problem.statistics.update(bundles=search.bundles, regions=goal.regions)
    return least


def _split_smooth(
    problem: Problem, lowest: Lowest, gap: Tensor, hear: Callable[[Tensor], None]
) -> Tensor:
    """Lower bounds [rows] by input splits of a box, for smaller and smaller gaps."""
    least = torch.full_like(lowest.value, -torch.inf)
    numbers = problem.strategy.inputs
    if isinstance(problem.query.domain, Box) and problem.query.network.inputs <= numbers.some:
        for wider in numbers.gaps:
            least = torch.fmax(least, _split_boxes(problem, least, lowest, wider * gap))
            hear(least)
            if problem.budget.expired():
                break
    return least


def _split_boxes(problem: Problem, least: Tensor, lowest: Lowest, gap: Tensor) -> Tensor:
    """Lower bounds [rows] by input splits, which try to prove that each row is at least its lowest
    known value minus the gap; a lower point that they find restarts them with a lower target."""
    query, domain = problem.query, problem.query.domain
    how = problem.strategy.inputs
    few = query.network.inputs <= how.few
    patience = problem.budget.share(how.value_share if few else how.share)

    wanted = lowest.value - gap

    def confirm(points: Tensor) -> Counterexample | None:
        lowest.look(domain.project(points.to(query.network.dtype)), query)
        lower = bool((lowest.value < wanted).any())
        return Counterexample(np.zeros(0), np.zeros(0, dtype=np.float32)) if lower else None

    while True:
        wanted = lowest.value - gap
        left = torch.nonzero(least < wanted).flatten()
        if not len(left) or patience.expired():
            return least
        part = query.only(left.tolist())
        rows = torch.eye(len(left), dtype=wanted.dtype, device=wanted.device)
        output = Combination(part.network.output, rows, -wanted[left])
        part = replace(part, network=replace(part.network, output=output))
        outcome = split_inputs(part, confirm, patience, Subdivision(whole=True))
        problem.count(**outcome.statistics)
        if outcome.status == "unsat":
            return least.index_copy(0, left, wanted[left])
        if outcome.status != "sat":
            return least


def _unshifted(least: Tensor, shift: Tensor) -> Tensor:
    """Lower bounds on the rows from those on the shifted rows, with the sum rounded down."""
    total = least + shift
    down = torch.nextafter(total, torch.full_like(total, -torch.inf))
    return torch.where(total.isfinite(), down, -torch.inf)
