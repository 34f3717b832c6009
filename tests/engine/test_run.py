"""The pipeline on random networks: every step may decide, none may be wrong."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.engine.settings import Settings
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.inputs import InputSplits
from fgp_vnn.strategy import Neurons, Strategy
from tests.helpers.exact import TOLERANCE, least_worst, polytope
from tests.helpers.met import is_met
from tests.helpers.random_cases import exact_confirm, random_case, sliver, wrong
from tests.helpers.random_networks import (
    KINDS,
    confirm_in,
    random_domain,
    random_network,
    random_rows,
    sample,
)
from tests.helpers.solving import solve
from tests.helpers.ticking import Ticking


def random_query(seed: int, domain_kind: str = "box") -> Query:
    network = random_network(seed, KINDS[seed % 3], inputs=3, widths=((8, 6), (10,))[seed % 2])
    unsafe = random_rows(seed, 2, *((1,), (2,), (1, 2, 1))[seed % 3], strict=seed % 7 == 0)
    moved = [Conjunction(c.rows, c.limits - 0.5, c.strict) for c in unsafe]
    return ask(network, random_domain(seed, domain_kind, inputs=3, size=0.7), moved)


@cache
def exact_least(seed: int) -> float:
    """The exact answer to a random query about a box."""
    query = random_query(seed)
    return least_worst(query, polytope(query.domain))


def decide(query: Query, **settings: object) -> Verdict:
    return solve(query, confirm_in(query), Settings(**settings), UNLIMITED)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"engine": "walk", "attack": False},
        {"engine": "split", "attack": False},
        {"engine": "bounds"},
        {"variant": "first-boundary", "attack": False},
        {"alternate": False, "attack": False},
    ],
    ids=str,
)
def test_every_engine_agrees_with_the_oracle(settings: dict[str, object]) -> None:
    complete = settings.get("engine") != "bounds" and "variant" not in settings
    complete = complete and settings.get("alternate", True) is True
    seen: set[str] = set()
    for seed in range(8):
        query = random_query(seed)
        exact = exact_least(seed)
        verdict = decide(query, **settings)
        if exact > TOLERANCE:
            assert verdict.status in (("unsat",) if complete else ("unsat", "unknown"))
        elif exact < -TOLERANCE:
            assert verdict.status in (("sat",) if complete else ("sat", "unknown"))
        seen.add(verdict.status)
        decided = verdict.status in ("sat", "unsat")
        assert bool(verdict.decided_by) == decided
        assert bool(verdict.reason) == (not decided)
        assert (verdict.counterexample is not None) == (verdict.status == "sat")
    assert {"sat", "unsat"} <= seen


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "split", "walk"])
def test_no_engine_contradicts_an_exact_answer(engine: str) -> None:
    """Ties, slivers, thin boxes, layers of very different size, boundaries through the centre."""
    decided = 0
    for seed in range(2000, 2012):
        case = random_case(seed)
        settings = Settings(engine=engine, attack=False)
        verdict = solve(case.query, exact_confirm(case.query), settings, Ticking(50))
        assert not wrong(verdict.status, case.truth)
        decided += verdict.status in ("sat", "unsat")
    assert decided > 4


@pytest.mark.parametrize("engine", ["auto", "split", "walk"])
def test_a_counterexample_that_is_hidden_and_refused_is_never_proved_away(engine: str) -> None:
    for seed in range(3):
        settings = Settings(engine=engine, attack=False)
        verdict = solve(sliver(seed * 8), lambda p: None, settings, Ticking(50))
        assert verdict.status in ("unknown", "timeout")


@pytest.mark.parametrize("domain_kind", ["l2", "l1", "clipped l2", "clipped l1", "thin box"])
def test_other_domains_are_never_proved_where_a_sample_breaks_them(domain_kind: str) -> None:
    seen: set[str] = set()
    for seed in range(6):
        query = random_query(seed, domain_kind)
        verdict = decide(query, attack=False)
        broken = bool(is_met(query, query.network(sample(query.domain, 300, seed))).any())
        assert not (verdict.status == "unsat" and broken)
        if verdict.counterexample is not None:
            x = torch.from_numpy(verdict.counterexample.x).unsqueeze(0)
            assert float((query.domain.project(x) - x).abs().max()) <= 1e-9
            assert bool(is_met(query, query.network(x)).any())
        seen.add(verdict.status)
    assert {"sat", "unsat"} <= seen


def test_single_precision_proves_nothing_false() -> None:
    proved = 0
    for seed in range(8):
        query = random_query(seed)
        exact = exact_least(seed)
        single = query.to("cpu", torch.float32)
        verdict = solve(
            single, lambda points: None, Settings(attack=False, alternate=False), UNLIMITED
        )
        assert not (verdict.status == "unsat" and exact < -TOLERANCE)
        proved += verdict.status == "unsat"
    assert proved > 1


def test_inputs_that_do_not_move_are_lifted_back() -> None:
    """What is confirmed has the coordinates of the whole input."""
    shapes: list[int] = []
    for seed in range(12):
        query = random_query(seed, "thin box")
        confirm = confirm_in(query)

        def record(points: torch.Tensor) -> object:
            shapes.append(points.shape[-1])
            assert bool((points[:, 1] == query.domain.center[1]).all())  # noqa: B023
            return confirm(points)  # noqa: B023

        solve(query, record, Settings(attack=False), UNLIMITED)  # type: ignore[arg-type]
    assert set(shapes) == {3}


def test_no_unsafe_set_is_decided_by_the_property() -> None:
    verdict = decide(ask(random_network(1), random_domain(1), []))
    assert (verdict.status, verdict.decided_by) == ("unsat", "property")


@pytest.mark.parametrize("engine", ["auto", "walk", "split", "bounds", "attack"])
def test_an_unsafe_set_without_rows_is_met_by_any_point(engine: str) -> None:
    everything = Conjunction(np.zeros((0, 2)), np.zeros(0), np.zeros(0, bool))
    for unsafe in ([everything], [*random_rows(1, 2, 2), everything]):
        query = ask(random_network(1), random_domain(1), unsafe)
        assert decide(query, engine=engine).status == "sat"
        if engine in ("auto", "walk", "split"):
            assert decide(query, engine=engine, attack=False).status == "sat"


def test_an_expired_deadline_is_a_timeout_or_a_proof() -> None:
    seen = set()
    for seed in range(12):
        query = random_query(seed)
        verdict = solve(query, confirm_in(query), Settings(attack=False), Budget.of(0.0, None))
        exact = exact_least(seed)
        assert verdict.status == "timeout" or (verdict.status == "unsat" and exact > -TOLERANCE)
        seen.add(verdict.status)
    assert "timeout" in seen


@pytest.mark.slow
def test_a_confirmation_that_refuses_everything_is_never_sat() -> None:
    seen: set[str] = set()
    for seed in (0, 1, 18):
        query = random_query(seed)
        verdict = solve(query, lambda points: None, Settings(), UNLIMITED)
        exact = exact_least(seed)
        assert abs(exact) > TOLERANCE
        assert verdict.status == ("unsat" if exact > 0 else "unknown")
        seen.add(verdict.status)
    assert seen == {"unsat", "unknown"}


def test_verdicts_repeat_themselves() -> None:
    for seed in range(6):
        query = random_query(seed)
        first, second = decide(query), decide(query)
        assert (first.status, first.decided_by) == (second.status, second.decided_by)
        assert first.statistics == second.statistics
        if first.counterexample is not None:
            assert second.counterexample is not None
            assert np.array_equal(first.counterexample.x, second.counterexample.x)


def test_without_a_time_limit_no_engine_keeps_the_others_from_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A short split search that gives up, then input splits: they must get a deadline."""
    turns: list[float] = []

    class Stalled(InputSplits):
        def begin(self) -> None:
            turns.append(self.budget.left())

    monkeypatch.setattr("fgp_vnn.engine.search_steps.InputSplits", Stalled)
    network = random_network(4, inputs=20, widths=(40,), outputs=2)
    domain = random_domain(4, "box", inputs=20)
    low = float(network(sample(domain, 500, 4))[:, 0].quantile(0.1))
    row = Conjunction(np.array([[1.0, 0.0]]), np.array([low]), np.array([False]))
    query = ask(network, domain, [row])
    strategy = Strategy(short=Neurons(batch=2, most=1))
    settings = Settings(attack=False, engine="split")
    solve(query, lambda points: None, settings, UNLIMITED, strategy)
    assert len(turns) == 1 and 0 < turns[0] < float("inf")
