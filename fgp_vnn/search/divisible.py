"""A search that several processes can share.

Open bundles or boxes wait as records in one frontier. Some are handed out to a copy of the search,
which works on them for a while; those still open come back, with a report of what the copy has
found since its last report. A record counts as closed only once that report is absorbed: if a copy
is lost, its records are handed out again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.search.forecast import Left
from fgp_vnn.search.frontier import Frontier


class Divisible(ABC):
    """A search that has begun."""

    budget: Budget
    confirm: Confirm
    frontier: Frontier  # open records, except those handed out
    batch: int  # records that are bounded at once
    found: Counterexample | None = None
    part: int = 0  # number of this copy, where several work on one search; 0: no copy
    handed_out: int = 0  # records handed out to copies of the search
    lowest_out: float = math.inf  # the lowest level of these
    bounded_out: int = 0  # records that copies have bounded since their last reports
    left: Left = Left(math.inf, math.inf)  # the last forecast of its work

    @property
    @abstractmethod
    def bounded(self) -> int:
        """Number of bundles or boxes bounded so far."""

    @property
    @abstractmethod
    def closed(self) -> float:
        """The part of the tree that is closed, from 0 to 1."""

    @abstractmethod
    def run(self, until: Callable[[], bool]) -> None:
        """Split the lowest records until none is open, the answer is known or `until` is true."""

    @property
    def limit(self) -> float:
        """Number of bundles or boxes after which it currently gives up; infinity if it does not."""
        return math.inf

    @abstractmethod
    def enough(self) -> bool:
        """Whether the allowed time or work is spent."""

    @abstractmethod
    def extend(self, budget: Budget) -> None:
        """Continue with another budget, and without a limit on the work."""

    @property
    def open(self) -> int:
        """Number of open bundles or boxes, here and in copies."""
        return len(self.frontier) + self.handed_out

    @property
    def lowest(self) -> float:
        """The lowest level of all open records; infinity if there are none."""
        return min(self.frontier.lowest, self.lowest_out)

    @abstractmethod
    def copy(self, confirm: Confirm, budget: Budget, part: int) -> Divisible:
        """The same search with nothing open and nothing found. Its random numbers depend on `part`,
        its number among the copies, from 1 on."""

    @abstractmethod
    def report(self) -> Any:
        """Results since the last report, without open records and counterexamples."""

    @abstractmethod
    def absorb(self, report: Any) -> None:
        """Add the report of a copy."""

    @abstractmethod
    def outcome(self) -> Outcome:
        """The result of the search."""
