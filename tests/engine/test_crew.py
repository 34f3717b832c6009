"""Searches that several processes work on: nothing of their frontier is ever lost."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest
import torch

from fgp_vnn.base.outcome import Confirm
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.engine.parallel.crew import Crew
from fgp_vnn.engine.parallel.processes import Process, fork
from fgp_vnn.engine.parallel.share import run_shared
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.engine.settings import Settings
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.search.inputs import InputSplits
from fgp_vnn.search.neurons import NeuronSplits
from fgp_vnn.strategy import Inputs, Neurons, Sharing, Strategy
from tests.helpers.children import children
from tests.helpers.random_cases import exact_confirm
from tests.helpers.random_networks import random_domain, random_network, sample

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
SMALL = Strategy(inputs=Inputs(batch=8), neurons=Neurons(batch=8))
HASTY = Sharing(alone=(0.0, 0.0), turn=0.0, pause=0.01)
Begin = Callable[[Query, Confirm, Budget], Divisible]


def by_inputs(query: Query, confirm: Confirm, budget: Budget) -> Divisible:
    search = InputSplits(query, confirm, budget, Subdivision(strategy=SMALL))
    search.begin()
    return search


def by_neurons(query: Query, confirm: Confirm, budget: Budget) -> Divisible:
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    return NeuronSplits.begin(query, bounds, confirm, budget, SMALL)


def shared(search: Divisible, numbers: Sharing) -> Problem:
    """A problem that two processes may search."""
    query = nearly(0.2)
    strategy = Strategy(crew=numbers)
    log = NullLog(query)
    return Problem(query, search.confirm, Settings(), UNLIMITED, strategy, log, jobs=2)


def _after(steps: int) -> Callable[[], bool]:
    """Says so after so many steps."""
    left = iter(range(steps))
    return lambda: next(left, None) is None


BOTH = pytest.mark.parametrize("begin", [by_inputs, by_neurons])


def nearly(margin: float, seed: int = 5, widths: tuple[int, ...] = (16, 16)) -> Query:
    """Safe by a margin, which is small, or unsafe, where it is below 0."""
    network = random_network(seed, inputs=4, widths=widths)
    domain = random_domain(seed, inputs=4, size=2.0)
    y = network(sample(domain, 5000, seed))[:, 0]
    low = float(y.min()) - margin * float(y.max() - y.min())
    row = Conjunction(np.array([[1.0, 0.0]]), np.array([low]), np.array([False]))
    return ask(network, domain, [row])


def share(search: Divisible, after: Callable[[], Any] = lambda: None, jobs: int = 2) -> None:
    """Let processes work on a search; `after` is called in between."""

    def over() -> bool:
        after()
        return search.found is not None or search.enough()

    with torch.no_grad(), Crew(search, jobs, search.budget, HASTY) as crew:
        crew.work(over)


def accounted_for(search: Divisible) -> float:
    """The part of the tree that is closed or open, of all."""
    waiting = search.frontier.everything().get("share", torch.zeros(0))
    return search.closed + float(waiting[: len(search.frontier)].sum())


@pytest.mark.parametrize(
    ("begin", "jobs", "seed"), [(by_neurons, 5, 3), (by_inputs, 2, 4)], ids=["neurons", "inputs"]
)
def test_several_processes_prove_what_one_does_and_all_of_it(
    begin: Begin, jobs: int, seed: int
) -> None:
    search = begin(nearly(0.1, seed), lambda points: None, UNLIMITED)
    share(search, jobs=jobs)
    assert search.outcome().status == "unsat"
    assert search.handed_out == 0
    assert search.closed == pytest.approx(1)


@BOTH
def test_a_counterexample_of_one_process_ends_all(begin: Begin) -> None:
    query = nearly(-0.02)
    exact = exact_confirm(query)
    refusals = iter(range(3))  # so that more than the root is searched
    search = begin(
        query, lambda p: None if next(refusals, None) is not None else exact(p), UNLIMITED
    )
    share(search)
    assert search.outcome().status == "sat"
    assert not children()


@BOTH
def test_what_a_killed_process_had_is_done_by_another(begin: Begin) -> None:
    search = begin(nearly(0.1), lambda points: None, UNLIMITED)
    killed: list[int] = []

    def kill() -> None:
        if len(killed) < 3 and search.bounded > 5 * len(killed):
            killed.append(children()[len(killed) % 2].pid)
            os.kill(killed[-1], signal.SIGKILL)

    share(search, kill)
    assert len(killed) == 3
    assert search.outcome().status == "unsat"
    assert search.closed == pytest.approx(1)


@BOTH
def test_if_all_processes_are_killed_again_and_again_nothing_is_lost(begin: Begin) -> None:
    search = begin(nearly(0.1), lambda points: None, UNLIMITED)

    def kill() -> None:
        for child in children():
            child.kill()

    share(search, kill)
    assert search.outcome().status == "unknown"
    assert search.handed_out == 0
    assert accounted_for(search) == pytest.approx(1)
    search.run(search.enough)
    assert search.outcome().status == "unsat"


@pytest.mark.parametrize("says", [b"", struct.pack("!i", 1000) + b"begun"], ids=["mute", "begun"])
def test_a_process_that_was_stopped_is_not_waited_for(says: bytes) -> None:
    """It neither reads what is more than fits into its line, nor ends what it has begun to say."""

    def work(connection: Connection) -> None:
        os.write(connection.fileno(), says)
        os.kill(os.getpid(), signal.SIGSTOP)

    process = fork(work, [], 1, stalled=0.2)
    try:
        with pytest.raises(OSError):
            if says:
                process.receive()
            else:
                process.send(torch.zeros(4_000_000))
    finally:
        process.end()


@BOTH
def test_a_stopped_process_is_given_up_at_the_deadline(begin: Begin) -> None:
    search = begin(nearly(0.05, 3), lambda points: None, Budget.of(1.0, None))
    share(search, lambda: os.kill(children()[0].pid, signal.SIGSTOP))
    assert search.outcome().status in ("timeout", "unsat")
    assert search.handed_out == 0
    assert accounted_for(search) == pytest.approx(1)
    assert not children()


@BOTH
def test_what_a_stopped_process_had_is_done_by_another(begin: Begin) -> None:
    search = begin(nearly(0.1), lambda points: None, UNLIMITED)
    stopped: list[int] = []

    def over() -> bool:
        working = [m for m, task in crew._tasks.items() if task and isinstance(m, Process)]
        if not stopped and working:
            stopped.append(working[0].number)
            os.kill(stopped[0], signal.SIGSTOP)
        return search.enough()

    with torch.no_grad(), Crew(search, 2, UNLIMITED, HASTY, stalled=0.2) as crew:
        crew.work(over)
    assert stopped
    assert search.outcome().status == "unsat"
    assert search.closed == pytest.approx(1)


@BOTH
def test_a_deadline_leaves_open_what_is_handed_out(begin: Begin) -> None:
    search = begin(nearly(0.05, 3), lambda points: None, Budget.of(0.3, None))
    share(search)
    outcome = search.outcome()
    assert outcome.status == "timeout"
    assert search.handed_out == 0
    assert accounted_for(search) == pytest.approx(1)
    assert not children()


@BOTH
@pytest.mark.parametrize("error", [MemoryError, ZeroDivisionError])
def test_what_fails_in_a_process_is_done_in_the_first_one(
    begin: Begin, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = begin(nearly(0.2), lambda points: None, UNLIMITED)
    here, kind, run = os.getpid(), type(search), type(search).run

    def fail_elsewhere(self: Divisible, until: Callable[[], bool]) -> None:
        if os.getpid() != here:
            raise error
        run(self, until)

    monkeypatch.setattr(kind, "run", fail_elsewhere)
    monkeypatch.setattr("fgp_vnn.engine.parallel.share.can_fork", lambda: True)
    with torch.no_grad():
        run_shared(shared(search, HASTY), search)
    assert search.outcome().status == "unsat"
    assert search.closed == pytest.approx(1)
    assert not children()


def test_a_search_that_ends_at_once_has_no_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("fgp_vnn.engine.parallel.share.can_fork", lambda: True)
    monkeypatch.setattr("fgp_vnn.engine.parallel.share.Crew", refuse)
    search = by_inputs(nearly(0.2), lambda points: None, UNLIMITED)
    run_shared(shared(search, Sharing(alone=(1e9, 1e9))), search)
    assert search.outcome().status == "unsat"


@pytest.mark.parametrize("ending", [0.0, 1e9])
def test_a_search_that_is_about_to_give_up_has_no_second_process(
    ending: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    def note(*arguments: object) -> None:
        started.append(arguments)
        raise OSError("no processes here")

    monkeypatch.setattr("fgp_vnn.engine.parallel.share.can_fork", lambda: True)
    monkeypatch.setattr("fgp_vnn.engine.parallel.share.Crew", note)
    query = nearly(0.05, 4)
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    some = Strategy(neurons=Neurons(batch=8, most=60))
    search = NeuronSplits.begin(query, bounds, lambda points: None, UNLIMITED, some)
    assert search.limit == 60
    with torch.no_grad():
        search.run(_after(3))
        run_shared(shared(search, replace(HASTY, ending=ending, soon=0.0)), search)
    assert bool(started) == (ending == 0)
    assert search.bounded >= 60


def test_regions_that_a_process_could_not_settle_are_never_proved() -> None:
    """The query can be met, and every counterexample is refused."""
    search = by_neurons(nearly(-0.02, 0, (5, 4)), lambda points: None, UNLIMITED)
    share(search)
    outcome = search.outcome()
    assert outcome.status == "unknown" and "regions" in outcome.reason
    assert search.open == 0 and search.closed == pytest.approx(1)


def test_boxes_that_a_process_could_not_split_are_never_proved() -> None:
    search = by_inputs(nearly(0.2), lambda points: None, UNLIMITED)
    elsewhere = search.copy(search.confirm, UNLIMITED, 1)
    assert isinstance(elsewhere, InputSplits)
    elsewhere.statistics["stuck"] = 2
    search.absorb(elsewhere.report())
    search.run(search.enough)
    outcome = search.outcome()
    assert outcome.status == "unknown" and outcome.reason.startswith("2 boxes")
