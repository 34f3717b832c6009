"""Several worker processes on one search, and the main process that hands out work.

Each worker has a frontier of its own, and gives half of it away when another one is idle. The main
process keeps the time, decides about counterexamples and absorbs the reports; it computes nothing
itself while a worker is busy. It keeps a copy of all that a worker had open at its last report, and
returns it to the search if no later report comes: because the worker has died, failed or been
stopped, or time is up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from fgp_vnn.base.story import LOG, Stage, Teller, tell
from fgp_vnn.base.words import plural
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.parallel.messages import packed, unpacked
from fgp_vnn.engine.parallel.processes import Forks, Member, Staff
from fgp_vnn.engine.parallel.worker import Work
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.strategy import COMMON, Sharing


@dataclass(eq=False)
class _Task:
    """The part of a search that a worker has."""

    records: bytes  # its open records at its last report, packed
    count: int  # of its open records, by its last note
    lowest: float  # level among these
    bounded: int = 0  # records bounded since its last report
    giving: bool = False  # it was told to give half of them away, and has not done so yet


class Crew:
    """Worker processes that search parts of `search` while `work` runs."""

    def __init__(
        self,
        search: Divisible,
        jobs: int,
        budget: Budget,
        numbers: Sharing,
        staff: Staff | None = None,
        stalled: float = COMMON.stalled,
    ) -> None:
        self._search, self._budget, self._numbers = search, budget, numbers
        self._staff, self._stalled = staff or Forks(), stalled
        self._tasks: dict[Member, _Task | None] = {}
        self._restarts, self._jobs, self._hired = numbers.restarts, jobs, 0
        self._stopped: dict[Member, float] = {}  # since which moment
        # A quarter of the memory is for records that wait here, the rest for workers' batches.
        self._share = replace(budget, memory=max(1, 3 * (budget.memory // 4) // jobs))
        try:
            for _ in range(jobs):
                self._hire()
        except BaseException:  # too many processes, or too little memory for another
            self.close()
            raise

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers; their open records go back to the search."""
        for member in list(self._tasks):
            self._dismiss(member)
        self._count()

    def work(self, over: Callable[[], bool]) -> None:
        """Hand out records and receive results until `over` returns True, time is up, nothing is
        open, or no worker is left."""
        teller = Teller()
        while not over() and not self._budget.expired() and self._tasks:
            if teller.due():
                self._tell()
            self._hand_out()
            if not any(self._tasks.values()) and not self._search.open:
                break
            self._ask_for_parts()
            pause = min(self._numbers.pause, max(self._budget.left(), 0.0))
            if not any(self._tasks.values()):
                self._do_here(pause)  # until a worker has started
                pause = 0.0
            for member in self._staff.heard(list(self._tasks), pause):
                if member in self._tasks:
                    self._hear(member)
            self._leave_stopped()
            self._count()

    def gather(self, seconds: float) -> None:
        """Ask all busy workers for a report and wait for it at most this many seconds, so that
        their results are not lost when they end."""
        before = {member: task for member, task in self._tasks.items() if task is not None}
        for member in before:
            self._send(member, ("tell",))
        end = time.monotonic() + min(seconds, self._budget.left())
        while time.monotonic() < end:
            waiting = [m for m, task in before.items() if self._tasks.get(m) is task]
            if not waiting:
                break
            for member in self._staff.heard(waiting, self._numbers.pause):
                if member in self._tasks:
                    self._hear(member)
        self._count()

    def _do_here(self, seconds: float) -> None:
        """Continue the search in this process for this many seconds."""
        end = time.monotonic() + seconds
        self._search.run(lambda: self._search.enough() or time.monotonic() >= end)

    def _hire(self) -> None:
        self._hired += 1
        work = Work(self._search, self._share, self._numbers, self._hired)
        self._tasks[self._staff.hire(work, list(self._tasks), self._jobs + 1)] = None

    def _dismiss(self, member: Member) -> None:
        """End a worker; its open records go back to the search."""
        task = self._tasks.pop(member)
        self._stopped.pop(member, None)
        member.end()
        if task is not None:
            self._search.frontier.put(unpacked(task.records))

    def _count(self) -> None:
        """Update the search's counts of the records that workers have."""
        search, tasks = self._search, [task for task in self._tasks.values() if task]
        search.handed_out = sum(task.count for task in tasks)
        search.lowest_out = min((task.lowest for task in tasks), default=math.inf)
        search.bounded_out = sum(task.bounded for task in tasks)

    def _hand_out(self) -> None:
        """Give every idle worker a fair part of the records that are open here."""
        idle = [member for member, task in self._tasks.items() if task is None and member.ready]
        for left, member in zip(range(len(idle), 0, -1), idle, strict=True):
            if not len(self._search.frontier):
                break
            records = self._search.frontier.part(left)
            keys = records["key"]
            if len(keys):
                data = packed(records)
                self._tasks[member] = _Task(data, len(keys), float(keys.min()))
                self._send(member, ("work", data))

    def _ask_for_parts(self) -> None:
        """Ask the workers with the most open records to give half of them away: as many workers as
        are idle."""
        working = [(member, task) for member, task in self._tasks.items() if task is not None]
        idle = sum(member.ready for member, task in self._tasks.items() if task is None)
        wanted = idle - sum(task.giving for _, task in working)
        working.sort(key=lambda pair: -pair[1].count)
        for member, task in working:
            if wanted > 0 and not task.giving:
                task.giving = True
                wanted -= 1
                self._send(member, ("share",))

    def _send(self, member: Member, message: Any) -> None:
        try:
            member.send(message)
        except OSError:
            self._lose(member, "died")

    def _hear(self, member: Member) -> None:
        try:
            kind, *rest = member.receive()
        except (EOFError, OSError):
            self._lose(member, "died")
            return
        task = self._tasks[member]
        if kind == "failed":
            self._lose(member, f"failed: {rest[0]}")
        elif kind == "offer":
            self._judge(member, rest[0])
        elif kind == "note":
            assert task is not None
            task.bounded, task.count, task.lowest = rest
        elif kind == "report":
            assert task is not None
            records, count, lowest, given, report = rest
            self._search.absorb(report)
            self._search.frontier.put(given)
            giving = task.giving and not given
            self._tasks[member] = _Task(records, count, lowest, giving=giving) if count else None

    def _judge(self, member: Member, points: Tensor) -> None:
        """Check a worker's points, which may be counterexamples."""
        found = self._search.confirm(points)
        if found is not None:
            self._search.found = found
            return
        self._send(member, ("no",))

    def _leave_stopped(self) -> None:
        """Drop workers that were stopped a while ago."""
        for member in list(self._tasks):
            if not member.stopped:
                self._stopped.pop(member, None)
            elif time.monotonic() - self._stopped.setdefault(member, time.monotonic()) >= (
                self._stalled
            ):
                self._lose(member, "stopped")

    def _lose(self, member: Member, how: str) -> None:
        """Drop a worker; replace it if it did not fail and restarts are left."""
        if member not in self._tasks:
            return
        LOG.warning("a process of the search has %s", how.strip())
        self._dismiss(member)
        if self._restarts and not how.startswith("failed"):
            self._restarts -= 1
            try:
                self._hire()
            except OSError:
                self._restarts = 0

    def _tell(self) -> None:
        search = self._search
        step = f"split on {plural(len(self._tasks), 'process', 'processes')}"
        step += f", {search.bounded} bounded"
        tell(Stage(step, search.open, search.lowest, self._budget.known_left()))
