"""A search by as many processes as pay."""

from __future__ import annotations

import time

from fgp_vnn.base.story import LOG
from fgp_vnn.engine.parallel.crew import Crew
from fgp_vnn.engine.parallel.processes import can_fork
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.strategy import Crew as Numbers


def run_shared(search: Divisible, jobs: int, numbers: Numbers) -> None:
    """Run a search until it has its answer or has had enough.

    What ends soon never has a second process; and what processes leave open, because they have died
    or failed, is done here.
    """
    if jobs > 1 and can_fork() and _worth_sharing(search, numbers.alone):
        try:
            with Crew([search], jobs, search.budget, numbers) as crew:
                crew.work(lambda: search.found is not None or search.enough())
        except OSError as error:
            LOG.warning("no more processes: %s", error)
    search.run(search.enough)


def _worth_sharing(search: Divisible, seconds: float) -> bool:
    """Begin a search in this process; whether much is still open after so many seconds."""
    end = time.monotonic() + seconds
    search.run(lambda: search.enough() or (time.monotonic() >= end and len(search.frontier) > 1))
    return len(search.frontier) > 1 and search.found is None and not search.enough()
