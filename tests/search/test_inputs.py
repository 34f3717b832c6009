"""The split search along inputs against the exact oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.inputs import split_inputs
from fgp_vnn.strategy import Attack, Inputs, Strategy
from tests.helpers.exact import TOLERANCE, least_worst, polytope
from tests.helpers.random_cases import exact_confirm, random_case, sliver, tie, wrong
from tests.helpers.random_networks import (
    KINDS,
    confirm_in,
    random_domain,
    random_network,
    random_rows,
    sample,
)
from tests.helpers.ticking import Ticking


def random_query(seed: int, domain_kind: str = "box") -> Query:
    network = random_network(seed, KINDS[seed % 3], widths=((4, 3), (6,), (3, 2, 2))[seed % 3])
    unsafe = random_rows(seed, 2, *((1,), (2,), (1, 2), (1, 1, 2))[seed % 4])
    moved = [Conjunction(c.rows, c.limits - 0.5, c.strict) for c in unsafe]
    return ask(network, random_domain(seed, domain_kind), moved)


def batches_of(boxes: int) -> Strategy:
    return Strategy(inputs=Inputs(batch=boxes))


SMALL = Subdivision(strategy=batches_of(64))


def split(query: Query, budget: Budget | None = None, batch: int = 256) -> Outcome:
    subdivision = Subdivision(strategy=batches_of(batch))
    return split_inputs(query, confirm_in(query), budget or UNLIMITED, subdivision)


@pytest.mark.parametrize("domain_kind", ["box", "thin box"])
@pytest.mark.parametrize("batch", [2, 256])
def test_verdicts_are_those_of_an_exact_oracle(domain_kind: str, batch: int) -> None:
    seen: set[str] = set()
    for seed in range(5):
        query = random_query(seed, domain_kind)
        exact = least_worst(query, polytope(query.domain))
        outcome = split(query, batch=batch)
        if exact > 1e-3:
            assert outcome.status == "unsat"
        elif exact > TOLERANCE:
            assert outcome.status != "sat"
        elif exact < -TOLERANCE:
            assert outcome.status == "sat"
        seen.add(outcome.status)
    assert {"sat", "unsat"} <= seen


def test_a_deadline_in_the_past_is_a_timeout_or_a_decision_at_the_root() -> None:
    seen: set[str] = set()
    for seed in range(6):
        network = random_network(seed, inputs=3, widths=(8, 8))
        domain = random_domain(seed, inputs=3, size=2.0)
        low = float(network(sample(domain, 2000, seed))[:, 0].min()) - 0.05
        row = Conjunction(np.array([[1.0, 0.0]]), np.array([low]), np.array([False]))
        query = ask(network, domain, [row])
        status = split(query, Budget.of(0.0, None)).status
        assert status in ("timeout", split(query).status)
        seen.add(status)
    assert "timeout" in seen


def test_a_tie_is_never_proved_and_ends() -> None:
    """The minimum is 0 exactly: boxes around it get smaller until they cannot be split."""
    for seed in range(3):
        query = random_query(seed)
        rows = np.zeros((1, 2))  # 0 . y <= 0 is met everywhere, with nothing to spare
        tie = ask(
            random_network(seed), query.domain, [Conjunction(rows, np.zeros(1), np.zeros(1, bool))]
        )
        assert split(tie).status == "sat"
        refused = split_inputs(tie, lambda points: None, Ticking(50), SMALL)
        assert refused.status in ("unknown", "timeout")
        assert refused.reason


def test_with_an_lp_what_single_precision_adds_to_a_box_is_cut_off_again() -> None:
    """0.1 lies above its nearest float32 from below: the unsafe set lies between the two."""
    relu = Dense((0,), (torch.eye(1).double(),), torch.tensor([-0.15]).double())
    output = Dense((0, 1), (torch.eye(1).double(), torch.eye(1).double()), torch.zeros(1).double())
    network = Network((relu,), output, 1)
    box = Box(torch.tensor([0.1], dtype=torch.float64), torch.tensor([0.2], dtype=torch.float64))
    limit = np.array([0.1 - 1e-10])
    query = ask(network, box, [Conjunction(np.ones((1, 1)), limit, np.zeros(1, bool))])
    for lp, status in ((False, "unknown"), (True, "unsat")):
        found = split_inputs(query, exact_confirm(query), UNLIMITED, Subdivision(lp=lp))
        assert found.status == status


def test_other_domains_are_refused() -> None:
    with pytest.raises(TypeError, match="boxes"):
        split(random_query(1, "l2"))


@pytest.mark.slow
@pytest.mark.parametrize("coarse", [True, False])
def test_random_cases_are_decided_as_an_exact_oracle_has_it(coarse: bool) -> None:
    decided = 0
    cases = [random_case(seed) for seed in range(1000, 1016)]
    for case in cases:
        if not isinstance(case.query.domain, Box):
            continue
        outcome = split_inputs(
            case.query,
            exact_confirm(case.query),
            Ticking(50),
            Subdivision(coarse=coarse, strategy=batches_of(64)),
        )
        assert not wrong(outcome.status, case.truth)
        decided += outcome.status in ("sat", "unsat")
    assert decided > 8


@pytest.mark.slow
def test_a_counterexample_in_a_sliver_is_never_missed() -> None:
    for seed in range(4):
        query = sliver(seed * 8)
        assert split(query, Ticking(50), 64).status != "unsat"
        refused = split_inputs(query, lambda p: None, Ticking(50), SMALL)
        assert refused.status in ("timeout", "unknown")


@pytest.mark.slow
def test_a_conjunction_met_with_equality_is_never_proved() -> None:
    for seed in range(4):
        query = tie(seed * 8)
        refused = split_inputs(query, lambda p: None, Ticking(50), SMALL)
        assert refused.status in ("timeout", "unknown")


@pytest.mark.parametrize("offset", [1e3, 1e4])
def test_boxes_that_single_precision_cannot_tell_apart_are_never_proved_wrongly(
    offset: float,
) -> None:
    """A box far from 0, narrower than the steps of float32 there, one of whose corners is bad."""
    proved = 0
    for seed in range(5):
        network = random_network(seed, widths=(4, 3))
        box = random_domain(seed, size=1e-3).box()
        domain = Box(box.lower + offset, box.upper + offset)
        y = network(sample(domain, 100, seed))[:, :1]
        width = float(y.max() - y.min())
        for margin in (0.01, -0.5):
            limit = float(y.min()) + margin * width
            row = Conjunction(np.array([[1.0, 0.0]]), np.array([limit]), np.array([False]))
            status = split(ask(network, domain, [row]), Ticking(50), 64).status
            assert margin < 0 or status != "unsat"
            proved += status == "unsat"
    assert proved > 3 or offset > 1e3


@pytest.mark.parametrize("batch", [1, 8])
def test_little_memory_changes_no_verdict(batch: int) -> None:
    seen = set()
    for seed in range(5):
        query = random_query(seed)
        little = replace(UNLIMITED, memory=0)
        outcome = split_inputs(
            query, confirm_in(query), little, Subdivision(strategy=batches_of(batch))
        )
        if abs(least_worst(query, polytope(query.domain))) > 1e-3:
            assert outcome.status == split(query).status
            seen.add(outcome.status)
    assert {"sat", "unsat"} <= seen


def test_one_open_box_is_told_in_the_singular() -> None:
    query = random_query(0)
    outcome = split_inputs(query, confirm_in(query), replace(UNLIMITED, moment=0.0), Subdivision())
    assert (outcome.status, outcome.reason) == ("timeout", "time is up with 1 box open")


def boxes_until_found(seed: int, *, attacks: bool) -> int:
    """Boxes after which a search finds a rare counterexample."""
    network = random_network(seed, inputs=4, widths=(24, 24, 24))
    domain = random_domain(seed, inputs=4)
    # Both outputs are to be greater than they are at any of 20,000 points.
    least = network(sample(domain, 20_000, seed)).amin(-1)
    limit = float(-1.02 * least.max() + 0.02 * least.median())
    rare = Conjunction(-np.eye(2), np.full(2, limit), np.zeros(2, bool))
    query = ask(network, domain, [rare])
    strategy = replace(batches_of(16), attack=Attack(box_pause=8, box_starts=64))
    how = Subdivision(neurons=False, attacks=attacks, strategy=strategy)
    outcome = split_inputs(query, confirm_in(query), UNLIMITED, how)
    assert outcome.status == "sat"
    return outcome.statistics["boxes"]


def test_attacks_from_open_boxes_find_rare_counterexamples_sooner() -> None:
    found, reached = (
        sum(boxes_until_found(seed, attacks=attacks) for seed in (2, 4))
        for attacks in (True, False)
    )
    assert 2 * found < reached
