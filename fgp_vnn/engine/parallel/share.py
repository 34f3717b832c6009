"""A search by as many processes as pay, with a forecast of when it ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from fgp_vnn.base.story import LOG, Stage, tell
from fgp_vnn.engine.parallel.crew import Crew
from fgp_vnn.engine.parallel.processes import can_fork
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.search.forecast import Forecast
from fgp_vnn.strategy import Crew as Numbers


def run_shared(search: Divisible, jobs: int, numbers: Numbers, forecast: Forecast) -> None:
    """Run a search until it has its answer or has had enough.

    What ends soon never has a second process; and what processes leave open, because they have died
    or failed, is done here.
    """
    enough = _watched(search, forecast, numbers.tell)
    if jobs > 1 and can_fork() and _worth_sharing(search, numbers.alone, enough):
        try:
            with Crew([search], jobs, search.budget, numbers) as crew:
                crew.work(lambda: search.found is not None or enough())
        except OSError as error:
            LOG.warning("no more processes: %s", error)
    search.run(enough)


def _worth_sharing(
    search: Divisible, alone: tuple[float, float], enough: Callable[[], bool]
) -> bool:
    """Begin a search in this process; whether enough is open after so many seconds: a batch after
    the first of them, and two parts after the second."""
    begin = time.monotonic()

    def ripe() -> bool:
        spent, waiting = time.monotonic() - begin, len(search.frontier)
        return spent >= alone[0] and waiting > (1 if spent >= alone[1] else search.batch)

    search.run(lambda: enough() or ripe())
    return len(search.frontier) > 1 and search.found is None and not search.enough()


def _watched(search: Divisible, forecast: Forecast, seconds: float) -> Callable[[], bool]:
    """Whether a search has had enough; counts are taken for its forecast, which is told after so
    many seconds each."""
    last = time.monotonic()

    def enough() -> bool:
        nonlocal last
        forecast.add(search.bounded, search.open, search.lowest)
        if time.monotonic() - last >= seconds and LOG.isEnabledFor(logging.INFO):
            last = time.monotonic()
            tell(Stage(f"split: {forecast.left()}", search.open), logging.INFO)
        return search.enough()

    return enough
