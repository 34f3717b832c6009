"""Leaves of the split search: regions, settled in batches by projections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.attack.descent import offer
from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import regions_at_once
from fgp_vnn.query import Query
from fgp_vnn.regions.forms import MapForms, affine_forms, empty
from fgp_vnn.regions.gaps import Gap
from fgp_vnn.regions.projections import Settled
from fgp_vnn.regions.refute import Refuter
from fgp_vnn.regions.region_halfspaces import layer_spaces
from fgp_vnn.regions.settle import Effort, settle
from fgp_vnn.strategy import Projections


def leaf_effort(projections: Projections, lp: bool) -> Effort:
    """The effort for a region that bounds leave open."""
    steps = projections.before_program if lp else projections.leaf
    return Effort(steps, lp, projections)


class Decided(NamedTuple):
    """The result for a number of regions."""

    found: Counterexample | None
    unsettled: int
    lps: int  # programs solved
    gaps: Sequence[Gap] = ()  # gaps that they left open


@dataclass(frozen=True, eq=False)
class Leaves:
    """Decides regions [regions, neurons], each of which is asked about one disjunct [regions]."""

    query: Query
    confirm: Confirm
    budget: Budget
    effort: Effort
    refuter: Refuter

    def decide(self, signs: Tensor, disjunct: Tensor) -> Decided:
        """Look for a counterexample in the regions, or count those that could not be settled.

        As many regions are settled at a time as fit into the memory; when time is up, the rest
        count as unsettled.
        """
        fit = regions_at_once(self.query.network, self.budget.at_once)
        unsettled, lps, gaps = 0, 0, list[Gap]()
        for some, which in zip(torch.split(signs, fit), torch.split(disjunct, fit), strict=True):
            if self.budget.expired():
                unsettled += len(some)
                continue
            settled = self.settle(some, which)
            lps += settled.lps
            if settled.found is not None:
                return Decided(settled.found, 0, lps)
            unsettled += int((~settled.closed).sum())
            gaps += settled.gaps
        return Decided(None, unsettled, lps, gaps)

    def settle(self, signs: Tensor, disjunct: Tensor) -> Settled:
        """Find a counterexample, or prove which regions do not meet their disjunct.

        The multipliers are those of the neurons, then of the query's rows; all are 0 where one
        constraint alone closes a region.
        """
        query, network, domain = self.query, self.query.network, self.query.domain
        pattern = torch.split(signs > 0, list(network.widths), -1)
        forms = affine_forms(network, domain, pattern)
        output = MapForms(*(part.expand(len(signs), *part.shape[1:]) for part in forms[-1]))
        gone = empty(forms[:-1], pattern).expand(len(signs))
        least = output.values - domain.support(-output.columns.transpose(-1, -2)) - output.error
        shut = query.closed(least).gather(-1, disjunct.unsqueeze(-1)).squeeze(-1)
        closed = gone | shut
        multipliers = least.new_zeros(len(signs), network.neurons + network.outputs)
        open_ = torch.nonzero(~closed).flatten()
        if not len(open_):
            return Settled(None, closed, multipliers)
        spaces = layer_spaces(query, forms, signs, disjunct, open_)

        def hand_over(points: Tensor) -> Counterexample | None:
            return offer(query, self.confirm, points, network(points), self.effort.how.offer)

        def proves(polyhedron: int, multipliers: Tensor) -> bool:
            return self.refuter(signs[open_[polyhedron]], multipliers)

        given = hand_over, self.budget, self.effort, proves
        settled = settle(domain, spaces, network.outputs, *given)
        closed = closed.index_copy(0, open_, settled.closed)
        multipliers[open_] = settled.multipliers
        return settled._replace(closed=closed, multipliers=multipliers)
