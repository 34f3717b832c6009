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
from fgp_vnn.engine.parallel.processes import can_fork
from fgp_vnn.engine.problem import Problem
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.search.forecast import Forecast, Left
from fgp_vnn.strategy import Sharing


def run_shared(problem: Problem, search: Divisible, rival: Divisible | None = None) -> Outcome:
    """Run a search of a problem to its end, or until its budget is spent and no end is near.

    A search that ends soon never starts a second process. Records that workers leave open, because
    they died or failed, are searched in this process. If there is a rival, a search that is to be
    resumed later, this one ends early if it is then expected to take longer than the rival.
    """
    numbers, forecast, near = problem.strategy.crew, Forecast(), math.inf
    other = math.inf if rival is None else rival.left.seconds
    look = time.monotonic() + problem.budget.share(numbers.look).left()
    watched = _watched(search, forecast, numbers.tell)
    may_share = problem.staff is not None or (problem.jobs > 1 and can_fork())

    def enough() -> bool:
        if watched():
            return True
        left = forecast.left()
        behind = left.seconds > other and time.monotonic() > look
        return behind or left.bounds > numbers.worse * near

    with problem.timed("search"):
        with ExitStack() as stack:
            crew = None
            while True:
                if may_share and crew is None:
                    search.run(_until_ripe(search, numbers, enough))
                    crew = _hired(problem, search, stack)
                if crew is not None:
                    crew.work(lambda: search.found is not None or enough())
                search.run(enough)
                search.left = left = forecast.left()
                if not _goes_on(problem, search, left, near):
                    break
                near = left.bounds
            if crew is not None and search.found is None:
                crew.gather(numbers.turn)
        outcome = search.outcome()
        if search.found is None and search.open:  # all have reported: the count is the verdict's
            over = "time is up" if problem.budget.expired() else f"{left}, its turn is over"
            _tell(problem, search, over)
        problem.log.ended(proved=outcome.status == "unsat", in_time=not problem.budget.expired())
    return outcome


def _hired(problem: Problem, search: Divisible, stack: ExitStack) -> Crew | None:
    """A crew for a search that is still open; None if it has ended or no worker can start."""
    if len(search.frontier) < 2 or search.found is not None or search.enough():
        return None
    try:
        crew = Crew(search, problem.jobs, problem.budget, problem.strategy.crew, problem.staff)
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


def _goes_on(problem: Problem, search: Divisible, left: Left, near: float) -> bool:
    """Whether to extend a search whose budget is spent: if it is expected to end soon, and sooner
    than at the last forecast. It gets twice the time that this is expected to take."""
    if search.found is not None or not search.open or problem.budget.expired():
        return False
    remaining = problem.budget.share(1.0).left()
    share = 2 * left.seconds / max(remaining, 1e-9)
    soon = share <= problem.strategy.crew.soon and left.bounds < near
    if soon:
        _tell(problem, search, f"{left}, it goes on")
        search.extend(problem.budget.share(share))
    return soon


def _tell(problem: Problem, search: Divisible, how: str) -> None:
    left = problem.budget.known_left()
    tell(Stage(f"split: {how}", search.open, left=left), logging.INFO)


def _watched(search: Divisible, forecast: Forecast, seconds: float) -> Callable[[], bool]:
    """A function that says whether a search has had enough; each call adds the search's counts to
    the forecast, which is logged every so many seconds."""
    last = time.monotonic()

    def enough() -> bool:
        nonlocal last
        forecast.add(search.bounded, search.open, search.lowest)
        if time.monotonic() - last >= seconds and LOG.isEnabledFor(logging.INFO):
            last = time.monotonic()
            tell(Stage(f"split: {forecast.left()}", search.open), logging.INFO)
        return search.enough()

    return enough
