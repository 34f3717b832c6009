"""Runs a search on as many processes as pay off, with a forecast of when it ends."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import ExitStack

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.base.story import LOG, Stage, tell
from fgp_vnn.engine.parallel.crew import Crew
from fgp_vnn.engine.parallel.processes import can_fork, one_thread
from fgp_vnn.engine.problem import Problem
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.search.forecast import Forecast, Left
from fgp_vnn.strategy import Sharing


def run_shared(problem: Problem, search: Divisible, rival: Divisible | None = None) -> Outcome:
    """Run a search of a problem to its end, or until its budget is spent and no end is near.

    A search that ends soon never starts a second process. Records that workers leave open, because
    they died or failed, are searched in this process. A rival is a search that is resumed
    afterwards: after a first look, this search stops if it is expected to take longer than the
    rival. While no end of it is in sight, it stops only if the rival is expected to end in time.
    """
    numbers, turn = problem.strategy.crew, _Turn(problem, search, rival)
    may_share = problem.staff is not None or (problem.jobs > 1 and can_fork())
    with problem.timed("search"):
        with ExitStack() as stack:
            crew = None
            while True:
                if may_share and crew is None:
                    search.run(_until_ripe(search, numbers, turn.over))
                    crew = None if turn.stopped else _hired(problem, search, stack)
                if crew is not None:
                    crew.work(lambda: search.found is not None or turn.over())
                search.run(turn.over)
                if not turn.extend():
                    break
            if crew is not None and search.found is None:
                crew.gather(numbers.turn)
        outcome = search.outcome()
        if search.found is None and search.open:  # all have reported: the count is the verdict's
            ended = problem.budget.expired()
            turn.tell("time is up" if ended else f"{search.left}, its turn is over")
        problem.log.ended(proved=outcome.status == "unsat", in_time=not problem.budget.expired())
    return outcome


class _Turn:
    """The turn of a search, and the forecasts by which it is stopped or extended."""

    def __init__(self, problem: Problem, search: Divisible, rival: Divisible | None) -> None:
        self.stopped = False  # before its budget was spent
        self._problem, self._search, self._numbers = problem, search, problem.strategy.crew
        self._rival_seconds = math.inf if rival is None else rival.left.seconds
        self._look = time.monotonic() + problem.budget.share(self._numbers.look).left()
        self._forecast, self._near = Forecast(), math.inf
        self._begun = self._told = time.monotonic()
        self._before = search.bounded

    def over(self) -> bool:
        """Whether the search has had enough; each call adds its counts to the forecast, which is
        logged every so many seconds."""
        search, numbers, now = self._search, self._numbers, time.monotonic()
        self._forecast.add(search.bounded, search.open, search.lowest)
        left = self._forecast.left()
        if now - self._told >= numbers.tell and LOG.isEnabledFor(logging.INFO):
            self._told = now
            tell(Stage(f"split: {left}", search.open), logging.INFO)
        moved_away = left.bounds > numbers.worse * self._near
        # Without an end in sight, only a rival that ends in time is the better choice.
        most = left.seconds if left.in_sight else self._problem.budget.share(1.0).left()
        behind = now > self._look and self._rival_seconds < most
        self.stopped = self.stopped or moved_away or behind or self._doubtful(left)
        return self.stopped or search.enough()

    def _doubtful(self, left: Left) -> bool:
        """Whether a search with a limit on its work is not expected to end within it, nor soon
        after, and what is left of the limit takes more than a moment."""
        search, limit = self._search, self._search.limit
        least, times, moment = self._numbers.doubt
        if not least <= search.bounded < limit or left.bounds <= times * limit:
            return False
        each = (time.monotonic() - self._begun) / max(search.bounded - self._before, 1)
        return (limit - search.bounded) * each > moment * self._problem.spent

    def extend(self) -> bool:
        """Extend a search whose budget is spent, if it is expected to end soon, and sooner than at
        the last forecast. It gets twice the time that this is expected to take. Returns whether it
        has been extended."""
        problem, search = self._problem, self._search
        search.left = left = self._forecast.left()
        done = search.found is not None or not search.open or problem.budget.expired()
        if done or self.stopped:
            return False
        share = 2 * left.seconds / max(problem.budget.share(1.0).left(), 1e-9)
        soon = share <= self._numbers.soon and left.bounds < self._near
        if soon:
            self.tell(f"{left}, it goes on")
            search.extend(problem.budget.share(share))
            self._near = left.bounds
        return soon

    def tell(self, how: str) -> None:
        """Report a change of the search, and how many of its parts are open."""
        left = self._problem.budget.known_left()
        tell(Stage(f"split: {how}", self._search.open, left=left), logging.INFO)


def _hired(problem: Problem, search: Divisible, stack: ExitStack) -> Crew | None:
    """A crew for a search that is still open; None if it has ended or no worker can start."""
    if len(search.frontier) < 2 or search.found is not None or search.enough():
        return None
    try:
        crew = Crew(search, problem.jobs, problem.budget, problem.strategy.crew, problem.staff)
        if problem.staff is None:
            stack.enter_context(one_thread())
        return stack.enter_context(crew)
    except OSError as error:
        LOG.warning("no more processes: %s", error)
        return None


def _until_ripe(
    search: Divisible, numbers: Sharing, enough: Callable[[], bool]
) -> Callable[[], bool]:
    """A function that says whether a search has had enough or is worth sharing: after some seconds
    if more than a batch is open, somewhat later if more than one record is; never if the search is
    about to give up."""
    begin, before = time.monotonic(), search.bounded
    early, late = numbers.alone

    def ripe() -> bool:
        spent, waiting = time.monotonic() - begin, len(search.frontier)
        if spent < early or waiting <= (1 if spent >= late else search.batch):
            return False
        rate = spent / max(search.bounded - before, 1)
        return (search.limit - search.bounded) * rate >= numbers.ending

    return lambda: enough() or ripe()
