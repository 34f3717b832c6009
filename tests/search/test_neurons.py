"""The split search over neurons against an exact oracle, planted counterexamples and its limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.neurons import NeuronSplits
from fgp_vnn.strategy import Ascent, Neurons, Slopes, Strategy
from tests.helpers.met import is_met
from tests.helpers.random_cases import (
    FAMILIES,
    exact_confirm,
    oracle,
    random_case,
    sliver,
    tie,
    wrong,
)
from tests.helpers.random_networks import random_domain, random_network, random_rows, sample
from tests.helpers.solving import search_neurons
from tests.helpers.ticking import Ticking

QUICK = Strategy(slopes=Slopes(bundles=Ascent(steps=4)), neurons=Neurons(most=200))
WILD = Slopes(bundles=Ascent(steps=20, rate=2.0, beta_rate=2.0))
LARGE = 1 << 30  # bytes


def split(query: Query, how: Strategy = QUICK, budget: Budget | None = None) -> Outcome:
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    return search_neurons(query, bounds, exact_confirm(query), budget or Ticking(50), how)


def hard_query(seed: int, *counts: int) -> Query:
    """Safe by a small margin that takes some splits to prove."""
    network = random_network(seed, inputs=3, widths=(6, 5))
    domain = random_domain(seed, inputs=3, size=2.0)
    y = network(sample(domain, 3000, seed)).numpy()
    unsafe = []
    for c in random_rows(seed, 2, *(counts or (1,))):
        worst = (y @ c.rows.T - c.limits).max(-1).min()
        unsafe.append(Conjunction(c.rows, c.limits + worst - 0.15, c.strict))
    return ask(network, domain, unsafe)


@pytest.mark.parametrize("part", range(len(FAMILIES)), ids=FAMILIES)
def test_verdicts_are_those_of_an_exact_oracle(part: int) -> None:
    decided = 0
    for turn in range(3):
        case = random_case(part + turn * len(FAMILIES))
        outcome = split(case.query)
        assert not wrong(outcome.status, case.truth)
        assert (outcome.counterexample is not None) == (outcome.status == "sat")
        assert bool(outcome.reason) == (outcome.status in ("unknown", "timeout"))
        decided += outcome.status in ("sat", "unsat")
    assert decided >= 3 or FAMILIES[part] in ("strict tie", "sliver")


@pytest.mark.parametrize(
    ("how", "memory"),
    [
        (Strategy(slopes=Slopes(bundles=Ascent(steps=0)), neurons=Neurons(candidates=1)), LARGE),
        (Strategy(neurons=Neurons(batch=1)), LARGE),
        (Strategy(neurons=Neurons(batch=6)), 0),
        (Strategy(slopes=WILD, neurons=Neurons(candidates=50)), LARGE),
    ],
    ids=["no steps", "one at a time", "depth first", "wild steps"],
)
def test_every_way_to_search_ends_with_the_same_verdict(how: Strategy, memory: int) -> None:
    for seed in range(3):
        query = hard_query(seed, *((1,), (2,), (1, 2))[seed % 3])
        assert split(query, how, replace(UNLIMITED, memory=memory)).status == oracle(query)


def test_one_open_bundle_is_told_in_the_singular() -> None:
    outcome = split(hard_query(2), budget=Budget(0.0, LARGE))
    assert (outcome.status, outcome.reason) == ("timeout", "time is up with 1 bundle open")


def test_a_counterexample_that_is_refused_is_never_proved_away() -> None:
    refused = 0
    for seed in range(8):
        case = random_case(seed)
        if case.truth != "sat":
            continue
        bounds = root_bounds(case.query.network, case.query.domain, budget=UNLIMITED)
        outcome = search_neurons(case.query, bounds, lambda points: None, Ticking(50), QUICK)
        assert outcome.status in ("unknown", "timeout")
        refused += 1
    assert refused > 3


def test_a_counterexample_in_a_sliver_is_never_missed() -> None:
    for seed in range(4):
        assert split(sliver(seed * 8)).status != "unsat"


def test_a_conjunction_met_with_equality_is_never_proved() -> None:
    for seed in range(6):
        assert split(tie(seed * 8)).status != "unsat"


def test_rows_that_are_0_everywhere_are_met_only_where_none_is_strict() -> None:
    """0 . y < 0 is met nowhere, 0 . y <= 0 everywhere; a mixed conjunction is met nowhere too."""
    network, domain = random_network(1, widths=(3,)), random_domain(1)
    rows = np.zeros((2, 2))
    seen = {}
    for strict in ((False, False), (True, True), (False, True), (True, False)):
        query = ask(network, domain, [Conjunction(rows, np.zeros(2), np.array(strict))])
        refuse = search_neurons(
            query,
            root_bounds(query.network, domain, budget=UNLIMITED),
            lambda p: None,
            UNLIMITED,
            QUICK,
        )
        seen[strict] = refuse.status
        assert (split(query).status == "sat") == (strict == (False, False))
    # No bound tells 0 from what underflow may leave of it.
    assert set(seen.values()) <= {"unknown", "unsat"} and seen[False, False] == "unknown"


def test_a_limit_on_bundles_is_unknown_and_says_that_it_is_unfinished() -> None:
    stopped = 0
    for seed in range(6):
        query = hard_query(seed)
        outcome = split(query, replace(QUICK, neurons=Neurons(most=1)))
        if outcome.status == "unknown":
            assert outcome.unfinished and outcome.reason
            stopped += 1
        else:
            assert outcome.status == oracle(query)
    assert stopped


def test_a_deadline_in_the_past_is_a_timeout_or_a_decision_at_the_root() -> None:
    stopped = 0
    for seed in range(6):
        query = hard_query(seed)
        outcome = split(query, QUICK, Budget.of(0.0, None))
        assert outcome.status in ("timeout", "unknown", oracle(query))
        stopped += outcome.status == "timeout"
    assert stopped


@pytest.mark.parametrize("domain_kind", ["l2", "clipped l2", "clipped l1"])
def test_round_domains_are_never_proved_where_a_sample_breaks_them(domain_kind: str) -> None:
    proved = 0
    for seed in range(4):
        network = random_network(seed, ("chain", "residual")[seed % 2], inputs=3, widths=(5, 4))
        domain = random_domain(seed, domain_kind, inputs=3)
        y = network(sample(domain, 400, seed)).numpy()
        (c,) = random_rows(seed, 2, 1 + seed % 2)
        best = (y @ c.rows.T - c.limits).max(-1).min()
        for margin in (1e-3, -0.3):  # met by a sample; then missed by all
            query = ask(network, domain, [Conjunction(c.rows, c.limits + best + margin, c.strict)])
            status = split(query).status
            assert margin < 0 or status != "unsat"
            proved += status == "unsat"
    assert proved > 1


def test_a_network_without_hidden_layers_is_decided() -> None:
    seen = set()
    for seed in range(12):
        network = random_network(seed, widths=())
        domain = random_domain(seed, ("box", "l2")[seed % 2])
        query = ask(network, domain, random_rows(seed, 2, 2))
        outcome = split(query)
        met = bool(is_met(query, query.network(sample(domain, 300, seed))).any())
        assert not (met and outcome.status == "unsat")
        seen.add(outcome.status)
    assert {"sat", "unsat"} <= seen


def test_single_precision_proves_nothing_false() -> None:
    proved = 0
    for seed in range(16):
        case = random_case(seed)
        if case.family in ("scaled", "tie", "strict tie"):
            continue
        single = case.query.to("cpu", torch.float32)
        bounds = root_bounds(single.network, single.domain, budget=UNLIMITED)
        outcome = search_neurons(single, bounds, lambda p: None, Ticking(50), QUICK)
        assert not (outcome.status == "unsat" and case.truth == "sat")
        proved += outcome.status == "unsat"
    assert proved > 3


def test_bundles_of_disjuncts_that_are_decided_elsewhere_are_closed() -> None:
    query = hard_query(5, 1, 1, 1)
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    search = NeuronSplits.begin(query, bounds, exact_confirm(query), UNLIMITED, QUICK)
    waiting = search.frontier.everything()["disjunct"]
    kept = int(waiting.max())
    others = set(waiting.tolist()) - {kept}
    assert others and kept > 0
    search.only([kept])
    assert set(search.frontier.everything()["disjunct"].tolist()) == {kept}
    assert search.closed + float(search.frontier.everything()["share"].sum()) == pytest.approx(1.0)
    search.only([0])  # of those that are left
    assert set(search.frontier.everything()["disjunct"].tolist()) == {kept}
    search.only([])
    assert not search.open and search.closed == pytest.approx(1.0)
