"""The walk of Fast Geometric Projections: from region to neighbouring region, each decided by
projections onto hyperplanes.

Every region that holds a point of the domain is reached: on the segment from the centre to that
point the pattern changes at hyperplanes that the domain meets, one neuron at a time or through
regions that the segment only touches. So when the queue is empty and no region could meet the
unsafe set, nothing in the domain can.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from fgp_vnn.bounds import LayerBounds
from fgp_vnn.deadline import Deadline
from fgp_vnn.query import Query
from fgp_vnn.regions import Forms, affine_forms, empty
from fgp_vnn.search.outcome import Confirm, Outcome
from fgp_vnn.search.projections import settle
from fgp_vnn.search.visited import Visited, flip_words, pack, unpack
from fgp_vnn.verdict import Counterexample

PAST = 1e-3  # of the way from the centre to the end of the domain
Variant = Literal["full-queue", "first-boundary"]


@dataclass(frozen=True)
class Walk:
    """How to walk; each heuristic can be switched off to measure what it is worth."""

    variant: Variant = "full-queue"
    batch: int = 512
    cache_first: bool = True  # the first layer's forms are computed once
    signed: bool = True  # regions that miss the domain are dropped
    alternate: bool = True  # inconclusive boundaries are settled by alternating projections
    regions: int | None = None  # give up after so many


@dataclass(eq=False)
class _State:
    query: Query
    walk: Walk
    confirm: Confirm
    neurons: Tensor  # [unstable] positions in the concatenation of all layers
    base: Tensor  # [neurons] the pattern of the stable neurons
    visited: Visited
    queue: deque[Tensor]
    flips: Tensor  # [unstable, words]
    first: Forms | None
    unsettled: int = 0
    statistics: dict[str, int] = field(default_factory=dict)


def walk_regions(
    query: Query, bounds: LayerBounds, confirm: Confirm, deadline: Deadline, walk: Walk
) -> Outcome:
    """Search the regions around the domain's centre; `bounds` tell which neurons never flip."""
    state = _begin(query, bounds, confirm, walk)
    explored = 0
    while state.queue:
        if deadline.expired():
            return _end(state, explored, Outcome("timeout", reason="time is up in the walk"))
        if walk.regions is not None and explored >= walk.regions:
            return _end(state, explored, Outcome("unknown", reason="too many regions to walk"))
        words = _take(state.queue, walk.batch)
        explored += len(words)
        found = _explore(state, words, deadline)
        if found is not None:
            return _end(state, explored, Outcome("sat", found))
        if state.unsettled and walk.variant == "first-boundary":
            break
    if state.unsettled and deadline.expired():
        return _end(state, explored, Outcome("timeout", reason="time is up in the walk"))
    if state.unsettled:
        reason = f"{state.unsettled} decision boundaries could not be settled by projections"
        return _end(state, explored, Outcome("unknown", reason=reason))
    return _end(state, explored, Outcome("unsat"))


def _begin(query: Query, bounds: LayerBounds, confirm: Confirm, walk: Walk) -> _State:
    network, domain = query.network, query.domain
    center = network.preactivations(domain.center.unsqueeze(0))[:-1]
    device = network.device
    no_layers = torch.zeros(1, 0, dtype=torch.bool, device=device)
    base = torch.cat([no_layers, *(z >= 0 for z in center)], -1)[0]
    crossing = torch.cat([no_layers, *bounds.unstable()], -1)[0]
    # Where a neuron is stable its bounds know its sign better than the rounded value does.
    surely_on = torch.cat([no_layers, *(lo >= 0 for lo in bounds.lower)], -1)[0]
    base = torch.where(crossing, base, surely_on)
    neurons = torch.nonzero(crossing).flatten()
    start = pack(base[neurons].unsqueeze(0))
    visited = Visited(start.shape[1], device)
    visited.add(start)
    first = None
    if walk.cache_first and network.layers:
        first = affine_forms(network, domain, [z >= 0 for z in center])[0]
    flips = flip_words(len(neurons), device)
    return _State(query, walk, confirm, neurons, base, visited, deque([start]), flips, first)


def _take(queue: deque[Tensor], count: int) -> Tensor:
    """The first patterns of the queue [at most count, words]."""
    taken: list[Tensor] = []
    while queue and count > 0:
        chunk = queue.popleft()
        taken.append(chunk[:count])
        if len(chunk) > count:
            queue.appendleft(chunk[count:])
        count -= len(taken[-1])
    return torch.cat(taken)


def _explore(state: _State, words: Tensor, deadline: Deadline) -> Counterexample | None:
    """Decide a batch of regions and put their neighbours into the queue."""
    query, walk = state.query, state.walk
    bits = unpack(words, len(state.neurons))
    full = state.base.expand(len(bits), -1).clone()
    full[:, state.neurons] = bits
    pattern = torch.split(full, list(query.network.widths), -1)
    forms = affine_forms(query.network, query.domain, pattern, first=state.first)
    hidden, output = forms[:-1], _expand(forms[-1], len(bits))
    alive = torch.ones(len(bits), dtype=torch.bool, device=bits.device)
    if walk.signed and hidden:
        alive = ~empty(hidden, pattern).expand(len(bits))
    least = output.values - query.domain.support(-output.columns.transpose(-1, -2)) - output.error
    meets = ~query.closed(least) & alive.unsqueeze(-1)  # [regions, disjuncts]
    if bool(meets.any()):
        found = _decide(state, pattern, hidden, output, meets, deadline)
        if found is not None:
            return found
    if hidden:
        values, reach, error = (
            torch.cat([f[i].expand(len(bits), -1) for f in hidden], -1)[:, state.neurons]
            for i in (1, 2, 3)
        )
        crossed = (values.abs() <= reach + error) & alive.unsqueeze(-1)
        _enqueue(state, words, crossed)
    return None


def _expand(forms: Forms, regions: int) -> Forms:
    return Forms(*(part.expand(regions, *part.shape[1:]) for part in forms))


def _enqueue(state: _State, words: Tensor, crossed: Tensor) -> None:
    parent, neuron = torch.nonzero(crossed, as_tuple=True)
    if not len(parent):
        return
    neighbours = words[parent] ^ state.flips[neuron]
    fresh = state.visited.add(neighbours)
    if len(fresh):
        # In the order of their parents: the walk stays breadth first.
        state.queue.append(neighbours[fresh.sort().values])


def _decide(
    state: _State,
    pattern: Sequence[Tensor],
    hidden: Sequence[Forms],
    output: Forms,
    meets: Tensor,
    deadline: Deadline,
) -> Counterexample | None:
    """Project onto the boundaries that the domain meets; settle what stays inconclusive."""
    query, domain = state.query, state.query.domain
    region, disjunct = torch.nonzero(meets, as_tuple=True)
    of_row = meets[:, query.disjunct]  # [regions, rows]
    at, row = torch.nonzero(of_row, as_tuple=True)
    rows = output.columns[at, :, row].unsqueeze(1)
    values = output.values[at, row].unsqueeze(1)
    # Also a little past the boundary, since on it rounding decides; where the domain goes so far.
    past = values + PAST * domain.support(-rows)
    points = domain.projection(torch.cat([rows, rows], 1), torch.cat([values, past], 1))
    found = state.confirm(points.flatten(0, 1))
    state.statistics["projections"] = state.statistics.get("projections", 0) + len(points)
    if found is not None:
        return found
    if not state.walk.alternate:
        state.unsettled += len(region)
        return None
    for r, d in zip(region.tolist(), disjunct.tolist(), strict=True):
        if deadline.expired():
            state.unsettled += 1
            return None
        counter, closed = settle(query, pattern, hidden, output, r, d, state.confirm)
        state.statistics["alternations"] = state.statistics.get("alternations", 0) + 1
        if counter is not None:
            return counter
        state.unsettled += not closed
    return None


def _end(state: _State, explored: int, outcome: Outcome) -> Outcome:
    statistics = {"regions": explored, "regions_seen": len(state.visited), **state.statistics}
    return Outcome(outcome.status, outcome.counterexample, outcome.reason, statistics)
