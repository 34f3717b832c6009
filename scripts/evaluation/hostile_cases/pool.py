"""Worker processes that are restarted when a case kills them or hangs."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from hostile_cases.trials import Trial


class Task(NamedTuple):
    """Case `number` of a kind."""

    kind: str
    seed: int
    number: int


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    task: Task | None = None
    since: float = 0.0

    def give(self, task: Task) -> None:
        self.task, self.since = task, time.monotonic()
        self.pipe.send(task)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_all(
    tasks: Sequence[Task], jobs: int, limit: float, patience: float
) -> Iterator[tuple[Task, list[Trial]]]:
    """Yield the trials of each task as they finish; a crash or a hang counts as a trial."""
    waiting = list(reversed(tasks))
    workers = [_start(limit) for _ in range(min(jobs, len(waiting)))]
    try:
        for worker in workers:
            worker.give(waiting.pop())
        while busy := [worker for worker in workers if worker.task is not None]:
            ready = wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in busy:
                late = time.monotonic() - worker.since > patience
                if worker.pipe not in ready and not late:
                    continue
                task, trials = worker.task, _received(worker, late)
                assert task is not None
                if trials is None:
                    ending = f"did not end within {patience:g} s" if late else "died"
                    trials = [Trial("process", "crash", f"the process {ending}", "")]
                    worker.end()
                    workers[workers.index(worker)] = worker = _start(limit)
                worker.task = None
                if waiting:
                    worker.give(waiting.pop())
                yield task, trials
    finally:
        for worker in workers:
            worker.end()


def _received(worker: _Worker, late: bool) -> list[Trial] | None:
    """The trials sent by a worker; None if it is dead or late."""
    if late and not worker.pipe.poll():
        return None
    try:
        trials: list[Trial] = worker.pipe.recv()
        return trials
    except (EOFError, OSError):
        return None


def _start(limit: float) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, limit, sys.path), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _work(pipe: Connection, limit: float, path: list[str]) -> None:
    """Receive tasks and send trials until the pipe is closed."""
    sys.path[:] = path
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    warnings.simplefilter("ignore")
    import torch

    from hostile_cases.kinds import try_number
    from hostile_cases.tool import fgp_vnn_tool

    torch.set_num_threads(1)
    tool = fgp_vnn_tool(limit)
    with tempfile.TemporaryDirectory() as folder:
        while True:
            try:
                task: Task = pipe.recv()
            except EOFError:
                return
            pipe.send(try_number(task.kind, task.seed, task.number, tool, Path(folder)))
