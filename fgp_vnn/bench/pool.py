"""Several solvers at once, each with a thread that waits for its answers."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from fgp_vnn.bench.answer import Answer, Solver
from fgp_vnn.bench.instances import Instance


@dataclass(frozen=True)
class Started:
    """Solver number `slot` begins with an instance."""

    slot: int
    instance: Instance


@dataclass(frozen=True)
class Finished:
    """Solver number `slot` has an answer."""

    slot: int
    instance: Instance
    answer: Answer


@dataclass(frozen=True)
class _Failed:
    error: BaseException


@dataclass(frozen=True)
class _Idle:
    slot: int


Event = Started | Finished


def run_all(
    instances: Sequence[Instance], solvers: Sequence[Solver]
) -> Generator[Event, None, None]:
    """Solve every instance on the first free solver; yield what happens, in order.

    Closing the generator stops and closes all solvers.
    """
    waiting: queue.SimpleQueue[Instance] = queue.SimpleQueue()
    for instance in instances:
        waiting.put(instance)
    events: queue.SimpleQueue[Started | Finished | _Failed | _Idle] = queue.SimpleQueue()
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
            if isinstance(event, _Failed):
                raise event.error
            if isinstance(event, _Idle):
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
    events: queue.SimpleQueue[Started | Finished | _Failed | _Idle],
    stop: threading.Event,
) -> None:
    try:
        while not stop.is_set():
            try:
                instance = waiting.get_nowait()
            except queue.Empty:
                break
            events.put(Started(slot, instance))
            answer = solver.run(instance)
            if not stop.is_set():  # else it was stopped by us, and has no answer
                events.put(Finished(slot, instance, answer))
        events.put(_Idle(slot))
    except BaseException as error:
        events.put(_Failed(error))
