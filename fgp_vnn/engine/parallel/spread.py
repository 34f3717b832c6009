"""Independent pieces of work, done in parallel by forks of this process.

A function that spreads several batches of pieces, one after another, gets forks that last as long
as it does: each runs the same function, does its part of each batch, and then receives the results
of all parts. For batches from before the fork, it uses the results that were already there. While
there are forks, this process computes with one thread, as they do.
"""

from __future__ import annotations

import math
import os
import queue
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.spread import Led, Piece, Result, Spread
from fgp_vnn.base.story import LOG
from fgp_vnn.base.threads import start_watching
from fgp_vnn.engine.parallel.messages import packed, unpacked
from fgp_vnn.engine.parallel.processes import Process, fork, one_thread
from fgp_vnn.strategy import COMMON


class _Done(NamedTuple):
    """The results of a batch."""

    results: list[Any]
    rate: float  # seconds per item of a piece


class _Measured(Spread):
    """Shares out batches that are expected to take long enough, by the rate of the last batch."""

    def __init__(self, ways: int, least_work: float, rate: float) -> None:
        self.ways = ways
        self._least_work = least_work  # seconds of a part for which a new process pays off
        self._rate = rate  # seconds per item of a piece, in the last batch

    def fair(self, count: int, most: int) -> int:
        return super().fair(count, most) if self._pays(count) else max(1, min(most, count))

    def _pays(self, size: int) -> bool:
        """Whether this many items are worth more than one process."""
        least = self._least_work * (COMMON.running if self._running else 1.0)
        return size > 0 and self._rate * size / self.ways >= least

    @property
    @abstractmethod
    def _running(self) -> bool:
        """Whether the other processes run already."""

    def _shares(self, pieces: Sequence[Any]) -> int:
        """Number n of parts in which the pieces are done; each part has every n-th piece."""
        return min(self.ways, len(pieces)) if self._pays(_size(pieces)) else 1


class ForkedSpread(_Measured):
    """Does the first part of the pieces in this process, and each other part in a fork.

    If a fork dies, fails or is stopped, its part is done in this process, so that an error is
    raised here.
    """

    def __init__(
        self,
        ways: int,
        least_work: float,
        stalled: float = COMMON.stalled,
        *,
        rate: float = math.inf,
    ) -> None:
        super().__init__(ways, least_work, rate)
        self._stalled = stalled
        self._led: Callable[[_Copy, Connection], None] | None = None  # what a fork runs
        self._lasts = False  # whether forks receive the results, to continue
        self._first = rate  # rate when `lead` was called
        self._past: list[_Done] = []  # batches of `lead` from before the first fork
        self._batches = 0  # batches done since `lead` was called
        self._processes: list[Process] = []
        self._beside = ExitStack()  # what holds while there are forks

    @property
    def _running(self) -> bool:
        return bool(self._processes)

    def lead(self, work: Callable[[Spread], Led]) -> Led:
        return self._lead(work, lasts=True)

    def _lead(self, work: Callable[[Spread], Led], *, lasts: bool) -> Led:
        self._led, self._first, self._lasts = partial(_follow, work), self._rate, lasts
        self._past, self._batches = [], 0
        try:
            return work(self)
        finally:
            self._led, self._past = None, []
            self._end()

    def __call__(
        self, work: Callable[[Piece], Result], pieces: Sequence[Piece]
    ) -> Iterable[Result]:
        if self._led is None:  # forks for this batch alone
            return self._lead(lambda spread: spread(work, pieces), lasts=False)
        ways, rate = self._shares(pieces), self._rate
        results: dict[int, Result] = {}
        begin = time.monotonic()
        try:
            if ways > 1 and not self._processes:
                self._begin(self._led, self.ways if self._lasts else ways)
            results |= {i: work(pieces[i]) for i in range(0, len(pieces), ways)}
            spent = time.monotonic() - begin
            rate = spent * ways / max(_size(pieces), 1)
            for way, process in zip(range(1, ways), self._processes, strict=False):
                said = process.awaited(COMMON.patience * spent + self._stalled)
                numbers = range(way, len(pieces), ways)
                results |= zip(numbers, self._checked(said, pieces, len(numbers)), strict=True)
        except (EOFError, OSError) as error:
            self._lose(error)
        self._rate = rate
        found = [results[i] if i in results else work(piece) for i, piece in enumerate(pieces)]
        self._tell(_Done(found, rate))
        return found

    def _begin(self, led: Callable[[_Copy, Connection], None], ways: int) -> None:
        """Fork the processes for all batches from now on."""
        for way in range(1, ways):
            copy = _Copy(self.ways, self._least_work, self._first, way, self._past)
            self._processes.append(fork(partial(led, copy), self._processes, self.ways))
        self._beside.enter_context(one_thread())
        self._past = []

    def _checked(self, said: Any, pieces: Sequence[Any], count: int) -> Sequence[Any]:
        """The results of a fork; raises OSError unless it had the same pieces and did its part."""
        batch, asked, found = said
        if batch != self._batches or not _equal(asked, pieces) or len(found) != count:
            raise OSError("it was asked for other pieces")
        return list(found)

    def _tell(self, done: _Done) -> None:
        """Send the results of a batch to the lasting forks, so that they continue."""
        if self._led is None or not self._lasts:
            return
        self._batches += 1
        if not self._processes:
            self._past.append(done)
            return
        try:
            data = packed(done)
            for process in self._processes:
                process.connection.send_bytes(data)
        except OSError as error:
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        """Continue without lasting forks: later batches start processes of their own."""
        LOG.warning("a process is left out: %s", error or "it has ended early")
        self._led = None
        self._end()

    def _end(self) -> None:
        for process in self._processes:
            process.end()
        self._processes = []
        self._beside.close()


class _Copy(_Measured):
    """The spread in a fork: does one part of each batch of a function that the main process runs
    too. After the last batch it waits until that process ends it."""

    def __init__(
        self, ways: int, least_work: float, rate: float, part: int, past: Sequence[_Done]
    ) -> None:
        super().__init__(ways, least_work, rate)
        self._part, self._past, self._batch = part, past, 0
        self._heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.line: Connection | None = None  # to the main process

    @property
    def _running(self) -> bool:
        # As in the main process, which cuts the batch `len(past)` into pieces before it forks.
        return self._batch > len(self._past)

    def __call__(
        self, work: Callable[[Piece], Result], pieces: Sequence[Piece]
    ) -> Iterable[Result]:
        assert self.line is not None
        if self._batch < len(self._past):
            done = self._past[self._batch]
        else:
            ways = self._shares(pieces)
            if self._part < ways:
                own = pieces[self._part :: ways]
                said = self._batch, list(pieces), [work(piece) for piece in own]
                self.line.send_bytes(packed(said))
            done = unpacked(self._heard.get())
        self._batch, self._rate = self._batch + 1, done.rate
        return done.results

    def listen(self, line: Connection) -> None:
        """Receive messages from the main process; end when it ends."""
        try:
            while True:
                self._heard.put(line.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)


def _follow(work: Callable[[Spread], Any], copy: _Copy, connection: Connection) -> None:
    copy.line = connection
    start_watching("parent", copy.listen, connection)
    work(copy)


def _size(pieces: Sequence[Any]) -> int:
    return sum(len(piece) for piece in pieces)


def _equal(some: Sequence[Any], others: Sequence[Any]) -> bool:
    pairs = list(zip(some, others, strict=False))
    same = all(torch.equal(a, b) if isinstance(a, Tensor) else a == b for a, b in pairs)
    return len(some) == len(others) and same
