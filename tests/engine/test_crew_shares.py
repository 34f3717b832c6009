"""How processes that work on one search share it out, and what is known of it meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fgp_vnn.base.outcome import Confirm
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.engine.parallel.crew import Crew
from fgp_vnn.engine.parallel.processes import Member
from fgp_vnn.engine.parallel.share import run_shared
from fgp_vnn.search.inputs import InputSplits
from fgp_vnn.strategy import Sharing
from tests.engine.test_crew import BOTH, HASTY, Begin, accounted_for, by_inputs, nearly, shared
from tests.helpers.children import children

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


@BOTH
def test_who_has_nothing_to_do_is_given_half_of_what_another_has(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes report nothing by themselves before they are done."""
    given, send = list[Member](), Crew._send

    def noted(self: Crew, member: Member, message: Any) -> None:
        if message[0] == "work":
            given.append(member)
        send(self, member, message)

    monkeypatch.setattr(Crew, "_send", noted)
    search = begin(nearly(0.1), lambda points: None, UNLIMITED)
    patient = Sharing(alone=(0.0, 0.0), turn=1e9, pause=0.01)
    with torch.no_grad(), Crew(search, 3, UNLIMITED, patient) as crew:
        crew.work(search.enough)
    assert len(set(given)) > 1 and len(given) > 2
    assert search.outcome().status == "unsat" and search.closed == pytest.approx(1)


def test_the_first_process_computes_with_one_thread_while_there_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, work = list[int](), Crew.work

    def noted(self: Crew, enough: Callable[[], bool]) -> None:
        threads.append(torch.get_num_threads())
        work(self, enough)

    monkeypatch.setattr(Crew, "work", noted)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        search = by_inputs(nearly(0.1), lambda points: None, UNLIMITED)
        with torch.no_grad():
            outcome = run_shared(shared(search, Sharing(alone=(0.0, 0.0), ending=0.0)), search)
        assert outcome.status == "unsat"
        assert set(threads) == {1} and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@BOTH
def test_what_is_bounded_elsewhere_is_counted_before_it_is_reported(begin: Begin) -> None:
    search = begin(nearly(0.05), lambda points: None, UNLIMITED)
    patient = Sharing(alone=(0.0, 0.0), turn=1e9, pause=0.0)
    before, seen = search.bounded, list[int]()

    def over() -> bool:
        seen.append(search.bounded_out)
        return search.bounded_out > 0

    with torch.no_grad(), Crew(search, 2, UNLIMITED, patient) as crew:
        crew.work(over)
    assert seen[-1] > 0  # and is done once more, for nobody has reported it
    assert search.bounded_out == search.handed_out == 0
    assert search.bounded >= before
    assert accounted_for(search) == pytest.approx(1)


@BOTH
def test_what_was_found_is_gathered_before_processes_end(begin: Begin) -> None:
    search = begin(nearly(0.05), lambda points: None, UNLIMITED)
    patient = Sharing(alone=(0.0, 0.0), turn=1e9, pause=0.0)
    elsewhere = list[int]()

    def over() -> bool:
        elsewhere.append(search.bounded_out)
        return search.bounded_out > 0

    with torch.no_grad(), Crew(search, 2, UNLIMITED, patient) as crew:
        crew.work(over)
        here = search.bounded - elsewhere[-1]
        crew.gather(60.0)
    assert search.bounded >= here + elsewhere[-1] > here
    assert search.bounded_out == search.handed_out == 0
    assert accounted_for(search) == pytest.approx(1)


def test_every_process_has_a_copy_of_another_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the one that replaces another; each copy tells its number as if it were a point."""
    made, told = InputSplits.copy, list[int]()

    def tells(self: InputSplits, confirm: Confirm, budget: Budget, part: int) -> InputSplits:
        confirm(torch.tensor(float(part)))
        return made(self, confirm, budget, part)

    killed = list[int]()

    def over() -> bool:
        if len(told) == 2 and len(children()) == 2 and not killed:
            killed.append(children()[0].pid)
            children()[0].kill()
        return len(told) == 3

    def note(points: Tensor) -> None:
        told.extend([int(points)] if points.ndim == 0 else [])

    monkeypatch.setattr(InputSplits, "copy", tells)
    search = by_inputs(nearly(0.01), note, UNLIMITED)
    with torch.no_grad(), Crew(search, 2, UNLIMITED, HASTY) as crew:
        crew.work(over)
    assert sorted(told) == [1, 2, 3]
