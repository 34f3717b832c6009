"""The walk of Fast Geometric Projections: from region to neighbouring region, each decided by
projections onto hyperplanes.

Every region that holds a point of the domain is reached: on the segment from the centre to that
point the pattern changes at hyperplanes that the domain meets, one neuron at a time or through
regions that the segment only touches. So when the queue is empty and no region could meet the
unsafe set, nothing in the domain can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.rounding import positive
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.bounds.backward import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import regions_at_once
from fgp_vnn.query import Query
from fgp_vnn.regions.joint import excluded, misses, press
from fgp_vnn.regions.settle import why_open
from fgp_vnn.regions.triangular import Triangular, triangular
from fgp_vnn.search.walk.boundaries import WAITING, Boundaries
from fgp_vnn.search.walk.patterns import Patterns
from fgp_vnn.search.walk.queue import PatternQueue
from fgp_vnn.search.walk.visited import Visited

Variant = Literal["full-queue", "first-boundary"]
WORKSPACE = 1 << 20  # numbers that the forms of a batch may take


@dataclass(frozen=True)
class Walk:
    """How to walk; each heuristic can be switched off to measure what it is worth."""

    variant: Variant = "full-queue"
    batch: int = 4096  # regions at a time, fewer where their forms are large
    cache_first: bool = True  # the first layer's supports are computed once
    signed: bool = True  # regions that miss the domain by one constraint are dropped
    joint: bool = True  # and those that miss it by several constraints together
    alternate: bool = True  # inconclusive boundaries are settled by alternating projections
    lp: bool = False  # and what these leave by LPs and cone programs
    regions: int | None = None  # give up after so many


@dataclass(eq=False)
class _State:
    walk: Walk
    budget: Budget
    system: Triangular
    boundaries: Boundaries
    patterns: Patterns
    visited: Visited
    queue: PatternQueue
    fit: int  # regions whose forms fit into the memory
    explored: int = 0
    full: bool = False  # no memory is left for more regions

    @property
    def batch(self) -> int:
        rows = self.system.blocks[-1].last * self.system.blocks[0].rows.shape[1]
        return max(1, min(self.walk.batch, self.fit, max(16, WORKSPACE // max(rows, 1))))


def walk_regions(
    query: Query, bounds: LayerBounds, confirm: Confirm, budget: Budget, walk: Walk
) -> Outcome:
    """Search the regions around the domain's centre; `bounds` tell which neurons never flip."""
    state = _begin(query, bounds, confirm, budget, walk)
    boundaries = state.boundaries
    pattern = state.patterns.unpack
    while len(state.queue):
        if budget.expired():
            return _end(state, Outcome("timeout", reason="time is up in the walk"))
        if walk.regions is not None and state.explored >= walk.regions:
            return _end(state, Outcome("unknown", reason="too many regions to walk"))
        if state.full:
            reason = f"{len(state.visited)} regions fill the memory of the walk"
            return _end(state, Outcome("unknown", reason=reason))
        found = _explore(state, state.queue.take(state.batch))
        found = found or boundaries.settle_rest(state.system, pattern, above=WAITING)
        if found is not None:
            return _end(state, Outcome("sat", found))
        if boundaries.open and walk.variant == "first-boundary":
            break
    found = boundaries.settle_rest(state.system, pattern)
    if found is not None:
        return _end(state, Outcome("sat", found))
    if not boundaries.open:
        return _end(state, Outcome("unsat"))
    if budget.expired():
        return _end(state, Outcome("timeout", reason="time is up in the walk"))
    reason = why_open(f"{boundaries.open} decision boundaries", boundaries.gaps, walk.lp)
    return _end(state, Outcome("unknown", reason=reason))


def _begin(
    query: Query, bounds: LayerBounds, confirm: Confirm, budget: Budget, walk: Walk
) -> _State:
    patterns = Patterns(query, bounds)
    visited = Visited(patterns.start.shape[1], query.network.device)
    visited.add(patterns.start)
    system = triangular(query, cache_first=walk.cache_first)
    boundaries = Boundaries(
        query,
        confirm,
        budget,
        alternate=walk.alternate,
        at_once=walk.variant == "first-boundary",
        lp=walk.lp,
    )
    queue = PatternQueue(patterns.start)
    fit = regions_at_once(query.network, budget.at_once)
    return _State(walk, budget, system, boundaries, patterns, visited, queue, fit)


def _explore(state: _State, words: Tensor) -> Counterexample | None:
    """Decide a batch of regions and put their neighbours into the queue."""
    state.explored += len(words)
    system, count = state.system, state.system.neurons
    on = state.patterns.unpack(words)
    forms = system.forms(on)
    sign = on * 2 - 1
    # [rows, regions]: how far z_u can go in the domain towards the neuron's sign, and g below 0
    reach = forms.reach + system.error.unsqueeze(1)
    meets = ~positive(forms.values[count:] - reach[count:])
    crossed = ~positive(forms.values[:count].abs() - reach[:count])
    if state.walk.signed and count:
        alive = ~positive(-sign * forms.values[:count] - reach[:count]).any(0)
        crossed &= alive
        meets &= alive
    if state.walk.joint and count:
        pressed = press(system, forms, sign)
        free = ~excluded(system, forms, pressed) & ~misses(system.domain, pressed)
        crossed &= free[:count]
        meets &= free[count:]
    found = state.boundaries.decide(system, forms, sign, words, meets)
    if found is None:
        _enqueue(state, words, crossed)
    return found


def _enqueue(state: _State, words: Tensor, crossed: Tensor) -> None:
    _, _, neighbours = state.patterns.neighbours(words, crossed)
    if not len(neighbours):
        return
    limit = state.budget.waiting - state.queue.bytes
    if not state.visited.fits(len(neighbours), limit):
        state.full = True
        return
    fresh = state.visited.add(neighbours)
    if len(fresh):
        # In the order of their parents: the walk stays breadth first.
        state.queue.put(neighbours[fresh.sort().values])


def _end(state: _State, outcome: Outcome) -> Outcome:
    statistics = {
        "regions": state.explored,
        "regions_seen": len(state.visited),
        **state.boundaries.statistics,
    }
    return Outcome(outcome.status, outcome.counterexample, outcome.reason, statistics)
