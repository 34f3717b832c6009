"""With an LP the searches are complete: they end in sat or unsat, and in the right one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from exact import TOLERANCE, Polytope, least_worst, polygon, polytope
from random_cases import FAMILIES, Case, exact_confirm, random_case, tie
from random_networks import KINDS, random_domain, random_network, random_rows

from fgp_vnn.bounds import root_bounds
from fgp_vnn.budget import UNLIMITED
from fgp_vnn.certifier import Certifier
from fgp_vnn.domain import Box, Clipped, L1Ball
from fgp_vnn.points import read_points
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.inputs import Subdivision, split_inputs
from fgp_vnn.search.outcome import Outcome
from fgp_vnn.search.split import Split, split_neurons
from fgp_vnn.settings import Settings
from fgp_vnn.solve import solve
from fgp_vnn.verdict import Verdict

Decide = Callable[[Query], Outcome | Verdict]
CLEAR = [f for f in FAMILIES if f not in ("tie", "strict tie")]


@cache
def case_number(number: int) -> Case:
    """Its truth takes longer to find than any verdict."""
    return random_case(number)


def neurons(query: Query) -> Outcome:
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    return split_neurons(query, bounds, exact_confirm(query), UNLIMITED, Split(lp=True))


def inputs(query: Query) -> Outcome:
    return split_inputs(query, exact_confirm(query), UNLIMITED, Subdivision(lp=True))


def pipeline(**settings: object) -> Decide:
    def decide(query: Query) -> Verdict:
        chosen = Settings(attack=False, lp=True, **settings)  # type: ignore[arg-type]
        return solve(query, exact_confirm(query), chosen, UNLIMITED)

    return decide


ENGINES: dict[str, Decide] = {
    "neurons": neurons,
    "inputs": inputs,
    "auto": pipeline(),
    "walk": pipeline(engine="walk"),
    "walk without alternating projections": pipeline(engine="walk", alternate=False),
    "first boundary": pipeline(engine="walk", variant="first-boundary", alternate=False),
}


@pytest.mark.parametrize("name", ENGINES)
def test_every_random_case_is_decided_as_the_oracle_has_it(name: str) -> None:
    seen: Counter[str] = Counter()
    lps = 0
    for number in range(64):
        if FAMILIES[number % len(FAMILIES)] not in CLEAR:
            continue
        case = case_number(number)
        if case.truth == "unclear" or (name == "inputs" and not isinstance(case.query.domain, Box)):
            continue
        outcome = ENGINES[name](case.query)
        assert outcome.status == case.truth, f"case {number}, {case.family}: {outcome.reason}"
        seen[case.truth] += 1
        lps += outcome.statistics["lps"]
    assert seen["sat"] > 10 and seen["unsat"] > 10
    assert lps or "walk" not in name or "without" not in name


def bounded_by(query: Query) -> tuple[Polytope, Polytope]:
    """A polytope in the domain and one around it."""
    domain = query.domain
    ball = domain.ball if isinstance(domain, Clipped) else domain
    center = ball.center.numpy()
    pair = [
        polytope(ball)
        if isinstance(ball, L1Ball)
        else polygon(center, float(ball.radius), outside=side)  # type: ignore[attr-defined]
        for side in (False, True)
    ]
    if isinstance(domain, Clipped):
        box = polytope(domain.clip)
        pair = [(np.vstack([a, box[0]]), np.append(b, box[1])) for a, b in pair]
    return pair[0], pair[1]


@pytest.mark.parametrize("kind", ["l2", "clipped l2", "clipped l1"])
@pytest.mark.parametrize("name", ["neurons", "walk without alternating projections"])
def test_balls_are_decided_as_polygons_in_and_around_them_have_it(name: str, kind: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(24):
        network = random_network(seed, KINDS[seed % 3], widths=((4, 3), (6,), (3, 2, 2))[seed % 3])
        unsafe = random_rows(seed, 2, *((1,), (2,), (1, 2))[seed % 3])
        moved = [Conjunction(c.rows, c.limits - 0.7, c.strict) for c in unsafe]
        query = ask(network, random_domain(seed, kind), moved)
        inside, around = (least_worst(query, where) for where in bounded_by(query))
        truth = "sat" if inside < -TOLERANCE else "unsat" if around > TOLERANCE else "unclear"
        status = ENGINES[name](query).status
        assert truth in ("unclear", status)
        seen[truth] += 1
    assert seen["sat"] > 4 and seen["unsat"] > 4


@pytest.mark.parametrize("name", ENGINES)
def test_ties_are_never_decided_wrongly_and_end(name: str) -> None:
    """Two strict rows that contradict each other by nothing: sum 0, and floats cannot tell."""
    open_ = 0
    for seed in range(6):
        assert ENGINES[name](tie(seed)).status != "unsat"
        outcome = ENGINES[name](tie(seed, strict=True))
        assert outcome.status in ("unsat", "unknown")
        if outcome.status == "unknown":
            width, rounding = map(float, re.findall(r"(\d\.\de[+-]\d\d)", outcome.reason))
            assert ": a tie: " in outcome.reason and width <= rounding
            open_ += 1
    assert open_ > 2


def test_programs_are_counted_only_where_they_are_asked_for() -> None:
    query = random_case(0).query
    with_lp = solve(query, exact_confirm(query), Settings(lp=True), UNLIMITED)
    without = solve(query, exact_confirm(query), Settings(), UNLIMITED)
    assert "lps" in with_lp.statistics and "lps" not in without.statistics


def test_what_the_papers_rules_leave_open_is_decided(shared_data: Path) -> None:
    """The points of mnist20x3 that the published algorithm leaves unknown, by its own rules."""
    points = read_points(shared_data / "paper" / "mnist100.npz", 784).x
    rules = dict.fromkeys(("attack", "alternate", "joint", "signed", "stable"), False)
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
