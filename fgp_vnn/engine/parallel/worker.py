"""The work of a worker process on the parts of a search that it is given."""

from __future__ import annotations

import os
import queue
import time
import traceback
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from fgp_vnn.base.threads import start_watching
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.parallel.messages import packed, unpacked
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.strategy import Sharing


class Line(Protocol):
    """One end of a connection to another process."""

    def send_bytes(self, data: bytes, /) -> None:
        """Send a message; raises OSError if the other process is gone."""

    def recv_bytes(self) -> bytes:
        """The next message; raises EOFError or OSError if the other process is gone."""


class Work(NamedTuple):
    """What a worker process is started with."""

    search: Divisible  # of which the worker makes a copy
    budget: Budget
    numbers: Sharing
    number: int  # of the copy


class Worker:
    """A copy of a search, and a line to the main process, which hands out its parts.

    It receives ("work", packed records), ("share",) if another worker is idle, ("tell",) if a
    report is wanted, and ("no",) if the points that it offered are rejected. It sends ("offer",
    points), ("note", bounded since its last report, open, lowest level), ("report", packed records
    that it keeps, their number, their lowest level, records that it gives away, report), and
    ("failed", why), after which it ends. After a report that keeps no records, it waits for work.
    """

    def __init__(self, line: Line, work: Work) -> None:
        self._line, self._given, self._numbers = line, work, work.numbers
        self._tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._other_idle = False  # whether another worker is idle
        self._wanted = False  # whether a report is wanted

    def serve(self) -> None:
        """Work on the records that the main process hands out, until it ends."""
        start_watching("parent", self._listen)
        try:
            search, budget, _, number = self._given
            copy = search.copy(self._confirm, budget, number)
            with torch.no_grad():
                while True:
                    self._work(copy, unpacked(self._tasks.get()))
        except BaseException:
            self._say("failed", traceback.format_exc())

    def _work(self, search: Divisible, records: Any) -> None:
        """Search from some records until nothing is open; give half of the open records away when
        another worker is idle, and report all of them from time to time."""
        search.frontier.put(records)
        begun, noted = False, time.monotonic()
        due = noted + self._numbers.turn

        def until() -> bool:
            nonlocal begun, noted, due
            now, count = time.monotonic(), len(search.frontier)
            if self._other_idle and count > 1:
                self._other_idle = False
                self._report(search, 2)
            elif self._wanted or (begun and now >= due):
                self._wanted = False
                self._report(search)
                spent = time.monotonic() - now
                due = now + max(self._numbers.turn, spent / self._numbers.telling)
            elif begun and now >= noted + self._numbers.pause:
                noted = now
                self._say("note", search.bounded, count, search.frontier.lowest)
            begun = True
            return search.budget.expired()

        search.run(until)
        self._report(search)
        while search.budget.expired() and len(search.frontier):
            time.sleep(1.0)  # until the main process, which keeps the time, ends this one

    def _report(self, search: Divisible, ways: int = 0) -> None:
        """Report the results since the last report and the open records that are kept; with `ways`,
        give one of that many parts of the open records away."""
        frontier = search.frontier
        given = frontier.part(ways) if ways else {}
        count, lowest = len(frontier), frontier.lowest
        kept = packed(frontier.everything()) if count else b""
        self._say("report", kept, count, lowest, given, search.report())

    def _confirm(self, points: Tensor) -> None:
        """Offer points to the main process, which ends this one if it accepts a point."""
        self._say("offer", points)
        self._answers.get()

    def _say(self, *message: Any) -> None:
        try:
            self._line.send_bytes(packed(message))
        except OSError:
            os._exit(0)

    def _listen(self) -> None:
        try:
            while True:
                kind, *rest = unpacked(self._line.recv_bytes())
                if kind == "work":
                    self._other_idle = self._wanted = False
                    self._tasks.put(rest[0])
                elif kind == "no":
                    self._answers.put(None)
                elif kind == "share":
                    self._other_idle = True
                elif kind == "tell":
                    self._wanted = True
        except (EOFError, OSError):
            os._exit(0)  # the main process is gone, and a running computation cannot be stopped
