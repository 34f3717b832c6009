"""Certified lower bounds of the robustness radius: the walk with a priority queue.

Distances are parts t of the domain's radius: a hyperplane z_u = 0 is met in t times the domain only
where |v_u| <= t h(A_u). A region waits with a lower bound of the distance of the facet it was
reached through, and a decision boundary with its own. All regions nearer than the lowest of them
have been explored and hold no counterexample: that is the certified bound, valid at any time. A
batch takes the lowest of them at once: what it leaves behind is farther, and what it adds is known
before the bound is read again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import polyhedra_at_once, regions_at_once
from fgp_vnn.query import Query
from fgp_vnn.regions.halfspaces import part_of
from fgp_vnn.regions.joint import press
from fgp_vnn.regions.triangular import RegionForms, Triangular, triangular
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.settled import STEPS, Ball, Reporter, distances
from fgp_vnn.search.walk.boundaries import region_spaces
from fgp_vnn.search.walk.patterns import Patterns
from fgp_vnn.search.walk.visited import Visited

WORKSPACE = 1 << 18
BOUNDARIES = 32  # that are settled at once


@dataclass(eq=False)
class Walked:
    """The state of one search outwards; all distances are parts of the ball's radius."""

    ball: Ball
    reporter: Reporter
    budget: Budget
    regions: int = 0
    stuck: float = torch.inf  # the lowest boundary that nothing settles, or region without room

    def __post_init__(self) -> None:
        # A quarter each for what waits, and half for the table of regions that were seen.
        self._boundaries, self._waiting = (Frontier(self.budget.waiting // 4) for _ in range(2))
        self._query: Query = replace(self.ball.query, domain=self.ball.free())
        self._system = triangular(self._query)
        self._patterns = Patterns(self._query, self.ball.bounds)
        start = self._patterns.start
        self._seen = Visited(start.shape[1], start.device)
        self._waiting.push(self.ball.origin.new_zeros(1), words=start)

    @property
    def limit(self) -> float:
        """Nothing farther is of interest."""
        return self.ball.holding(self.reporter.goal())

    @property
    def lower(self) -> float:
        return min(self._waiting.lowest, self._boundaries.lowest, self.stuck, self.limit)

    def run(self) -> None:
        """Raise the bound until it is at the goal, time is up or a boundary cannot be settled."""
        while True:
            lower = self.lower
            done = lower >= self.limit
            self.reporter.lower(self.reporter.goal() if done else self.ball.distance(lower))
            if done or self.stuck <= lower or self.budget.expired():
                return
            if self._boundaries.lowest <= self._waiting.lowest:
                self._settle()
            else:
                self._explore()

    def _explore(self) -> None:
        """Take the nearest regions and add their neighbours and boundaries."""
        rows = self._system.blocks[-1].last * max(self._query.network.inputs, 1)
        fit = regions_at_once(self._query.network, self.budget.at_once)
        taken = self._waiting.pop(max(1, min(256, fit, WORKSPACE // rows)))
        words = taken["words"][taken["key"] < self.limit]
        if not self._seen.fits(len(words), self.budget.waiting // 2):
            self.stuck = min(self.stuck, float(taken["key"].min()))
            return
        words = words[self._seen.add(words)] if len(words) else words
        if not len(words):
            return
        self.regions += len(words)
        on = self._patterns.unpack(words)
        forms = self._system.forms(on)
        near = _region_distance(self._system, forms, on * 2 - 1)
        keep = near < self.limit
        count = self._system.neurons
        distance = torch.maximum(_distance(self._system, forms), near)
        crossed = (distance[:count] < self.limit) & keep
        parent, neuron, flipped = self._patterns.neighbours(words, crossed)
        if len(flipped):
            self._waiting.push(distance[neuron, parent], words=flipped)
        self._add_boundaries(words, distance[count:], keep)

    def _add_boundaries(self, words: Tensor, distance: Tensor, keep: Tensor) -> None:
        """A disjunct is no nearer than the farthest of its rows."""
        shape = (self._query.disjuncts, distance.shape[1])
        index = self._query.disjunct.unsqueeze(1).expand_as(distance)
        farthest = distance.new_zeros(shape).scatter_reduce(0, index, distance, "amax")
        disjunct, region = torch.nonzero((farthest < self.limit) & keep, as_tuple=True)
        self._wait(farthest[disjunct, region], words[region], disjunct, 0)

    def _wait(self, key: Tensor, words: Tensor, disjunct: Tensor, tried: int) -> None:
        times = torch.full_like(disjunct, tried)
        self._boundaries.push(key, words=words, disjunct=disjunct, tried=times)

    def _settle(self) -> None:
        """Find the nearest points of the nearest boundaries, and better bounds of their distances.

        What comes out lowest once more has been tried before: it gets more steps, and then it is
        stuck.
        """
        fit = polyhedra_at_once(self._query.network, self.budget.at_once)
        taken = self._boundaries.pop(min(BOUNDARIES, fit))
        ahead = taken["key"] > self._waiting.lowest  # they may still turn out to be of no interest
        for tried in range(len(STEPS) + 1):
            mine = (taken["tried"] == tried) & ~ahead
            part = {name: field[mine] for name, field in taken.items()}
            if not len(part["key"]):
                continue
            if tried == len(STEPS):
                self.stuck = min(self.stuck, float(part["key"].min()))
                continue
            key = torch.maximum(part["key"], self._nearest(part, STEPS[tried]))
            self._wait(key, part["words"], part["disjunct"], tried + 1)
        if bool(ahead.any()):
            back = {name: field[ahead] for name, field in taken.items()}
            self._boundaries.push(back.pop("key"), **back)

    def _nearest(self, part: dict[str, Tensor], steps: int) -> Tensor:
        """Bounds [boundaries] of their distances; points that are reached are offered."""
        system = self._system
        on = self._patterns.unpack(part["words"])
        region = torch.arange(on.shape[1], device=on.device)
        forms = system.forms(on)
        spaces = region_spaces(self._query, system, forms, on * 2 - 1, part["disjunct"], region)
        found = distances(self.ball, spaces, self.reporter, self.budget, tries=(steps,))
        return self.ball.part(found)


def _distance(system: Triangular, forms: RegionForms) -> Tensor:
    """Lower bounds [rows, regions] of the distance of each row's zero (outputs: of row <= 0)."""
    values = forms.values.clone()
    values[: system.neurons].abs_()
    return part_of(values - system.error.unsqueeze(1), forms.reach)


def _region_distance(system: Triangular, forms: RegionForms, sign: Tensor) -> Tensor:
    """A lower bound [regions] of each region's own distance."""
    if not system.neurons:
        return sign.new_zeros(sign.shape[1])
    pressed = press(system, forms, sign)
    return part_of(pressed.q - pressed.slack, system.domain.support(pressed.p))
