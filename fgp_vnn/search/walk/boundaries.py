"""Decision boundaries that the walk meets: projected onto, then settled or left open."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fgp_vnn.attack.descent import offer
from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import parts, regions_at_once
from fgp_vnn.query import Query
from fgp_vnn.regions.gaps import Gap
from fgp_vnn.regions.halfspaces import HalfSpaces, binding
from fgp_vnn.regions.refute import Refuter
from fgp_vnn.regions.settle import Effort, settle
from fgp_vnn.regions.triangular import RegionForms, Triangular

QUICK = 60  # steps spent on a boundary when it is met; the rest waits until the queue is empty
MEDIUM = 200  # where an LP comes after them
LONG = 4000
WAITING = 256  # boundaries that wait at most
OVERSHOOTS = (1.0, 1.0 + 1e-6, 1.0 + 1e-3)  # of a projection, to get across in float32


class Boundaries:
    """The boundaries of one walk; `open` counts those that nothing has settled."""

    def __init__(
        self,
        query: Query,
        confirm: Confirm,
        budget: Budget,
        *,
        alternate: bool,
        at_once: bool,
        lp: bool,
    ) -> None:
        self._query, self._confirm, self._budget = query, confirm, budget
        self._refuter = Refuter(query, budget)
        self._fit = regions_at_once(query.network, budget.at_once)  # cases at a time
        self._quick = Effort(QUICK)
        self._last = Effort((MEDIUM if lp else LONG) if alternate else 0, lp)
        self._at_once = at_once or not alternate  # there is nothing that is worth a wait
        self._waiting: list[tuple[Tensor, Tensor]] = []  # packed patterns and disjuncts
        self._unsettled = self._waits = 0
        self.gaps: list[Gap] = []  # of the boundaries that programs left open
        self.statistics: dict[str, int] = {"lps": 0} if lp else {}

    @property
    def open(self) -> int:
        return self._unsettled + self._waits

    def decide(
        self,
        system: Triangular,
        forms: RegionForms,
        sign: Tensor,
        words: Tensor,
        meets: Tensor,
    ) -> Counterexample | None:
        """Handle the rows that regions may meet, meets [outputs, regions]; the rest is safe."""
        pairs = self._pairs(meets)
        if not len(pairs):
            return None
        disjunct, region = pairs.unbind(1)
        found = self._project(system, forms, disjunct, region)
        if found is not None:
            return found
        effort = self._last if self._at_once else self._quick
        if effort == Effort(0):
            self._unsettled += len(pairs)
            return None
        for some in parts(len(pairs), self._fit):
            goals, at = disjunct[some], region[some]
            spaces = region_spaces(self._query, system, forms, sign, goals, at)
            found, closed = self._settle(system, spaces, sign[:, at], effort)
            if found is not None:
                return found
            if self._at_once:
                self._unsettled += int((~closed).sum())
            elif not bool(closed.all()):
                self._waiting.append((words[at[~closed]], goals[~closed]))
                self._waits += len(self._waiting[-1][0])
        return None

    def settle_rest(
        self,
        system: Triangular,
        pattern: Callable[[Tensor], Tensor],
        *,
        above: int = 0,
    ) -> Counterexample | None:
        """Spend more on the boundaries that wait, if they are more than `above`."""
        while self._waits > above and not self._budget.expired():
            words, disjunct = self._waiting.pop()
            self._waits -= len(words)
            on = pattern(words)
            forms = system.forms(on)
            region = torch.arange(len(words), device=words.device)
            sign = on * 2 - 1
            spaces = region_spaces(self._query, system, forms, sign, disjunct, region)
            found, closed = self._settle(system, spaces, sign, self._last)
            if found is not None:
                return found
            self._unsettled += len(words) - int(closed.sum())
        return None

    def _pairs(self, meets: Tensor) -> Tensor:
        """(disjunct, region) [pairs, 2] where all rows of the disjunct may be met."""
        query = self._query
        if query.disjuncts == len(query.disjunct):  # one row each, in order
            return torch.nonzero(meets)
        shape = (query.disjuncts, meets.shape[1])
        missed = torch.zeros(shape, dtype=torch.int32, device=meets.device)
        return torch.nonzero(missed.index_add(0, query.disjunct, (~meets).int()) == 0)

    def _project(
        self, system: Triangular, forms: RegionForms, disjunct: Tensor, region: Tensor
    ) -> Counterexample | None:
        """Project the centre onto every row of the pairs, and a little beyond."""
        pair, row = torch.nonzero(
            disjunct.unsqueeze(1) == self._query.disjunct.unsqueeze(0), as_tuple=True
        )
        at = row + system.neurons, region[pair]
        domain = system.domain
        points = domain.projection(forms.rows[at], forms.values[at])
        self._count("projections", len(points))
        beyond = [domain.project(torch.lerp(domain.center, points, s)) for s in OVERSHOOTS]
        return self._offer(torch.cat(beyond))

    def _settle(
        self,
        system: Triangular,
        spaces: HalfSpaces,
        sign: Tensor,
        effort: Effort,
    ) -> tuple[Counterexample | None, Tensor]:
        """Settle cases in the regions with these signs [neurons, cases]."""
        if effort.steps:
            self._count("alternations", len(spaces.values))
        goals = len(self._query.disjunct)

        def proves(case: int, multipliers: Tensor) -> bool:
            return self._refuter(sign[:, case], multipliers)

        settled = settle(system.domain, spaces, goals, self._offer, self._budget, effort, proves)
        self.gaps += settled.gaps
        if effort.lp:
            self._count("lps", settled.lps)
        return settled.found, settled.closed

    def _offer(self, points: Tensor) -> Counterexample | None:
        return offer(self._query, self._confirm, points, self._query.network(points))

    def _count(self, name: str, count: int) -> None:
        self.statistics[name] = self.statistics.get(name, 0) + count


def region_spaces(
    query: Query,
    system: Triangular,
    forms: RegionForms,
    sign: Tensor,
    disjunct: Tensor,
    region: Tensor,
) -> HalfSpaces:
    """The points of some of the regions that meet a disjunct each: disjunct, region [cases].

    A region has -s z <= 0, and g <= 0 for the rows of the disjunct in question.
    """
    mine = disjunct.unsqueeze(1) == query.disjunct.unsqueeze(0)  # [cases, outputs]
    weight = torch.cat([-sign[:, region].T, mine.to(sign.dtype)], 1)
    rows = forms.rows[:, region].transpose(0, 1) * weight.unsqueeze(-1)
    values = forms.values[:, region].T * weight
    return binding(system.domain, HalfSpaces(rows, values, system.error * weight.abs()))
