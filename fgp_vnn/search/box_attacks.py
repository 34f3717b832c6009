"""Attacks between batches of boxes, from the boxes that are open.

A best-first search visits its lowest boxes. Where bounds are loose, they say little about where a
counterexample is: it may lie in a box of middling level that is not visited for a long time. So
each attack starts in boxes drawn at random among all open ones. Nor does one step length suit all
networks: each start draws its own, at most the size of the whole domain.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from fgp_vnn.attack.descent import descend
from fgp_vnn.base.draws import Draws
from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import points_at_once
from fgp_vnn.query import Query
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.strategy import Attack


@dataclass(eq=False)
class BoxAttacks:
    """Attacks after every so many boxes, and less often the more boxes have been bounded."""

    query: Query
    confirm: Confirm
    numbers: Attack
    part: int = 0  # number of this copy of the search; each draws different random numbers
    since: int = 0  # boxes bounded since the last attack
    before: int = 0  # and before it
    draws: Draws = field(init=False)

    def __post_init__(self) -> None:
        self.draws = Draws(self.numbers.in_boxes.seed, self.part)

    def after(self, boxes: int, open_: Frontier, budget: Budget) -> Counterexample | None:
        """Count `boxes` more bounded boxes and attack if it is time; the counterexample found."""
        self.since += boxes
        pause = max(self.numbers.box_pause, self.numbers.box_part * self.before)
        if self.since < pause or not len(open_):
            return None
        self.before, self.since = self.before + self.since, 0
        begin, reach = self._starts(open_, budget)
        return descend(self.query, self.confirm, budget, self.numbers.in_boxes, begin, reach)

    def _starts(self, open_: Frontier, budget: Budget) -> tuple[Tensor, Tensor]:
        """Random points [points, inputs] of open boxes, as many for each disjunct, and a factor
        [points, 1] of the step length from each."""
        query, numbers = self.query, self.numbers
        most = min(numbers.box_starts, points_at_once(query.network, budget.at_once))
        count = max(most // query.disjuncts, 1) * query.disjuncts
        boxes = open_.everything()
        lower, upper = boxes["lower"], boxes["upper"]
        chosen = self.draws.indices(len(open_), count).to(lower.device)
        drawn = self.draws.uniform(count, query.network.inputs + 1).to(lower)
        lower, upper = lower[chosen], upper[chosen]
        return lower + drawn[:, 1:] * (upper - lower), numbers.box_reach ** drawn[:, :1]
