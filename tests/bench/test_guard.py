from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.guard import GuardedWorker, WorkerSpec
from tests.bench.commands import environment
from tests.helpers.bench_folders import VERIFIER, make_instance
from tests.helpers.places import ROOT

Make = Callable[..., GuardedWorker]


def guarded(log: Path, verifier: str, grace: float, memory: int) -> GuardedWorker:
    return GuardedWorker(WorkerSpec(verifier, {"device": "cpu"}, grace, memory), log)


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    """The stand-ins can be imported by workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes workers that call the stand-ins; closes them afterwards."""
    made = []

    def make(verifier: str = VERIFIER, grace: float = 0.2, memory: int = 1 << 30) -> GuardedWorker:
        made.append(guarded(tmp_path / "log", verifier, grace, memory))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedWorker]:
    """One worker for all tests that leave it alive."""
    worker = guarded(tmp_path_factory.mktemp("steady") / "log", VERIFIER, 0.2, 1 << 30)
    worker.start()
    process = worker.pid
    yield worker
    assert worker.pid == process
    worker.close()


def test_a_verdict_comes_with_its_versions_and_machine(
    steady: GuardedWorker, tmp_path: Path
) -> None:
    answer = steady.run(make_instance(tmp_path, "unsat"))
    assert (answer.status, answer.decided_by) == ("unsat", "bounds")
    assert answer.seconds == {"bounds": 0.5}
    assert answer.statistics == {"bundles": 1}
    assert {"fgp-vnn", "python", "torch"} <= answer.versions.keys()
    assert answer.machine["device"] == "cpu"


def test_a_counterexample_is_confirmed_and_comes_as_text(
    steady: GuardedWorker, tmp_path: Path
) -> None:
    answer = steady.run(make_instance(tmp_path, "sat"))
    assert (answer.status, answer.confirmed) == ("sat", True)
    assert answer.counterexample.splitlines()[:2] == ["sat", "((X_0 1)"]


def test_a_counterexample_that_is_none_is_not_confirmed(
    steady: GuardedWorker, tmp_path: Path
) -> None:
    answer = steady.run(make_instance(tmp_path, "liar"))
    assert (answer.status, answer.confirmed) == ("sat", False)
    assert "is not unsafe" in answer.reason


@pytest.mark.parametrize(
    ("word", "status", "reason"),
    [
        ("raise", "error", "RuntimeError: two lines"),
        ("unsupported", "unknown", "unsupported: Sigmoid"),
        ("malformed", "error", "not a network"),
        ("unknown", "unknown", "too hard"),
        ("chatty", "unsat", ""),
    ],
)
def test_what_goes_wrong_inside_costs_an_answer_but_not_the_worker(
    steady: GuardedWorker, tmp_path: Path, word: str, status: str, reason: str
) -> None:
    process = steady.pid
    answer = steady.run(make_instance(tmp_path, word))
    assert (answer.status, answer.reason) == (status, reason)
    assert steady.run(make_instance(tmp_path, "unsat")).status == "unsat"
    assert steady.pid == process


UNDERFLOW = {
    "die": "the worker ended by SIGKILL",
    "exit": "the worker ended with exit code 7: the library gave up",
    "hang": "no answer 0.2 s after its limit: killed",
    "greedy": "out of memory: an allocation failed",
    "unsat": "",
}


def test_a_worker_that_is_lost_costs_its_instance_and_is_replaced(
    make: Make, tmp_path: Path
) -> None:
    worker, seen = make(), set()
    for word, reason in UNDERFLOW.items():
        worker.start()
        seen.add(worker.pid)
        answer = worker.run(make_instance(tmp_path, word, timeout=0.3 if word == "hang" else 60))
        assert answer.status == ("error" if reason else "unsat")
        assert answer.reason == reason or (word == "greedy" and answer.reason.startswith(reason))
    assert len(seen) == len(UNDERFLOW)


def test_memory_that_the_kernel_does_not_limit_is_watched(make: Make, tmp_path: Path) -> None:
    answer = make(memory=1 << 29).run(make_instance(tmp_path, "sharing", timeout=60))
    assert (answer.status, answer.reason) == ("error", "over its memory limit of 512 MB")


@pytest.mark.parametrize(
    ("verifier", "message"),
    [
        ("tests.bench.verifiers:absent", "cannot be loaded"),
        ("no_such_module:verify", "cannot be loaded"),
        ("tests.bench.verifiers:not_callable", "not a function"),
        ("nonsense", "cannot be loaded"),
    ],
)
def test_a_function_that_does_not_exist_is_refused(
    make: Make, tmp_path: Path, verifier: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(verifier).run(make_instance(tmp_path, "unsat"))


def test_workers_that_never_start_are_given_up(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(InputError, match="workers do not start: the worker ended with exit code 1"):
        make().run(make_instance(tmp_path, "unsat"))


def test_a_memory_limit_below_what_a_worker_needs_is_refused(make: Make, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="workers do not start: over its memory limit of 1 MB"):
        make(memory=1 << 20).run(make_instance(tmp_path, "unsat"))


def test_a_property_of_several_networks_is_declined(steady: GuardedWorker, tmp_path: Path) -> None:
    instance = make_instance(tmp_path, "unsat")
    answer = steady.run(replace(instance, network_files=instance.network_files * 2))
    assert (answer.status, answer.reason) == (
        "unknown",
        "unsupported: a property of 2 networks",
    )


def test_a_worker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Its input is at its end while it computes, as when the coordinator is killed."""
    instance = make_instance(tmp_path, "hang")
    job = f'{{"networks": ["{instance.network_files[0]}"], "property": "", "timeout": 9}}\n'
    process = subprocess.Popen(
        [sys.executable, "-m", "fgp_vnn.bench.worker", VERIFIER, "{}", str(1 << 32)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin and process.stdout
    with process.stdin, process.stdout:
        process.stdin.write(job.encode())
        process.stdin.flush()
        assert process.stdout.readline() == b'{"ready": true}\n'
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_stop_ends_a_run_from_another_thread(make: Make, tmp_path: Path) -> None:
    import threading

    worker = make(grace=3600)
    worker.start()
    timer = threading.Timer(0.1, worker.stop)
    timer.start()
    assert worker.run(make_instance(tmp_path, "hang", timeout=3600)).reason == "stopped"
    timer.join()


def test_a_worker_that_dies_while_idle_costs_nothing(make: Make, tmp_path: Path) -> None:
    worker = make()
    worker.start()
    assert worker.pid
    os.kill(worker.pid, signal.SIGKILL)
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    assert worker.run(make_instance(tmp_path, "unsat")).status == "unsat"
