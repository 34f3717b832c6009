"""A search of which several processes can do a part each.

What is open waits in one frontier. Records of it are handed out to a copy of the search, which
works on them for a while; what is then still open comes back, together with a report of what the
copy has found since its last one. Nothing is closed before its report is absorbed: whatever is lost
on the way is handed out again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.search.frontier import Frontier


class Divisible(ABC):
    """A search that has begun."""

    budget: Budget
    confirm: Confirm
    frontier: Frontier  # what is open, but for what is handed out
    batch: int  # records that are bounded at once
    found: Counterexample | None = None
    part: int = 0  # number of this copy, where several work on one search; 0: no copy
    handed_out: int = 0  # records that copies of the search have
    lowest_out: float = math.inf  # the lowest level of these
    bounded_out: int = 0  # that copies have bounded since their last reports

    @property
    @abstractmethod
    def bounded(self) -> int:
        """Bundles or boxes that were bounded."""

    @property
    @abstractmethod
    def closed(self) -> float:
        """The part of the tree that is done with, from 0 to 1."""

    @abstractmethod
    def run(self, until: Callable[[], bool]) -> None:
        """Split what is lowest until nothing is open, the answer is known or `until` says so."""

    @property
    def limit(self) -> float:
        """Bundles or boxes after which it gives up, as things are; infinity if it does not."""
        return math.inf

    @abstractmethod
    def enough(self) -> bool:
        """Whether the time or the work that was allowed is spent."""

    @abstractmethod
    def extend(self, budget: Budget) -> None:
        """Continue with another budget, and without a limit on the work."""

    @property
    def open(self) -> int:
        """Bundles or boxes that are open, here or elsewhere."""
        return len(self.frontier) + self.handed_out

    @property
    def lowest(self) -> float:
        """The lowest level of all that is open; infinity where nothing is."""
        return min(self.frontier.lowest, self.lowest_out)

    @abstractmethod
    def copy(self, confirm: Confirm, budget: Budget, part: int) -> Divisible:
        """The same search with nothing open and nothing found; what it draws at random depends on
        its number among the copies, from 1 on."""

    @abstractmethod
    def report(self) -> Any:
        """What was found since the last report, but for what is open and for counterexamples."""

    @abstractmethod
    def absorb(self, report: Any) -> None:
        """Add a report of a copy."""

    @abstractmethod
    def outcome(self) -> Outcome:
        """The result of the search."""
