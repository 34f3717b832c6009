"""The split search for the minimum of each row.

The goal is a *value*: the bundles of a row cover the domain, so the lowest level among them is a
proved lower bound of the row at any time. `Value` asks whether the minimum is above 0, and `Signs`
asks this of z and -z of hidden neurons. `Least` finds the minimum, and points that come near it.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fgp_vnn.attack.lowest import Lowest
from fgp_vnn.base.reading import places, read
from fgp_vnn.base.rounding import below
from fgp_vnn.budget.capacity import parts, polyhedra_at_once
from fgp_vnn.regions.extreme_points import LinearPrograms, lowest_points
from fgp_vnn.regions.forms import affine_forms
from fgp_vnn.search.best_first import Batch, Goal, Held, Visited
from fgp_vnn.search.bundles import BundleContext, Bundles, bound, rounding_of
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.strategy import Projections


class Value(Goal):
    """The goal of proving that the minimum of each row is above 0.

    For each row the lowest bundles are split, unless a closed one is as low: then no split raises
    the proved bound.
    """

    def __init__(self, context: BundleContext) -> None:
        self.context, self._rounding = context, rounding_of(context)
        rows = context.rows
        self._closed = rows.new_full((len(rows),), torch.inf)  # lowest levels of closed bundles

    def enough(self) -> Tensor:
        """The level [rows] above which a bundle is closed."""
        return torch.zeros_like(self._closed)

    def visit(self, batch: Batch) -> Visited:
        bounded = bound(self.context, batch.bundles, self._rounding)
        least = bounded.result.least.squeeze(-1)
        level = below(least)
        if not self.context.ascent.storable:
            # A bound of a bundle holds in its children, also where few steps find a lower one.
            level = torch.maximum(level, batch.level)
        self.look(bounded.result.points.flatten(0, 1))
        row = batch.bundles.disjunct
        closed = level > self.enough()[row]
        self._close(row, torch.where(closed, level, torch.inf))
        return Visited(bounded, level, closed, {})

    def look(self, points: Tensor) -> None:
        """Examine the points [points, inputs] at which bounds are least."""

    def settle(self, visited: Visited, at: Tensor) -> Bundles:
        """Close regions at their present level: they have no neuron to split."""
        regions = visited.bounded.bundles.at(at)
        self._close(regions.disjunct, visited.level[at])
        return regions

    def take(self, frontier: Frontier, count: int) -> Held:
        """Take out the lowest bundles of each row in which no closed one is as low; each row gets
        its `share`."""
        waiting = frontier.everything()
        row, level = waiting["disjunct"], waiting["key"]
        useful = (level < self._closed[row]) & self.wanted(row)[row]
        order = torch.where(useful, level, torch.inf).argsort(stable=True)
        order = order[row[order].argsort(stable=True)]  # by row, and by level in each
        waiting_in, useful_in = (
            torch.zeros_like(self._closed, dtype=torch.long).index_add(0, row, flags.long())
            for flags in (torch.ones_like(useful), useful)
        )
        first = waiting_in.cumsum(0) - waiting_in
        rank = torch.arange(len(row), device=row.device) - first[row[order]]
        each = (count // (useful_in > 0).sum().clamp(min=1)).clamp(min=1)
        chosen = self.share(useful_in, each)  # of each row
        (total,) = read(chosen.sum())
        return frontier.take(order[places(rank < chosen[row[order]], total)])

    def wanted(self, row: Tensor) -> Tensor:
        """Which rows [rows] are worth more splits, given the row of each waiting bundle."""
        return torch.ones_like(self._closed, dtype=torch.bool)

    def share(self, useful: Tensor, each: Tensor) -> Tensor:
        """How many bundles of each row [rows] to split now, given how many are useful: at most
        `each`."""
        return useful.clamp(max=each)

    def least(self, frontier: Frontier) -> Tensor:
        """The lowest level of each row [rows]."""
        if not len(frontier):
            return self._closed
        waiting = frontier.everything()
        return self._closed.scatter_reduce(0, waiting["disjunct"], waiting["key"], "amin")

    def _close(self, row: Tensor, level: Tensor) -> None:
        self._closed = self._closed.scatter_reduce(0, row, level, "amin")


class Signs(Value):
    """The same for z and then -z of some neurons: once one of the two is proved above 0, the sign
    is known, and the other is no longer split.

    Every row gets at most `splits` splits. Several at once make larger batches, but only the lowest
    of a row's waiting bundles, one in `one_in`, are split together: splitting all of them would
    spend splits on high ones.
    """

    def __init__(self, context: BundleContext, splits: int, one_in: int) -> None:
        super().__init__(context)
        self._left, self._one_in = torch.full_like(self._closed, splits, dtype=torch.long), one_in

    def share(self, useful: Tensor, each: Tensor) -> Tensor:
        lowest = (useful + self._one_in - 1) // self._one_in
        given = torch.minimum(lowest.clamp(max=each), self._left)
        self._left = self._left - given
        return given

    def wanted(self, row: Tensor) -> Tensor:
        waits = torch.zeros_like(self._closed, dtype=torch.bool).index_fill(0, row, True)
        low, high = (~waits & (self._closed > 0)).chunk(2)
        # Rows that have used up their splits leave the batch to the others.
        return ~(low | high).repeat(2) & (self._left > 0)


class Least(Value):
    """The goal of finding the minimum of each row, up to a gap.

    A bundle is closed if it holds nothing lower by the gap than the lowest known point. In a region
    the minimum is that of a linear program, solved by primal-dual steps: their points are examined,
    and their multipliers give the level of the region.
    """

    def __init__(
        self, context: BundleContext, lowest: Lowest, gap: Tensor, effort: Projections
    ) -> None:
        super().__init__(context)
        self.lowest, self.gap, self.effort = lowest, gap, effort
        self.regions = 0  # settled so far

    def enough(self) -> Tensor:
        return self.lowest.value - self.gap

    def done(self, batch: Batch) -> Tensor:
        row = batch.bundles.disjunct
        done = batch.level > self.enough()[row]
        self._close(row, torch.where(done, batch.level, torch.inf))
        return done

    def look(self, points: Tensor) -> None:
        self.lowest.look(points, self.context.query)

    def settle(self, visited: Visited, at: Tensor) -> Bundles:
        network, budget = self.context.query.network, self.context.budget
        kept = [visited.bounded.bundles.at(at[:0])]
        for some in parts(len(at), polyhedra_at_once(network, budget.at_once)):
            regions = visited.bounded.bundles.at(at[some])
            pattern = visited.bounded.regions(at[some])
            pressed, level = self._pressed(regions, pattern, visited.level[at[some]])
            self._close(pressed.disjunct, level)
            kept.append(pressed)
        self.regions += len(at)
        return Bundles.joined(kept)

    def _pressed(self, regions: Bundles, pattern: Tensor, level: Tensor) -> tuple[Bundles, Tensor]:
        """Regions with the multipliers of their linear programs, and the levels these prove."""
        query, row = self.context.query, regions.disjunct
        split = torch.split(pattern > 0, self.context.widths, -1)
        *layers, output = affine_forms(query.network, query.domain, split)
        count = len(row)

        def wide(part: Tensor) -> Tensor:
            return part.expand(count, *part.shape[1:])

        index = row.view(-1, 1, 1).expand(-1, query.network.inputs, 1)
        signs = regions.signs.to(level.dtype)  # 0 where the sign is known in the whole domain
        rows = [wide(form.columns).transpose(1, 2) for form in layers]
        programs = LinearPrograms(
            cost=wide(output.columns).gather(-1, index).squeeze(-1),
            constant=wide(output.values).gather(-1, row.unsqueeze(-1)).squeeze(-1),
            rows=-torch.cat([level.new_zeros(count, 0, query.network.inputs), *rows], 1)
            * signs.unsqueeze(-1),
            values=-torch.cat([level.new_zeros(count, 0), *(wide(f.values) for f in layers)], 1)
            * signs,
        )

        def look(points: Tensor) -> Tensor:
            self.look(points)
            return self.enough()[row]

        beta = lowest_points(query.domain, programs, look, self.context.budget, self.effort)
        still = replace(self.context, ascent=replace(self.context.ascent, steps=0))
        bounded = bound(still, replace(regions, beta=beta), self._rounding)
        least = bounded.result.least.squeeze(-1)
        better = below(least)
        return bounded.bundles, torch.maximum(level, better)
