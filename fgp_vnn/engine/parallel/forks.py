"""Forks of this process as the workers of a search."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection, wait

from fgp_vnn.engine.parallel.processes import Member, Process, Staff, fork
from fgp_vnn.engine.parallel.worker import Work, Worker


class Forks(Staff):
    """Workers that are forks of this process."""

    def hire(self, work: Work, others: Sequence[Member], parts: int) -> Process:
        own = [other for other in others if isinstance(other, Process)]
        return fork(lambda connection: Worker(connection, work).serve(), own, parts)

    def heard(self, members: Sequence[Member], seconds: float) -> Sequence[Member]:
        lines = {m.connection: m for m in members if isinstance(m, Process)}
        return [lines[line] for line in wait(list(lines), seconds) if isinstance(line, Connection)]
