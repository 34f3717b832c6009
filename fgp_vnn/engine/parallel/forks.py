"""Forks of this process as the workers of a search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection, wait

from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.parallel.processes import Member, Process, Staff, fork
from fgp_vnn.engine.parallel.worker import Worker
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.strategy import Sharing


class Forks(Staff):
    """Workers that are forks of this process."""

    def hire(
        self,
        search: Divisible,
        budget: Budget,
        numbers: Sharing,
        others: Sequence[Member],
        parts: int,
        number: int,
    ) -> Process:
        own = [other for other in others if isinstance(other, Process)]
        return fork(partial(_serve, search, budget, numbers, number), own, parts)

    def heard(self, members: Sequence[Member], seconds: float) -> Sequence[Member]:
        lines = {m.connection: m for m in members if isinstance(m, Process)}
        return [lines[line] for line in wait(list(lines), seconds) if isinstance(line, Connection)]


def _serve(
    search: Divisible, budget: Budget, numbers: Sharing, number: int, connection: Connection
) -> None:
    Worker(connection, numbers).serve(search, budget, number)
