"""Several processes that work on the same searches, and the one that hands out their parts.

This process keeps what is open, decides about counterexamples and absorbs what comes back; it
computes nothing itself as long as somebody works. A copy of all that is handed out stays here until
its report is in, and goes back to its search if that never comes: because the process has died, has
failed, or time is up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection, wait

from torch import Tensor

from fgp_vnn.base.story import LOG, Stage, Teller, tell
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.parallel.processes import Process, fork
from fgp_vnn.engine.parallel.worker import Worker
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.strategy import Sharing

Records = dict[str, Tensor]


@dataclass(eq=False)
class _Task:
    """Records of a search that a process has."""

    number: int
    search: int
    records: Records
    asked_back: bool = False


class Crew:
    """Processes that work on searches until one has its answer, or all have had enough."""

    def __init__(
        self, searches: Sequence[Divisible], jobs: int, budget: Budget, numbers: Sharing
    ) -> None:
        self._searches, self._budget, self._numbers = searches, budget, numbers
        self._tasks: dict[Process, _Task | None] = {}
        self._given, self._restarts, self._jobs = 0, numbers.restarts, jobs
        # A quarter is for what waits here, as ever; the rest is for batches.
        self._share = replace(budget, memory=max(1, 3 * (budget.memory // 4) // jobs))
        try:
            for _ in range(jobs):
                self._hire()
        except OSError:
            self.close()  # too many processes, or too little memory for one more
            raise

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes; what they have goes back to their searches."""
        for process in list(self._tasks):
            self._dismiss(process)
        self._note_levels()

    def work(self, over: Callable[[], bool]) -> None:
        """Hand out, and take back, until `over` says so, time is up, nothing is open, or nobody is
        left to work."""
        teller = Teller()
        while not over() and not self._budget.expired() and self._tasks:
            if teller.due():
                self._tell()
            self._hand_out()
            if not any(self._tasks.values()):
                break
            if len(self._idle()):
                self._ask_back()
            pause = min(self._numbers.pause, max(self._budget.left(), 0.0))
            for process in list(self._heard(pause)):
                self._hear(process)

    def _hire(self) -> None:
        worker = partial(_serve, self._searches, self._share, self._numbers.turn)
        self._tasks[fork(worker, list(self._tasks), self._jobs + 1)] = None

    def _dismiss(self, process: Process) -> None:
        """End a process; what it has goes back to its search."""
        task = self._tasks.pop(process)
        process.end()
        if task is not None:
            self._returned(task, task.records)

    def _returned(self, task: _Task, records: Records) -> None:
        search = self._searches[task.search]
        search.handed_out -= len(task.records["key"])
        search.frontier.put(records)

    def _idle(self) -> list[Process]:
        return [process for process, task in self._tasks.items() if task is None]

    def _hand_out(self) -> None:
        """Give every idle process a fair part of what is open, at most a batch."""
        idle = self._idle()
        for left, process in zip(range(len(idle), 0, -1), idle, strict=True):
            open_ = [n for n, search in enumerate(self._searches) if len(search.frontier)]
            if not open_:
                break
            number = open_[0]
            search = self._searches[number]
            count = min(max(search.batch // 2, 1), -(-len(search.frontier) // left))
            self._give(process, number, search.frontier.pop(count))
        self._note_levels()

    def _note_levels(self) -> None:
        """Let each search know the lowest level of what is handed out."""
        tasks = [task for task in self._tasks.values() if task is not None]
        for number, search in enumerate(self._searches):
            own = (float(task.records["key"].min()) for task in tasks if task.search == number)
            search.lowest_out = min(own, default=math.inf)

    def _give(self, process: Process, number: int, records: Records) -> None:
        self._given += 1
        task = _Task(self._given, number, records)
        self._tasks[process] = task
        self._searches[number].handed_out += len(records["key"])
        try:
            process.send(("work", task.number, number, records))
        except OSError:
            self._lose(process, "died")

    def _ask_back(self) -> None:
        """Let those who work hand back what they have after their next batch: others are idle."""
        for process, task in list(self._tasks.items()):
            if task is not None and not task.asked_back:
                task.asked_back = True
                try:
                    process.send(("back", task.number))
                except OSError:
                    self._lose(process, "died")

    def _heard(self, seconds: float) -> Iterator[Process]:
        """The processes that have something to say, after at most so many seconds."""
        ready = set(wait([process.connection for process in self._tasks], seconds))
        return (process for process in list(self._tasks) if process.connection in ready)

    def _hear(self, process: Process) -> None:
        try:
            kind, *rest = process.receive()
        except (EOFError, OSError):
            self._lose(process, "died")
            return
        if kind == "offer":
            self._judge(process, *rest)
        elif kind == "done":
            task = self._tasks[process]
            assert task is not None
            records, report = rest
            self._searches[task.search].absorb(report)
            self._returned(task, records)
            self._tasks[process] = None
        else:
            self._lose(process, f"failed: {rest[0]}")

    def _judge(self, process: Process, number: int, points: Tensor) -> None:
        """Check points that may be counterexamples."""
        search = self._searches[number]
        found = search.confirm(points)
        if found is not None:
            search.found = found
            return
        try:
            process.send(("no",))
        except OSError:
            self._lose(process, "died")

    def _lose(self, process: Process, how: str) -> None:
        """Continue without a process, or replace it by a new one."""
        LOG.warning("a process of the search has %s", how.strip())
        self._dismiss(process)
        if self._restarts and not how.startswith("failed"):
            self._restarts -= 1
            try:
                self._hire()
            except OSError:
                self._restarts = 0

    def _tell(self) -> None:
        left = self._budget.left()
        for search in self._searches:
            step = f"split on {len(self._tasks)} processes, {search.bounded} bounded"
            known = None if left == float("inf") else left
            tell(Stage(step, search.open, search.lowest, known))


def _serve(
    searches: Sequence[Divisible], budget: Budget, turn: float, connection: Connection
) -> None:
    Worker(connection, turn).serve(searches, budget)
