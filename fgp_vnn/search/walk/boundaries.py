"""Decision boundaries that the walk meets: tried by projections, then settled or left open."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor

from fgp_vnn.attack.descent import offer
from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import parts
from fgp_vnn.regions.gaps import Gap
from fgp_vnn.regions.projections import project_onto_half_spaces
from fgp_vnn.regions.refute import Refuter
from fgp_vnn.regions.settle import Effort, settle
from fgp_vnn.search.walk.explore import Ground, Regions


class Boundaries:
    """The decision boundaries of one walk; `open` counts those that are not settled."""

    def __init__(
        self,
        ground: Ground,
        confirm: Confirm,
        budget: Budget,
        overshoots: tuple[float, ...],
        first: Effort,
        last: Effort | None,
    ) -> None:
        """Spend `first` on a boundary when it is met; if that leaves it open, it waits for
        `last`."""
        self._ground, self._confirm, self._budget = ground, confirm, budget
        self._refuter = Refuter(ground.query, budget)
        self._overshoots, self._first, self._last = overshoots, first, last
        self._waiting: list[tuple[Tensor, Tensor]] = []  # packed patterns and disjuncts
        self._unsettled = self._waits = 0
        self.gaps: list[Gap] = []  # of the boundaries that programs left open
        self.statistics = Counter({"lps": 0} if (last or first).lp else {})

    @property
    def open(self) -> int:
        """Number of boundaries that are not settled."""
        return self._unsettled + self._waits

    def meet(self, regions: Regions, disjunct: Tensor, region: Tensor) -> Counterexample | None:
        """Project onto, then settle, the pairs [pairs] of a disjunct and a region that may meet it.
        Returns a counterexample, if one is found."""
        found = self._project(regions, disjunct, region)
        if found is not None:
            return found
        if not (self._first.steps or self._first.lp):
            self._unsettled += len(disjunct)
            return None
        for some in parts(len(disjunct), self._ground.fit):
            goals, at = disjunct[some], region[some]
            found, closed = self._settle(regions, goals, at, self._first)
            if found is not None:
                return found
            if self._last is None:
                self._unsettled += int((~closed).sum())
            elif not bool(closed.all()):
                self._waiting.append((regions.words[at[~closed]], goals[~closed]))
                self._waits += len(self._waiting[-1][0])
        return None

    def settle_rest(self, *, above: int = 0) -> Counterexample | None:
        """Spend more on waiting boundaries, while there are more than `above`."""
        while self._last and self._waits > above and not self._budget.expired():
            words, disjunct = self._waiting.pop()
            self._waits -= len(words)
            every = torch.arange(len(words), device=words.device)
            found, closed = self._settle(self._ground.regions(words), disjunct, every, self._last)
            if found is not None:
                return found
            self._unsettled += len(words) - int(closed.sum())
        return None

    def _project(self, regions: Regions, disjunct: Tensor, region: Tensor) -> Counterexample | None:
        """Project the centre onto every row of the pairs, and a little beyond; offer the points."""
        query, system, forms = self._ground.query, self._ground.system, regions.forms
        pair, row = torch.nonzero(
            disjunct.unsqueeze(1) == query.disjunct.unsqueeze(0), as_tuple=True
        )
        at, domain = (row + system.neurons, region[pair]), system.domain
        points = project_onto_half_spaces(domain, forms.rows[at], forms.values[at])
        self.statistics["projections"] += len(points)
        beyond = [domain.project(torch.lerp(domain.center, points, s)) for s in self._overshoots]
        return self._offer(torch.cat(beyond))

    def _settle(
        self, regions: Regions, disjunct: Tensor, region: Tensor, effort: Effort
    ) -> tuple[Counterexample | None, Tensor]:
        """A counterexample in one of the pairs, or which pairs [pairs] are closed."""
        spaces = self._ground.spaces(regions, disjunct, region)
        if effort.steps:
            self.statistics["alternations"] += len(disjunct)
        domain, goals = self._ground.system.domain, len(self._ground.query.disjunct)

        def proves(polyhedron: int, multipliers: Tensor) -> bool:
            return self._refuter(regions.sign[:, region[polyhedron]], multipliers)

        settled = settle(domain, spaces, goals, self._offer, self._budget, effort, proves)
        self.gaps += settled.gaps
        if effort.lp:
            self.statistics["lps"] += settled.lps
        return settled.found, settled.closed

    def _offer(self, points: Tensor) -> Counterexample | None:
        query = self._ground.query
        how = self._first.how.offer
        return offer(query, self._confirm, points, query.network(points), how)
