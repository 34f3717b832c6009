"""Which search goes on is decided by what is expected to be left of it, and none is done twice."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.bounding import bound_root, by_inputs, inputs_after_neurons
from fgp_vnn.engine.parallel.share import run_shared
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.engine.search_steps import (
    sharpen,
    split_few_inputs,
    split_neurons,
    split_shortly,
)
from fgp_vnn.engine.settings import Settings
from fgp_vnn.engine.steps import optimise_slopes
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import ask, ask_values
from fgp_vnn.search.box_attacks import BoxAttacks
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.search.forecast import Forecast, Left
from fgp_vnn.search.neurons import NeuronSplits
from fgp_vnn.strategy import (
    Attack,
    Descent,
    Hidden,
    Inputs,
    Neurons,
    Offer,
    Sharing,
    Strategy,
)
from tests.engine.test_crew import nearly

SPLIT = Settings(attack=False, engine="split")


NEVER = Hidden(rounds=1, tightened=0.0, better=2.0, gain=2.0)  # sharpening does not pay


def problem(soon: float, most: int | None, margin: float = 0.1, hidden: Hidden = NEVER) -> Problem:
    """A problem with its first bounds, whose short search has so many bundles."""
    strategy = Strategy(
        short=Neurons(batch=8, most=most),
        neurons=Neurons(batch=8),
        hidden=hidden,
        inputs=Inputs(few=0, some=0),
        crew=Sharing(soon=soon),
    )
    query = nearly(margin)
    made = Problem(query, lambda points: None, SPLIT, UNLIMITED, strategy, NullLog(query))
    with torch.no_grad():
        bound_root(made)
        made.shrink()
    return made


def shortly(asked: Problem) -> Verdict | None:
    with torch.no_grad():
        return split_shortly(asked)


def test_a_search_that_is_about_to_end_goes_on_when_its_turn_is_over(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = Forecast.left  # a pause of the machine may not use the extension up: forecast a minute
    monkeypatch.setattr(Forecast, "left", lambda self: left(self)._replace(seconds=60.0))
    asked = problem(0.3, 110)
    asked.strategy = replace(asked.strategy, crew=replace(asked.strategy.crew, worse=math.inf))
    verdict = shortly(asked)
    assert verdict is not None and verdict.status == "unsat"
    with caplog.at_level(logging.INFO, "fgp_vnn"):
        assert shortly(problem(0.0, 110)) is None
    told = [str(getattr(record, "stage", "")) for record in caplog.records]
    assert any("more to bound" in line and "its turn is over" in line for line in told)


def test_a_search_whose_end_moves_away_does_not_go_on() -> None:
    """Nothing is as near as no time at all."""
    asked = problem(0.3, 90)
    asked.strategy = replace(asked.strategy, crew=replace(asked.strategy.crew, worse=0.0))
    assert shortly(asked) is None
    assert asked.unfinished is not None and asked.unfinished.open


@pytest.mark.parametrize(
    ("doubt", "early"),
    [((20, 0.0, 0.0), True), ((20, math.inf, 0.0), False), ((20, 0.0, math.inf), False)],
)
def test_a_search_that_its_limit_will_cut_off_may_give_up_early(
    doubt: tuple[int, float, float], early: bool
) -> None:
    """If many times the limit is expected, and the rest of it takes more than a moment."""
    asked = problem(0.0, 90)
    asked.strategy = replace(asked.strategy, crew=Sharing(soon=0.0, doubt=doubt))
    assert shortly(asked) is None
    assert asked.unfinished is not None and asked.unfinished.open
    assert asked.statistics["bundles"] in (range(20, 60) if early else range(90, 120))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("most", "seconds"), [(60, None), (None, 0.5)])
def test_what_is_told_last_is_open_in_the_verdict_too(
    jobs: int, most: int | None, seconds: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the work that is allowed is done, and where time is up; by one process and by two."""
    asked = problem(0.0, None, 0.005)
    asked.jobs, asked.budget = jobs, Budget.of(seconds, None)
    crew = Sharing(alone=(0.0, 0.0), ending=0.0, soon=0.0, pause=0.01)
    asked.strategy = replace(asked.strategy, crew=crew, neurons=Neurons(batch=8, most=most))
    given = asked.query, asked.bounds, asked.confirm, asked.budget, asked.strategy
    with caplog.at_level(logging.INFO, "fgp_vnn"), torch.no_grad():
        search = NeuronSplits.begin(*given)
        outcome = run_shared(asked, search)
    told = [stage for record in caplog.records if (stage := getattr(record, "stage", None))]
    assert told[-1].open == search.open > 0
    assert f"{told[-1].open} bundles" in outcome.reason


@pytest.mark.parametrize(
    ("rival", "look", "ends"),
    [(None, 0.0, True), (0.0, 0.0, False), (0.0, 1.0, True), (1e9, 0.0, True)],
)
def test_a_search_that_is_slower_than_its_rival_gives_way_to_it(
    rival: float | None, look: float, ends: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """After a look at it. While no end of it is in sight, only to a rival that ends in time. It is
    not extended then, and no process is started for it."""
    asked = problem(1.0, None, 0.05)
    alone = Sharing(alone=(0.0, 0.0), ending=0.0, soon=1.0, look=look)
    asked.strategy = replace(asked.strategy, crew=alone)
    asked.budget, asked.jobs = Budget.of(60.0, None), 1 if ends else 2
    given = asked.query, asked.bounds, asked.confirm, asked.budget, asked.strategy
    with caplog.at_level(logging.INFO, "fgp_vnn"), torch.no_grad():
        search, other = (NeuronSplits.begin(*given) for _ in range(2))
        other.left = Left(0.0, 0.0 if rival is None else rival)
        search.run(lambda: len(search.frontier) > 2)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fgp_vnn.engine.parallel.share.Crew", None)
            outcome = run_shared(asked, search, None if rival is None else other)
    assert (outcome.status == "unsat") == ends == (not outcome.unfinished)
    assert ends or len(search.frontier) > 1  # so that a process could have been started
    told = [str(getattr(record, "stage", "")) for record in caplog.records]
    assert not any("it goes on" in line for line in told)


def test_input_splits_give_way_to_the_neuron_splits_before_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rivals = list[Divisible | None]()

    def spy(asked: Problem, search: Divisible, rival: Divisible | None = None) -> Outcome:
        rivals.append(rival)
        return run_shared(asked, search, rival)

    monkeypatch.setattr("fgp_vnn.engine.search_steps.run_shared", spy)
    asked = problem(0.0, 10)
    asked.strategy = replace(asked.strategy, inputs=Inputs(few=0))
    shortly(asked)
    assert asked.unfinished is not None and rivals == [None, asked.unfinished]


def test_a_short_search_is_resumed_where_sharpening_has_not_paid() -> None:
    whole = shortly(problem(0.0, None))
    assert whole is not None and whole.status == "unsat"
    asked = problem(0.0, 40)
    assert shortly(asked) is None and asked.statistics["bundles"] < whole.statistics["bundles"]
    with torch.no_grad():
        assert sharpen(asked) is None
        resumed = split_neurons(asked)
    assert resumed.status == "unsat"
    assert resumed.statistics["bundles"] == whole.statistics["bundles"]


def test_a_search_begins_anew_where_sharpening_brings_the_rows_nearer() -> None:
    for better, resumed in ((2.0, True), (0.01, False)):
        asked = problem(0.0, 40, hidden=replace(NEVER, rounds=8, better=better))
        with torch.no_grad():
            optimise_slopes(asked)
            lacked = asked.lack
            assert shortly(asked) is None
            begun = asked.unfinished
            assert sharpen(asked) is None
        assert 0 < asked.lack <= 0.99 * lacked
        assert (asked.unfinished is begun) == resumed


def test_rows_that_lack_nothing_or_nobody_knows_how_much_are_sharpened_once() -> None:
    for lack in (0.0, math.inf, math.nan):
        asked = problem(0.0, 10)
        assert shortly(asked) is None
        asked.lack, begun = lack, asked.unfinished
        with torch.no_grad():
            assert sharpen(asked) is None
        assert asked.unfinished is begun


def test_a_search_keeps_its_way_to_the_original_input_when_the_problem_shrinks() -> None:
    asked, seen = problem(0.0, None), list[torch.Tensor]()
    asked.judge = lambda points: seen.append(points)
    before = asked.confirm
    asked.lift = lambda points: points + 1
    point = torch.zeros(1, asked.query.network.inputs)
    for confirm in (before, asked.confirm):
        confirm(point)
    assert torch.equal(seen[0], point) and torch.equal(seen[1], point + 1)


def test_inputs_are_split_first_only_where_there_are_few_of_them() -> None:
    """However few of them a neuron sees: of a filter's neurons, splits decide much sooner."""
    first = torch.eye(20, dtype=torch.float64)
    layer = Dense((0,), (first,), torch.zeros(20).double())
    output = Dense((1,), (torch.ones(1, 20).double(),), torch.zeros(1).double())
    box = Box(-torch.ones(20).double(), torch.ones(20).double())
    query = ask_values(Network((layer,), output, 20), box, 1, torch.ones(1, 1).double())
    for inputs, first_of_all, turn in (
        (Inputs(few=20), True, True),
        (Inputs(few=19), False, True),
        (Inputs(few=2, some=2), False, True),  # a neuron sees one
        (Inputs(few=0, some=0), False, False),
        (Inputs(few=2, some=2, many=2), False, False),
    ):
        strategy = Strategy(inputs=inputs)
        asked = Problem(query, lambda points: None, SPLIT, UNLIMITED, strategy, NullLog(query))
        assert (by_inputs(asked), inputs_after_neurons(asked)) == (first_of_all, turn)


def test_inputs_get_a_turn_where_several_rows_have_to_be_met_together() -> None:
    weight = torch.ones(20, 20, dtype=torch.float64)
    network = Network(
        (Dense((0,), (weight,), torch.zeros(20).double()),),
        Dense((1,), (weight[:2],), torch.zeros(2).double()),
        20,
    )
    box = Box(-torch.ones(20).double(), torch.ones(20).double())
    strategy = Strategy(inputs=Inputs(few=2, some=2))
    for rows in (1, 2):
        query = ask(
            network, box, [Conjunction(np.eye(2)[:rows], np.ones(rows), np.zeros(rows, bool))]
        )
        asked = Problem(query, lambda points: None, SPLIT, UNLIMITED, strategy, NullLog(query))
        assert inputs_after_neurons(asked) == (rows == 2)


def test_without_attacks_there_are_none_between_boxes_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = list[int]()
    monkeypatch.setattr(BoxAttacks, "after", lambda self, boxes, *rest: calls.append(boxes))
    for attack in (True, False):
        query = nearly(0.1)
        settings = Settings(engine="split", attack=attack)
        log = NullLog(query)
        asked = Problem(query, lambda points: None, settings, UNLIMITED, Strategy(), log)
        with torch.no_grad():
            bound_root(asked)
            split_few_inputs(asked)
        assert bool(calls) == attack
        calls.clear()


def test_the_seed_decides_where_attacks_from_boxes_start() -> None:
    everything = Descent(steps=0, offer=Offer(near=torch.inf))
    strategy = Strategy(attack=Attack(box_pause=1, in_boxes=everything))
    query = nearly(0.1)

    def seen(seed: int) -> torch.Tensor:
        points = list[torch.Tensor]()
        settings = Settings(engine="split", seed=seed)
        asked = Problem(query, points.append, settings, UNLIMITED, strategy, NullLog(query))
        with torch.no_grad():
            bound_root(asked)
            verdict = split_few_inputs(asked)
        assert verdict is not None and verdict.statistics["boxes"] > 1
        return torch.cat(points)

    assert torch.equal(seen(1), seen(1)) and not torch.equal(seen(1), seen(2))
