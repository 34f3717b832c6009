"""Certified lower bounds of the robustness radius: the walk with a priority queue.

Distances are parts t of the domain's radius: a hyperplane z_u = 0 is met in t times the domain only
where |v_u| <= t h(A_u). A region waits with a lower bound of the distance of the facet it was
reached through, and a decision boundary with its own. All regions nearer than the lowest of them
have been explored and hold no counterexample: that is the certified bound, valid at any time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from fgp_vnn.bounds import LayerBounds
from fgp_vnn.deadline import Deadline
from fgp_vnn.query import Query
from fgp_vnn.search.boundaries import region_spaces
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.joint import press
from fgp_vnn.search.outcome import Confirm
from fgp_vnn.search.patterns import Patterns
from fgp_vnn.search.projections import nearest
from fgp_vnn.search.triangular import RegionForms, Triangular, triangular
from fgp_vnn.search.visited import Visited
from fgp_vnn.verdict import Counterexample

MEMORY = 1 << 30  # bytes of waiting regions
WORKSPACE = 1 << 18


@dataclass(frozen=True)
class Reached:
    """How far the search has come: no counterexample is nearer than lower * the radius."""

    lower: float  # as a part of the domain's radius, at most 1
    witness: Counterexample | None  # the nearest that was found
    ended: str  # "witness", "limit", "inconclusive" or "timeout"
    statistics: dict[str, int] = field(default_factory=dict)


@dataclass(order=True)
class _Boundary:
    """A disjunct that a region may meet at a distance of at least `key`."""

    key: float
    number: int
    words: Tensor = field(compare=False)  # [1, words]
    disjunct: int = field(compare=False)
    refined: bool = field(compare=False, default=False)


class _Search:
    """The state of one search outwards."""

    def __init__(self, query: Query, bounds: LayerBounds) -> None:
        self.query = query
        self.system = triangular(query)
        self.patterns = Patterns(query, bounds)
        self.regions = Frontier(MEMORY)
        self.boundaries: list[_Boundary] = []
        start = self.patterns.start
        self.closed = Visited(start.shape[1], start.device)
        self.regions.push(query.domain.center.new_zeros(1), words=start)
        self.limit = 1.0  # nothing farther is of interest
        self.explored = 0

    @property
    def lower(self) -> float:
        nearest_boundary = self.boundaries[0].key if self.boundaries else 1.0
        return min(self.regions.lowest, nearest_boundary, self.limit)

    def explore(self) -> None:
        """Take the nearest regions and add their neighbours and boundaries."""
        rows = self.system.blocks[-1].last * max(self.query.network.inputs, 1)
        taken = self.regions.pop(max(1, min(256, WORKSPACE // rows)))
        words = taken["words"][taken["key"] < self.limit]
        words = words[self.closed.add(words)] if len(words) else words
        if not len(words):
            return
        self.explored += len(words)
        on = self.patterns.unpack(words)
        forms = self.system.forms(on)
        sign = on * 2 - 1
        near = _region_distance(self.system, forms, sign)
        keep = near < self.limit
        count = self.system.neurons
        distance = torch.maximum(_distance(self.system, forms), near)
        crossed = (distance[:count] < self.limit) & keep
        self._neighbours(words, crossed, distance[:count])
        self._add_boundaries(words, distance[count:], keep)

    def _neighbours(self, words: Tensor, crossed: Tensor, distance: Tensor) -> None:
        parent, neuron, flipped = self.patterns.neighbours(words, crossed)
        if len(flipped):
            self.regions.push(distance[neuron, parent], words=flipped)

    def _add_boundaries(self, words: Tensor, distance: Tensor, keep: Tensor) -> None:
        """A disjunct is no nearer than the farthest of its rows."""
        shape = (self.query.disjuncts, distance.shape[1])
        index = self.query.disjunct.unsqueeze(1).expand_as(distance)
        farthest = distance.new_zeros(shape).scatter_reduce(0, index, distance, "amax")
        for disjunct, region in torch.nonzero((farthest < self.limit) & keep).tolist():
            key = float(farthest[disjunct, region])
            number = len(self.boundaries) + self.explored
            entry = _Boundary(key, number, words[region : region + 1], disjunct)
            heapq.heappush(self.boundaries, entry)


def walk_outwards(
    query: Query,
    bounds: LayerBounds,
    confirm: Confirm,
    distance: Callable[[Counterexample], float],
    deadline: Deadline,
    progress: Callable[[float], None] = lambda lower: None,
) -> Reached:
    """Raise the bound until a counterexample, the edge of the domain or the deadline ends it.

    `distance` is that of a counterexample, as a part of the domain's radius, rounded up;
    `progress` hears the bound as it grows.
    """
    search = _Search(query, bounds)
    witness: Counterexample | None = None
    lower = 0.0
    while True:
        lower = max(lower, search.lower)
        progress(lower)
        if lower >= search.limit:
            return _ended(search, search.limit, witness, "witness" if witness else "limit")
        if deadline.expired():
            return _ended(search, lower, witness, "timeout")
        boundaries = search.boundaries
        if not boundaries or boundaries[0].key > search.regions.lowest:
            search.explore()
            continue
        boundary = heapq.heappop(boundaries)
        found, key = _settle(search, boundary, confirm)
        if found is not None and distance(found) <= search.limit:
            witness, search.limit = found, distance(found)
        if boundary.refined:
            # The nearest of all that is left: it ends the search, with a witness or without one.
            return _ended(search, lower, witness, "inconclusive" if found is None else "witness")
        heapq.heappush(boundaries, _refined(boundary, key))


def _refined(boundary: _Boundary, key: float) -> _Boundary:
    return _Boundary(key, boundary.number, boundary.words, boundary.disjunct, refined=True)


def _settle(
    search: _Search, boundary: _Boundary, confirm: Confirm
) -> tuple[Counterexample | None, float]:
    """Try the boundary's nearest point; gives a witness and a better bound of its distance."""
    system, domain = search.system, search.system.domain
    on = search.patterns.unpack(boundary.words)
    forms = system.forms(on)
    at = torch.zeros(1, dtype=torch.long, device=on.device)
    spaces = region_spaces(search.query, system, forms, on * 2 - 1, at + boundary.disjunct, at)
    lower, point = nearest(domain, spaces)
    offset = point - domain.center
    beyond = [domain.center + (1 + extra) * offset for extra in (0.0, 1e-7, 1e-6, 1e-5, 1e-4)]
    found = confirm(domain.project(torch.cat(beyond)))
    return found, max(boundary.key, float(lower))


def _distance(system: Triangular, forms: RegionForms) -> Tensor:
    """Lower bounds [rows, regions] of the distance of each row's zero (outputs: of row <= 0)."""
    values = forms.values.clone()
    values[: system.neurons].abs_()
    tiny = torch.finfo(values.dtype).tiny
    return (values - system.error.unsqueeze(1)).clamp_(min=0) / forms.reach.clamp(min=tiny)


def _region_distance(system: Triangular, forms: RegionForms, sign: Tensor) -> Tensor:
    """A lower bound [regions] of each region's own distance."""
    if not system.neurons:
        return sign.new_zeros(sign.shape[1])
    pressed = press(system, forms, sign)
    tiny = torch.finfo(sign.dtype).tiny
    gap = (pressed.q - pressed.slack).clamp(min=0)
    return gap / system.domain.support(pressed.p).clamp(min=tiny)


def _ended(search: _Search, lower: float, witness: Counterexample | None, how: str) -> Reached:
    # One part in 10^12 covers the rounding of the quotients above.
    return Reached(lower * (1 - 1e-12), witness, how, {"regions": search.explored})
