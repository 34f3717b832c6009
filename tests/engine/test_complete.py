"""With an LP the searches are complete: they end in sat or unsat, and in the right one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.api.certify import Certifier
from fgp_vnn.api.points import read_points
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.settings import Settings
from tests.engine.decisions import ENGINES, make_query, truth
from tests.helpers.random_cases import FAMILIES, exact_confirm, random_case, tie
from tests.helpers.solving import solve

CLEAR = [f for f in FAMILIES if f not in ("tie", "strict tie")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_every_random_case_is_decided_as_the_oracle_has_it(name: str) -> None:
    seen: Counter[str] = Counter()
    lps = 0
    for number in range(16):
        if FAMILIES[number % len(FAMILIES)] not in CLEAR:
            continue
        case = random_case(number)
        if case.truth == "unclear" or (name == "inputs" and not isinstance(case.query.domain, Box)):
            continue
        outcome = ENGINES[name](case.query)
        assert outcome.status == case.truth, f"case {number}, {case.family}: {outcome.reason}"
        seen[case.truth] += 1
        lps += outcome.statistics["lps"]
    assert seen["sat"] > 3 and seen["unsat"] > 2
    assert lps or "walk" not in name or "without" not in name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["l2", "clipped l2", "clipped l1"])
@pytest.mark.parametrize("name", ["neurons", "walk without alternating projections"])
def test_balls_are_decided_as_polygons_in_and_around_them_have_it(name: str, kind: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(5):
        query = make_query(kind, seed)
        expected = truth(query)
        status = ENGINES[name](query).status
        assert expected in ("unclear", status)
        seen[expected] += 1
    assert seen["sat"] > 1 and seen["unsat"] > 1


@pytest.mark.parametrize("name", ENGINES)
def test_ties_are_never_decided_wrongly_and_end(name: str) -> None:
    """Two strict rows that contradict each other by nothing: sum 0, and floats cannot tell."""
    open_ = 0
    for seed in range(2):
        assert ENGINES[name](tie(seed)).status != "unsat"
        outcome = ENGINES[name](tie(seed, strict=True))
        assert outcome.status in ("unsat", "unknown")
        if outcome.status == "unknown":
            width, rounding = map(float, re.findall(r"(\d\.\de[+-]\d\d)", outcome.reason))
            assert ": a tie: " in outcome.reason and width <= rounding
            open_ += 1
    assert open_ > 0


def test_programs_are_counted_only_where_they_are_asked_for() -> None:
    query = random_case(0).query
    with_lp = solve(query, exact_confirm(query), Settings(lp=True), UNLIMITED)
    without = solve(query, exact_confirm(query), Settings(), UNLIMITED)
    assert "lps" in with_lp.statistics and "lps" not in without.statistics


@pytest.mark.slow
def test_what_the_papers_rules_leave_open_is_decided(shared_data: Path) -> None:
    """The points of mnist20x3 that the published algorithm leaves unknown, by its own rules."""
    points = read_points(shared_data / "paper" / "mnist100.npz", (784,)).x
    rules = dict.fromkeys(("alternate", "combined", "signed", "stable"), False)
    model = shared_data / "paper" / "mnist20x3.onnx"
    before, after = (Certifier.of(model, engine="walk", lp=lp, **rules) for lp in (False, True))
    statuses = []
    for number in (1, 39, 60, 95):
        x = points[number].astype(np.float64)
        assert before.certify(x, epsilon=0.25).status == "unknown"
        result = after.certify(x, epsilon=0.25)
        statuses.append(result.status)
        assert result.statistics["lps"] > 0
    assert statuses == ["robust", "not_robust", "robust", "robust"]
