"""The walk against an exact oracle, on tiny networks where every answer can be known."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box, L2Ball
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.walk.walk import WalkOptions, walk_regions
from tests.helpers.exact import TOLERANCE, least_worst, polygon, polytope
from tests.helpers.met import is_met
from tests.helpers.random_networks import (
    KINDS,
    confirm_in,
    random_domain,
    random_network,
    random_rows,
    sample,
)
from tests.helpers.ticking import Ticking

PAST = Budget.of(0.0, None)


def walk(query: Query, options: WalkOptions | None = None, budget: Budget | None = None) -> Outcome:
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    return walk_regions(
        query, bounds, confirm_in(query), budget or UNLIMITED, options or WalkOptions()
    )


def random_query(seed: int, domain_kind: str, *, shift: float = 0.0) -> Query:
    """Chains, residual and degenerate networks; one to three disjuncts of one or two rows."""
    network = random_network(seed, KINDS[seed % 3], widths=((4, 3), (6,), (3, 2, 2))[seed % 3])
    counts = ((1,), (2,), (1, 2), (1, 1, 2))[seed % 4]
    unsafe = random_rows(seed, 2, *counts, strict=seed % 5 == 0)
    moved = [Conjunction(c.rows, c.limits - shift, c.strict) for c in unsafe]
    return ask(network, random_domain(seed, domain_kind), moved)


@cache
def exact_least(seed: int, domain_kind: str, shift: float) -> float:
    """The exact answer to a random query."""
    query = random_query(seed, domain_kind, shift=shift)
    return least_worst(query, polytope(query.domain))


def check(query: Query, outcome: Outcome, exact: float) -> None:
    """The verdict is the oracle's wherever the oracle is sure of itself."""
    if exact > TOLERANCE:
        assert outcome.status == "unsat"
    elif exact < -TOLERANCE:
        assert outcome.status == "sat"
        confirmed(query, outcome)


def confirmed(query: Query, outcome: Outcome) -> None:
    assert outcome.counterexample is not None
    x = torch.from_numpy(outcome.counterexample.x).unsqueeze(0)
    assert float((query.domain.project(x) - x).abs().max()) <= 1e-9
    assert bool(is_met(query, query.network(x)).any())


@pytest.mark.parametrize("domain_kind", ["box", "l1", "thin box"])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_verdicts_are_those_of_an_exact_oracle(domain_kind: str, shift: float) -> None:
    seen: set[str] = set()
    for seed in range(5):
        query = random_query(seed, domain_kind, shift=shift)
        outcome = walk(query)
        check(query, outcome, exact_least(seed, domain_kind, shift))
        seen.add(outcome.status)
    assert {"sat", "unsat"} <= seen


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_verdicts_about_discs_lie_between_those_about_polygons(shift: float) -> None:
    """Unsafe in a polygon inside of the disc is unsafe, safe in one around it is safe."""
    seen: set[str] = set()
    for seed in range(7):
        query = random_query(seed, "l2", shift=shift)
        assert isinstance(query.domain, L2Ball)
        outcome = walk(query)
        center, radius = query.domain.center.numpy(), query.domain.radius
        if least_worst(query, polygon(center, radius, outside=False)) < -TOLERANCE:
            assert outcome.status == "sat"
            confirmed(query, outcome)
        elif least_worst(query, polygon(center, radius, outside=True)) > TOLERANCE:
            assert outcome.status == "unsat"
        seen.add(outcome.status)
    assert {"sat", "unsat"} <= seen


@pytest.mark.parametrize("domain_kind", ["clipped l2", "clipped l1"])
def test_clipped_balls_are_never_proved_where_a_sample_breaks_them(domain_kind: str) -> None:
    seen: set[str] = set()
    for seed in range(8):
        query = random_query(seed, domain_kind, shift=0.5)
        outcome = walk(query)
        broken = is_met(query, query.network(sample(query.domain, 400, seed))).any()
        assert not (outcome.status == "unsat" and bool(broken))
        if outcome.status == "sat":
            confirmed(query, outcome)
        seen.add(outcome.status)
    assert {"sat", "unsat"} <= seen


def test_a_clipped_ball_around_a_corner_is_walked_to_its_far_side() -> None:
    """z = 1/2 - x changes sign in [0, 1] although it cannot grow from the centre 0."""
    one = torch.ones(1, 1, dtype=torch.float64)
    layer = Dense((0,), (-one,), 0.5 * one[0])
    network = Network((layer,), Dense((1,), (one,), 0 * one[0]), 1)
    domain = random_domain(0, "clipped l2", inputs=1)
    domain = type(domain)(L2Ball(0 * one[0], 1.0), Box(0 * one[0], one[0]))  # type: ignore[call-arg]
    at_most = Conjunction(np.ones((1, 1)), np.array([0.1]), np.array([False]))
    assert walk(ask(network, domain, [at_most])).status == "sat"


@pytest.mark.parametrize(
    "options",
    [
        WalkOptions(variant="first-boundary"),
        WalkOptions(alternate=False),
        WalkOptions(variant="first-boundary", alternate=False),
        WalkOptions(signed=False),
        WalkOptions(cache_first=False),
        WalkOptions(batch=1),
        WalkOptions(batch=3),
        WalkOptions(regions=2),
    ],
    ids=str,
)
def test_no_variant_says_the_opposite_of_the_oracle(options: WalkOptions) -> None:
    decided = 0
    for seed in range(6):
        query = random_query(seed, "box", shift=0.5)
        outcome = walk(query, options)
        exact = exact_least(seed, "box", 0.5)
        assert outcome.status in ("sat", "unsat", "unknown")
        assert not (outcome.status == "unsat" and exact < -TOLERANCE)
        assert not (outcome.status == "sat" and exact > TOLERANCE)
        decided += outcome.status != "unknown"
    assert decided >= 4


@pytest.mark.parametrize(
    "options", [WalkOptions(signed=False), WalkOptions(cache_first=False), WalkOptions(batch=1)]
)
def test_heuristics_change_the_cost_and_not_the_verdict(options: WalkOptions) -> None:
    for seed in range(6):
        query = random_query(seed, "box", shift=1.0)
        plain, other = walk(query), walk(query, options)
        assert plain.status == other.status
        if plain.status == "unsat" and not options.signed:
            assert plain.statistics["regions"] <= other.statistics["regions"]


def test_a_planted_counterexample_is_never_overlooked() -> None:
    """The unsafe set is a small neighbourhood of the output at a point of the domain."""
    for seed in range(15):
        kind = ("box", "l1", "l2")[seed % 3]
        network = random_network(seed, KINDS[seed % 3], inputs=3, widths=(5, 4))
        domain = random_domain(seed, kind, inputs=3)
        point = sample(domain, 60, seed)[11 + seed % 40]
        y = network(point.unsqueeze(0))[0].numpy()
        rows = np.vstack([np.eye(2), -np.eye(2)])
        near = Conjunction(rows, rows @ y + 1e-3, np.full(4, seed % 2 == 0))
        query = ask(network, domain, [near])
        outcome = walk(query)
        assert outcome.status == "sat"
        confirmed(query, outcome)


def test_a_neighbourhood_that_no_output_reaches_is_proved() -> None:
    proved = 0
    for seed in range(12):
        network = random_network(seed, widths=(4, 3))
        domain = random_domain(seed)
        high = float(network(sample(domain, 2000, seed))[:, 0].max()) + 0.05
        above = Conjunction(np.array([[-1.0, 0.0]]), np.array([-high]), np.array([False]))
        query = ask(network, domain, [above])
        outcome = walk(query)
        check(query, outcome, least_worst(query, polytope(domain)))
        proved += outcome.status == "unsat"
    assert proved > 6


def test_a_deadline_in_the_past_is_a_timeout() -> None:
    query = random_query(1, "box", shift=1.0)
    outcome = walk(query, budget=PAST)
    assert outcome.status == "timeout"
    assert outcome.counterexample is None


@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_a_deadline_that_comes_during_the_walk_is_honoured(times: int) -> None:
    stopped = 0
    for seed in range(6):
        query = random_query(seed, "box", shift=1.0)
        whole = walk(query, WalkOptions(batch=1))
        budget = Ticking(times)
        outcome = walk(query, WalkOptions(batch=1), budget)
        late = len(budget.asked) > times
        assert outcome.status == ("timeout" if late else whole.status)
        stopped += late
    assert 0 < stopped < 12


def test_a_limit_of_regions_gives_up_with_its_reason() -> None:
    query = next(
        q
        for q in (random_query(seed, "box", shift=3.0) for seed in range(50))
        if walk(q).status == "unsat" and walk(q).statistics["regions"] > 5
    )
    outcome = walk(query, WalkOptions(batch=2, regions=2))
    assert outcome.status == "unknown"
    assert "regions" in outcome.reason


def test_an_empty_disjunction_is_safe_and_an_empty_conjunction_is_not() -> None:
    network, domain = random_network(1), random_domain(1)
    assert walk(ask(network, domain, [])).status == "unsat"
    everything = Conjunction(np.zeros((0, 2)), np.zeros(0), np.zeros(0, bool))
    assert walk(ask(network, domain, [everything])).status == "sat"


@pytest.mark.slow
def test_a_confirmation_that_refuses_everything_is_never_sat() -> None:
    def refuse(points: Tensor) -> Counterexample | None:
        return None

    for seed in (2, 3):
        query = random_query(seed, "box")
        bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
        outcome = walk_regions(query, bounds, refuse, UNLIMITED, WalkOptions())
        exact = exact_least(seed, "box", 0.0)
        assert outcome.status == ("unsat" if exact > 0 else "unknown")
        assert bool(outcome.reason) == (outcome.status == "unknown")


def test_looser_bounds_of_the_layers_cost_time_and_nothing_else() -> None:
    for seed in range(10):
        query = random_query(seed, "box", shift=0.5)
        wide = [torch.full((1, n), 1e6).double() for n in query.network.widths]
        loose = LayerBounds(tuple(-w for w in wide), tuple(wide))
        outcome = walk_regions(query, loose, confirm_in(query), UNLIMITED, WalkOptions())
        assert outcome.status == walk(query).status
