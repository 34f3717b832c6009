"""Run several solvers at once, each with a thread that waits for its answers."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Sequence
from typing import NamedTuple, Protocol

from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.record import Answer


class Solver(Protocol):
    """Answers one instance at a time; a failure is the answer `error`, not an exception."""

    def run(self, instance: Instance) -> Answer:
        """Return the answer, at the latest a while after the instance's time limit."""

    def stop(self) -> None:
        """End at once; may be called from another thread while `run` waits."""

    def close(self) -> None:
        """Free everything; not to be called while `run` waits."""


class Event(NamedTuple):
    """Solver number `slot` starts an instance, or has its answer."""

    slot: int
    instance: Instance
    answer: Answer | None = None  # None: it starts


def run_all(
    instances: Sequence[Instance], solvers: Sequence[Solver]
) -> Generator[Event, None, None]:
    """Solve every instance on the first free solver; yield the events in order.

    Closing the generator stops and closes all solvers.
    """
    waiting: queue.SimpleQueue[Instance] = queue.SimpleQueue()
    for instance in instances:
        waiting.put(instance)
    # None: a solver has nothing left to do.
    events: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
    stop = threading.Event()
    threads = [
        threading.Thread(target=_work, args=(slot, solver, waiting, events, stop), daemon=True)
        for slot, solver in enumerate(solvers)
    ]
    for thread in threads:
        thread.start()
    busy = len(threads)
    try:
        while busy:
            event = events.get()
            if isinstance(event, BaseException):
                raise event
            if event is None:
                busy -= 1
            else:
                yield event
    finally:
        stop.set()
        for solver in solvers:
            solver.stop()
        for thread in threads:
            thread.join()
        for solver in solvers:
            solver.close()


def _work(
    slot: int,
    solver: Solver,
    waiting: queue.SimpleQueue[Instance],
    events: queue.SimpleQueue[Event | BaseException | None],
    stop: threading.Event,
) -> None:
    try:
        while not stop.is_set():
            try:
                instance = waiting.get_nowait()
            except queue.Empty:
                break
            events.put(Event(slot, instance))
            answer = solver.run(instance)
            if not stop.is_set():  # otherwise it was stopped, and has no answer
                events.put(Event(slot, instance, answer))
        events.put(None)
    except BaseException as error:
        events.put(error)
