"""The walk of Fast Geometric Projections: breadth first, each region decided by projections onto
hyperplanes. If the queue runs empty and no region meets the unsafe set, no point of the domain
does.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from fgp_vnn import strategy
from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.rounding import positive
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.base.words import plural
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.query import Query
from fgp_vnn.regions.combined import combine_constraints, excluded, misses
from fgp_vnn.regions.settle import Effort, why_open
from fgp_vnn.search.walk.boundaries import Boundaries
from fgp_vnn.search.walk.explore import Ground, Met, Regions, explore
from fgp_vnn.search.walk.patterns import Neighbours
from fgp_vnn.search.walk.seen_regions import SeenRegions

Variant = Literal["full-queue", "first-boundary"]


@dataclass(frozen=True)
class WalkOptions:
    """How to walk; each heuristic can be switched off to measure its effect."""

    variant: Variant = "full-queue"
    batch: int | None = None  # regions at a time; None: as the strategy says
    cache_first: bool = True  # the first layer's supports are computed once
    signed: bool = True  # regions that miss the domain by one constraint are dropped
    combined: bool = True  # and those that miss it by several constraints together
    alternate: bool = True  # inconclusive boundaries are settled by alternating projections
    lp: bool = False  # and those left open by LPs and cone programs
    regions: int | None = None  # give up after so many
    numbers: strategy.Walk = field(default_factory=strategy.Walk)
    projections: strategy.Projections = field(default_factory=strategy.Projections)


def walk_regions(
    query: Query, bounds: LayerBounds, confirm: Confirm, budget: Budget, walk: WalkOptions
) -> Outcome:
    """Search the regions around the domain's centre; `bounds` tell which neurons never flip."""
    batch = walk.numbers.breadth
    batch = batch if walk.batch is None else replace(batch, most=walk.batch)
    ground = Ground.of(query, bounds, budget, batch, walk.cache_first)
    first, last = _efforts(walk)
    boundaries = Boundaries(ground, confirm, budget, walk.numbers.overshoots, first, last)
    order = _Breadth(ground, boundaries, budget, walk)
    explored = explore(ground, order)
    seen = {"regions": explored, "regions_seen": len(order.visited)}
    return replace(order.outcome(), statistics={**seen, **boundaries.statistics})


def _efforts(walk: WalkOptions) -> tuple[Effort, Effort | None]:
    """The effort for a boundary when it is met, and after it has waited."""
    numbers, steps = walk.projections, 0
    if walk.alternate:
        steps = numbers.before_program if walk.lp else numbers.long
    last = Effort(steps, walk.lp, numbers)
    if walk.variant == "first-boundary" or not walk.alternate:
        return last, None  # no boundary waits
    return Effort(numbers.quick, how=numbers), last


class PatternQueue:
    """A first-in, first-out queue of packed patterns [patterns, words], taken in batches."""

    def __init__(self, start: Tensor) -> None:
        self._chunks: deque[Tensor] = deque([start])
        self._size, self._words = start.shape

    def __len__(self) -> int:
        return self._size

    @property
    def bytes(self) -> int:
        """The memory of the waiting patterns."""
        return self._size * self._words * 8

    def put(self, patterns: Tensor) -> None:
        """Add patterns [patterns, words] at the end."""
        self._chunks.append(patterns)
        self._size += len(patterns)

    def take(self, count: int) -> Tensor:
        """Take out the first patterns [at most count, words]."""
        taken: list[Tensor] = []
        while self._chunks and count > 0:
            chunk = self._chunks.popleft()
            taken.append(chunk[:count])
            if len(chunk) > count:
                self._chunks.appendleft(chunk[count:])
            count -= len(taken[-1])
            self._size -= len(taken[-1])
        return taken[0] if len(taken) == 1 else torch.cat(taken)


class _Breadth:
    """Breadth-first order: regions in the order in which they are met."""

    def __init__(
        self, ground: Ground, boundaries: Boundaries, budget: Budget, walk: WalkOptions
    ) -> None:
        self._system, self._boundaries = ground.system, boundaries
        self._budget, self._walk = budget, walk
        start = ground.patterns.start
        self._queue = PatternQueue(start)
        self.visited = SeenRegions(start.shape[1], start.device, walk.numbers.table)
        self.visited.add(start)
        self._full = False  # no memory is left for more regions
        self._found: Counterexample | None = None
        self._stopped: Outcome | None = None  # the reason to stop early

    def has_more(self, explored: int) -> bool:
        boundaries, waiting = self._boundaries, self._walk.numbers.waiting
        self._found = self._found or boundaries.settle_rest(above=waiting)
        if self._found is not None or not len(self._queue):
            return False
        if boundaries.open and self._walk.variant == "first-boundary":
            return False
        self._stopped = self._stop(explored)
        return self._stopped is None

    def _stop(self, explored: int) -> Outcome | None:
        """The outcome that ends the walk while regions wait; None to continue."""
        if self._budget.expired():
            return Outcome("timeout", reason="time is up in the walk")
        if self._walk.regions is not None and explored >= self._walk.regions:
            return Outcome("unknown", reason="too many regions to walk")
        if self._full:
            reason = f"{len(self.visited)} regions fill the memory of the walk"
            return Outcome("unknown", reason=reason)
        return None

    def take(self, count: int) -> Tensor:
        return self._queue.take(count)

    def measure(self, regions: Regions) -> Met:
        system, count = self._system, self._system.neurons
        _, sign, forms = regions
        # [rows, regions]: how far z_u can move within the domain, and how far g can fall
        reach = forms.reach + system.error.unsqueeze(1)
        meets = ~positive(forms.values[count:] - reach[count:])
        crossed = ~positive(forms.values[:count].abs() - reach[:count])
        if self._walk.signed and count:
            alive = ~positive(-sign * forms.values[:count] - reach[:count]).any(0)
            crossed &= alive
            meets &= alive
        if self._walk.combined and count:
            combined = combine_constraints(system, forms, sign)
            free = ~excluded(system, forms, combined) & ~misses(system.domain, combined)
            crossed &= free[:count]
            meets &= free[count:]
        return Met(crossed, meets)

    def meet(self, regions: Regions, disjunct: Tensor, region: Tensor, met: Met) -> None:
        self._found = self._boundaries.meet(regions, disjunct, region)

    def add(self, neighbours: Neighbours, met: Met) -> None:
        words = neighbours.words
        if self._found is not None:
            return
        if not self.visited.fits(len(words), self._budget.waiting - self._queue.bytes):
            self._full = True
            return
        fresh = self.visited.add(words)
        if len(fresh):
            # In the order of their parents: the walk stays breadth first.
            self._queue.put(words[fresh.sort().values])

    def outcome(self) -> Outcome:
        """The result of the walk, after settling the boundaries that wait."""
        if self._stopped is not None:
            return self._stopped
        boundaries = self._boundaries
        found = self._found or boundaries.settle_rest()
        if found is not None:
            return Outcome("sat", found)
        if not boundaries.open:
            return Outcome("unsat")
        if self._budget.expired():
            return Outcome("timeout", reason="time is up in the walk")
        what = plural(boundaries.open, "decision boundary", "decision boundaries")
        return Outcome("unknown", reason=why_open(what, boundaries.gaps, self._walk.lp))
