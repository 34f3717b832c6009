"""The walk from region to neighbouring region, in any order: breadth first or nearest first.

Every region that holds a point of the domain is reached: on the segment from the centre to that
point, the pattern changes at hyperplanes that meet the domain, one neuron at a time or through
regions that the segment only touches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from fgp_vnn.base.reading import cells, counts
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import regions_at_once
from fgp_vnn.query import Query
from fgp_vnn.regions.halfspaces import HalfSpaces
from fgp_vnn.regions.region_halfspaces import oriented
from fgp_vnn.regions.triangular import RegionForms, Triangular, triangular
from fgp_vnn.search.walk.patterns import Neighbours, Patterns
from fgp_vnn.strategy import RegionBatch


class Regions(NamedTuple):
    """A batch of regions."""

    words: Tensor  # [regions, words] packed patterns
    sign: Tensor  # [neurons, regions] -1 and +1
    forms: RegionForms


@dataclass(frozen=True, eq=False)
class Ground:
    """The regions of a query, for a walk."""

    query: Query
    system: Triangular
    patterns: Patterns
    fit: int  # regions whose forms fit into the memory
    batch: int  # regions that are explored at once

    @classmethod
    def of(
        cls,
        query: Query,
        bounds: LayerBounds,
        budget: Budget,
        batch: RegionBatch,
        cache_first: bool,
    ) -> Ground:
        """The regions of a query; `bounds` tell which neurons are stable and never flip."""
        system = triangular(query, cache_first=cache_first)
        rows = max(system.blocks[-1].last * query.network.inputs, 1)
        fit = regions_at_once(query.network, budget.at_once)
        count = max(1, min(batch.most, fit, max(batch.least, batch.workspace // rows)))
        return cls(query, system, Patterns(query, bounds), fit, count)

    def regions(self, words: Tensor) -> Regions:
        """The forms of regions with packed patterns [regions, words]."""
        on = self.patterns.unpack(words)
        return Regions(words, on * 2 - 1, self.system.forms(on))

    def disjuncts_met(self, meets: Tensor) -> Tensor:
        """Which disjuncts [disjuncts, regions] have all their rows met, given which rows are met
        [outputs, regions]."""
        if self.query.disjuncts != len(self.query.disjunct):  # not one row each, in order
            shape = (self.query.disjuncts, meets.shape[1])
            missed = torch.zeros(shape, dtype=torch.int32, device=meets.device)
            meets = missed.index_add(0, self.query.disjunct, (~meets).int()) == 0
        return meets

    def spaces(self, regions: Regions, disjunct: Tensor, region: Tensor) -> HalfSpaces:
        """The part of each pair's region that meets its disjunct."""
        _, sign, forms = regions
        rows, values = forms.rows[:, region].transpose(0, 1), forms.values[:, region].T
        spaces = HalfSpaces(rows, values, self.system.error.expand_as(values))
        return oriented(self.query, spaces, sign[:, region].T, disjunct)


@dataclass(frozen=True, eq=False)
class Met:
    """The hyperplanes and decision boundaries that a batch of regions may meet."""

    crossed: Tensor  # [neurons, regions] hyperplanes that lead to a neighbour
    boundaries: Tensor  # [outputs, regions] rows that may be <= 0


Measured = TypeVar("Measured", bound=Met)


class Order(Protocol[Measured]):
    """The order in which regions are explored, and what happens to the boundaries they meet."""

    def has_more(self, explored: int) -> bool:
        """Whether there is more to explore after so many regions; first settles the boundaries that
        come before the next region."""

    def take(self, count: int) -> Tensor:
        """The next regions [regions, words], at most `count` and perhaps none; none of them has
        been taken before."""

    def measure(self, regions: Regions) -> Measured:
        """The hyperplanes and boundaries that these regions may meet."""

    def meet(self, regions: Regions, disjunct: Tensor, region: Tensor, met: Measured) -> None:
        """Settle the pairs of a disjunct and a region [pairs], or queue them."""

    def add(self, neighbours: Neighbours, met: Measured) -> None:
        """Queue neighbours, some of which may be known already."""


def explore(ground: Ground, order: Order[Measured]) -> int:
    """Walk until the order has no more regions; returns how many were explored."""
    explored = 0
    while order.has_more(explored):
        words = order.take(ground.batch)
        if not len(words):
            continue
        explored += len(words)
        regions = ground.regions(words)
        met = order.measure(regions)
        meets, crossed = ground.disjuncts_met(met.boundaries), ground.patterns.free(met.crossed)
        pairs, flips = counts(meets, crossed)
        if pairs:
            order.meet(regions, *cells(meets, pairs), met)
        if flips:
            order.add(ground.patterns.neighbours(words, *cells(crossed, flips)), met)
    return explored
