"""Independent pieces of work, done by copies of this process at the same time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from multiprocessing.connection import Connection

from fgp_vnn.base.spread import Piece, Result, Spread
from fgp_vnn.base.story import LOG
from fgp_vnn.base.threads import start_watching
from fgp_vnn.engine.parallel.messages import packed
from fgp_vnn.engine.parallel.processes import Process, end_with, fork
from fgp_vnn.strategy import COMMON


class ForkedSpread(Spread):
    """Does the first part of the pieces here, and each other part in a process of its own.

    What a process that dies, fails or is stopped leaves undone is done here, so that an error is
    raised here.
    """

    def __init__(
        self,
        ways: int,
        worth: float,
        stalled: float = COMMON.stalled,
        *,
        rate: float = math.inf,
    ) -> None:
        self.ways, self._stalled = ways, stalled
        self._worth = worth  # seconds of a part from which on a process pays
        self._rate = rate  # seconds of one thing of a piece, the last time

    def fair(self, count: int, most: int) -> int:
        return super().fair(count, most) if self._pays(count) else max(1, min(most, count))

    def _pays(self, size: int) -> bool:
        """Whether so many things are worth more than one process."""
        return size > 0 and self._rate * size / self.ways >= self._worth

    def __call__(
        self, work: Callable[[Piece], Result], pieces: Sequence[Piece]
    ) -> Iterable[Result]:
        begin, size = time.monotonic(), sum(len(piece) for piece in pieces)
        ways = min(self.ways, len(pieces)) if self._pays(size) else 1
        results: dict[int, Result] = {}
        processes: list[Process] = []
        try:
            for way in range(1, ways):
                part = [pieces[i] for i in range(way, len(pieces), ways)]
                processes.append(fork(partial(_do, work, part), processes, ways))
            results |= {i: work(pieces[i]) for i in range(0, len(pieces), ways)}
            spent = time.monotonic() - begin
            self._rate = spent * ways / max(size, 1)
            for way, process in enumerate(processes, 1):
                found = process.awaited(COMMON.patience * spent + self._stalled)
                results |= zip(range(way, len(pieces), ways), found, strict=True)
        except (EOFError, OSError) as error:
            LOG.warning("a process has died or stopped: %s", error)
        finally:
            for process in processes:
                process.end()
        return [results[i] if i in results else work(piece) for i, piece in enumerate(pieces)]


def _do(work: Callable[[Piece], Result], pieces: Sequence[Piece], connection: Connection) -> None:
    start_watching("parent", end_with, connection)
    connection.send_bytes(packed([work(piece) for piece in pieces]))
    time.sleep(60)  # until the first process has read it, and ends this one
