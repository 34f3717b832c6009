"""Certified lower bounds of the robustness radius: the walk, nearest regions first.

Distances are parts t of the domain's radius: t times the domain meets a hyperplane z_u = 0 only if
|v_u| <= t h(A_u). A region waits with a lower bound on the distance of the facet through which it
was reached, a decision boundary with a lower bound on its own distance. All regions nearer than the
lowest of these bounds have been explored and hold no counterexample, so it is a certified radius at
any time. A batch takes the lowest regions at once: those left behind are farther, and those it adds
are known before the bound is read again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import polyhedra_at_once
from fgp_vnn.regions.combined import combine_constraints
from fgp_vnn.regions.halfspaces import part_within_gap
from fgp_vnn.regions.triangular import Triangular
from fgp_vnn.search.ball import Reporter, SearchBall, distances
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.walk.explore import Ground, Met, Regions, explore
from fgp_vnn.search.walk.patterns import Neighbours
from fgp_vnn.search.walk.seen_regions import SeenRegions
from fgp_vnn.strategy import Projections, Walk


class Walked(NamedTuple):
    """How a walk ended."""

    regions: int  # number explored
    full: bool  # whether there was no memory for more


def walk_outwards(
    ball: SearchBall, reporter: Reporter, budget: Budget, walk: Walk, projections: Projections
) -> Walked:
    """Raise the certified radius until it reaches the goal, time is up, a boundary cannot be
    settled or there is no memory for more regions."""
    query = replace(ball.query, domain=ball.free())
    ground = Ground.of(query, ball.bounds, budget, walk.nearest, cache_first=True)
    nearest = _Nearest(ground, ball, reporter, budget, walk, projections)
    return Walked(explore(ground, nearest), nearest.full)


@dataclass(frozen=True, eq=False)
class _Measured(Met):
    distance: Tensor  # [rows, regions] lower bounds, in the region


@dataclass(eq=False)
class _Nearest:
    """The nearest regions and boundaries first; all distances are parts of the ball's radius."""

    ground: Ground
    ball: SearchBall
    reporter: Reporter
    budget: Budget
    walk: Walk
    projections: Projections

    def __post_init__(self) -> None:
        memory, start = self.budget.waiting, self.ground.patterns.start
        # A quarter each for waiting boundaries and regions, and half for the table of seen regions.
        self._boundaries, self._waiting = (Frontier(memory // 4) for _ in range(2))
        self._seen = SeenRegions(start.shape[1], start.device, self.walk.table)
        self._waiting.push(self.ball.origin.new_zeros(1), words=start)
        self.full = False  # whether there was no memory for a region
        self._stuck = torch.inf  # lowest boundary that stays unsettled, or region without memory
        fit = polyhedra_at_once(self.ground.query.network, self.budget.at_once)
        self._batch = min(self.walk.boundaries, fit)  # boundaries that are settled at once

    @property
    def _limit(self) -> float:
        """The distance beyond which nothing is of interest."""
        return self.ball.holding(self.reporter.goal())

    def has_more(self, explored: int) -> bool:
        while True:
            limit, boundary = self._limit, self._boundaries.lowest
            region = self._waiting.lowest
            lower = min(region, boundary, self._stuck, limit)
            done = lower >= limit
            self.reporter.lower(self.reporter.goal() if done else self.ball.distance(lower))
            if done or self._stuck <= lower or self.budget.expired():
                return False
            if region < boundary:
                return True
            self._settle(region)

    def take(self, count: int) -> Tensor:
        taken = self._waiting.pop(count)
        words = taken["words"][~(taken["key"] >= self._limit)]
        if not self._seen.fits(len(words), self.budget.waiting // 2):
            self._stuck, self.full = min(self._stuck, float(taken["key"].min())), True
            return words[:0]
        return words[self._seen.add(words)] if len(words) else words

    def measure(self, regions: Regions) -> _Measured:
        system, limit = self.ground.system, self._limit
        count, near = system.neurons, _region_distance(system, regions)
        distance = torch.maximum(_distance(system, regions), near)
        met = ~((distance >= limit) | (near >= limit))
        return _Measured(met[:count], met[count:], distance)

    def meet(self, regions: Regions, disjunct: Tensor, region: Tensor, met: _Measured) -> None:
        """Queue the pairs; a disjunct is no nearer than the farthest of its rows."""
        query, distance = self.ground.query, met.distance[self.ground.system.neurons :]
        index = query.disjunct.unsqueeze(1).expand_as(distance)
        farthest = distance.new_zeros(query.disjuncts, distance.shape[1])
        farthest = farthest.scatter_reduce(0, index, distance, "amax")
        self._wait(farthest[disjunct, region], regions.words[region], disjunct, 0)

    def add(self, neighbours: Neighbours, met: _Measured) -> None:
        key = met.distance[neighbours.neuron, neighbours.parent]
        self._waiting.push(key, words=neighbours.words)

    def _wait(self, key: Tensor, words: Tensor, disjunct: Tensor, tried: int) -> None:
        times = torch.full_like(disjunct, tried)
        self._boundaries.push(key, words=words, disjunct=disjunct, tried=times)

    def _settle(self, region: float) -> None:
        """Find the nearest points of the nearest boundaries, and better bounds of their distances.

        A boundary that is again the lowest after a try gets more steps in the next one; after the
        last try it is stuck. Boundaries farther than the nearest region keep waiting.
        """
        tries = len(self.projections.nearest)
        taken = self._boundaries.pop(self._batch)
        ahead = taken["key"] > region  # they may still turn out to be of no interest
        for tried in range(tries + 1):
            mine = (taken["tried"] == tried) & ~ahead
            part = {name: field[mine] for name, field in taken.items()}
            if not len(part["key"]):
                continue
            if tried == tries:
                self._stuck = min(self._stuck, float(part["key"].min()))
                continue
            key = torch.maximum(
                part["key"], self._distances(part["words"], part["disjunct"], tried)
            )
            self._wait(key, part["words"], part["disjunct"], tried + 1)
        if bool(ahead.any()):
            back = {name: field[ahead] for name, field in taken.items()}
            self._boundaries.push(back.pop("key"), **back)

    def _distances(self, words: Tensor, disjunct: Tensor, tried: int) -> Tensor:
        """Lower bounds [boundaries] on their distances; points that are reached are offered."""
        every = torch.arange(len(words), device=words.device)
        spaces = self.ground.spaces(self.ground.regions(words), disjunct, every)
        once = replace(self.projections, nearest=self.projections.nearest[tried : tried + 1])
        return self.ball.part(distances(self.ball, spaces, self.reporter, self.budget, once))


def _distance(system: Triangular, regions: Regions) -> Tensor:
    """Lower bounds [rows, regions] on the distance to where a row is 0 (outputs: row <= 0)."""
    values = regions.forms.values.clone()
    values[: system.neurons].abs_()
    return part_within_gap(values - system.error.unsqueeze(1), regions.forms.reach)


def _region_distance(system: Triangular, regions: Regions) -> Tensor:
    """Lower bounds [regions] on the distance of each region."""
    if not system.neurons:
        return regions.sign.new_zeros(regions.sign.shape[1])
    combined = combine_constraints(system, regions.forms, regions.sign)
    return part_within_gap(combined.q - combined.slack, system.domain.support(combined.p))
