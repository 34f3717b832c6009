from __future__ import annotations

import threading
from contextlib import closing

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.instances import Instance
from fgp_vnn.bench.pool import run_all
from fgp_vnn.bench.record import Answer


def instance(number: int) -> Instance:
    return Instance("cat", f"{number}.onnx", "p", 1.0, (f"{number}.onnx",), "p")


class Quick:
    """Answers at once, and remembers that it was closed."""

    closed = False

    def run(self, instance: Instance) -> Answer:
        return Answer("unsat", 0.0)

    def stop(self) -> None: ...

    def close(self) -> None:
        self.closed = True


class Broken(Quick):
    def run(self, instance: Instance) -> Answer:
        raise InputError("no verifier")


class Patient(Quick):
    """Answers only when it is stopped."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def run(self, instance: Instance) -> Answer:
        self.stopped.wait()
        return Answer("error", 0.0, reason="stopped")

    def stop(self) -> None:
        self.stopped.set()


@pytest.mark.parametrize("workers", [1, 3])
def test_every_instance_is_started_and_finished_once(workers: int) -> None:
    solvers = [Quick() for _ in range(workers)]
    instances = [instance(number) for number in range(50)]
    events = list(run_all(instances, solvers))
    for finished in (False, True):
        names = [event.instance.onnx for event in events if bool(event.answer) == finished]
        assert sorted(names) == sorted(item.onnx for item in instances)
    assert all(solver.closed for solver in solvers)


def test_one_worker_keeps_the_order() -> None:
    instances = [instance(number) for number in range(20)]
    events = run_all(instances, [Quick()])
    assert [event.instance for event in events if event.answer] == instances


def test_what_no_worker_can_do_ends_the_run() -> None:
    solvers = [Patient(), Broken()]
    with pytest.raises(InputError, match="no verifier"):
        list(run_all([instance(number) for number in range(1000)], solvers))
    assert all(solver.closed for solver in solvers)


def test_closing_stops_the_workers_and_takes_no_answer_from_them() -> None:
    solvers = [Patient(), Patient()]
    with closing(run_all([instance(1), instance(2), instance(3)], solvers)) as events:
        first = next(events)
    assert first.answer is None
    assert all(solver.stopped.is_set() and solver.closed for solver in solvers)
    assert list(events) == []
