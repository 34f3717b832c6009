"""What a process does with the parts of a search that it is given."""

from __future__ import annotations

import os
import queue
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.threads import start_watching
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.parallel.messages import packed, unpacked
from fgp_vnn.search.divisible import Divisible


class Worker:
    """Copies of searches, and a line to the process that hands out their parts.

    It hears ("work", task, number of a search, records), ("no",) to points that it has offered, and
    ("back", task) if somebody is idle. It says ("offer", number of a search, points), ("done",
    records, report), and ("failed", why), after which it ends.
    """

    def __init__(self, connection: Connection, turn: float) -> None:
        self._connection, self._turn = connection, turn
        self._tasks: queue.SimpleQueue[tuple[int, int, Any]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._asked_back = -1  # a task whose records others wait for

    def serve(self, searches: Sequence[Divisible], budget: Budget) -> None:
        """Work on what is handed out, for as long as there is somebody who does so."""
        start_watching("parent", self._listen)
        try:
            copies = [
                search.copy(self._confirm(number), budget) for number, search in enumerate(searches)
            ]
            with torch.no_grad():
                while True:
                    task, number, records = self._tasks.get()
                    self._work(task, copies[number], records)
        except BaseException:
            self._say("failed", traceback.format_exc())

    def _work(self, task: int, search: Divisible, records: Any) -> None:
        """Go on from some records for a turn, of one batch at least."""
        search.frontier.put(records)
        begun, end = False, time.monotonic() + self._turn

        def until() -> bool:
            nonlocal begun
            asked = self._asked_back == task or time.monotonic() >= end
            stop = (begun and asked) or search.budget.expired()
            begun = True
            return stop

        search.run(until)
        left = search.frontier.pop(len(search.frontier)) if len(search.frontier) else {}
        self._say("done", left, search.report())

    def _confirm(self, number: int) -> Confirm:
        """What offers points to the first process, which ends this one if it accepts any."""

        def confirm(points: Tensor) -> None:
            self._say("offer", number, points)
            self._answers.get()

        return confirm

    def _say(self, *message: Any) -> None:
        try:
            self._connection.send_bytes(packed(message))
        except OSError:
            os._exit(0)

    def _listen(self) -> None:
        try:
            while True:
                kind, *rest = unpacked(self._connection.recv_bytes())
                if kind == "work":
                    self._tasks.put((rest[0], rest[1], rest[2]))
                elif kind == "no":
                    self._answers.put(None)
                elif kind == "back":
                    self._asked_back = rest[0]
        except (EOFError, OSError):
            os._exit(0)  # the first process is gone, and a computation cannot be asked to stop
