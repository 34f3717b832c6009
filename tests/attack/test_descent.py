"""The attack: what it offers, where it stays, and that it repeats itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from fgp_vnn.attack.descent import descend, falsify
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.strategy import Descent
from tests.helpers.met import is_met
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    confirm_in,
    random_domain,
    random_network,
    random_rows,
    sample,
)

LONG = Descent(restarts=8, steps=40)


def unsafe_above(query_seed: int, domain_kind: str, quantile: float) -> Query:
    """Unsafe where y_0 is above what this part of the sampled points reach."""
    network = random_network(query_seed, KINDS[query_seed % 3], inputs=3, widths=(6, 5))
    domain = random_domain(query_seed, domain_kind, inputs=3)
    high = float(network(sample(domain, 500, query_seed))[:, 0].quantile(quantile)) - 0.01
    row = Conjunction(np.array([[-1.0, 0.0]]), np.array([-high]), np.array([False]))
    return ask(network, domain, [row])


@pytest.mark.parametrize("domain_kind", DOMAINS)
def test_counterexamples_that_are_not_rare_are_found(domain_kind: str) -> None:
    for seed in range(10):
        query = unsafe_above(seed, domain_kind, 0.7)
        found = falsify(query, confirm_in(query), UNLIMITED, LONG)
        assert found is not None
        x = torch.from_numpy(found.x).unsqueeze(0)
        assert bool(is_met(query, query.network(x)).any())


def test_a_conjunction_is_attacked_as_a_whole() -> None:
    for seed in range(10):
        network, domain = random_network(seed, inputs=3), random_domain(seed, inputs=3)
        y = network(sample(domain, 60, seed))[30].numpy()
        rows = np.vstack([np.eye(2), -np.eye(2)])
        near = Conjunction(rows, rows @ y + 0.1, np.zeros(4, bool))
        query = ask(network, domain, [near])
        assert falsify(query, confirm_in(query), UNLIMITED, LONG) is not None


@pytest.mark.parametrize("domain_kind", DOMAINS)
def test_only_points_of_the_domain_are_offered(domain_kind: str) -> None:
    offered: list[Tensor] = []

    def record(points: Tensor) -> Counterexample | None:
        offered.append(points)
        return None

    query = unsafe_above(1, domain_kind, 0.5)
    assert falsify(query, record, UNLIMITED, LONG) is None
    points = torch.cat(offered)
    assert float((query.domain.project(points) - points).abs().max()) <= 1e-9


def test_nothing_is_found_where_nothing_is() -> None:
    network, domain = random_network(1), random_domain(1)
    row = Conjunction(np.array([[1.0, 0.0]]), np.array([-1e6]), np.array([False]))
    query = ask(network, domain, [row])
    assert falsify(query, confirm_in(query), UNLIMITED, LONG) is None


def test_a_seed_repeats_the_attack() -> None:
    def trace(seed: int) -> Tensor:
        offered: list[Tensor] = []

        def record(points: Tensor) -> Counterexample | None:
            offered.append(points)
            return None

        query = unsafe_above(2, "box", 0.2)
        falsify(query, record, UNLIMITED, Descent(restarts=4, steps=5, seed=seed))
        return torch.cat(offered)

    assert torch.equal(trace(3), trace(3))
    assert not torch.equal(trace(3), trace(4))


def test_a_deadline_in_the_past_stops_it_after_its_first_look() -> None:
    calls: list[int] = []

    def record(points: Tensor) -> Counterexample | None:
        calls.append(len(points))
        return None

    query = unsafe_above(1, "box", 0.0)
    assert falsify(query, record, Budget.of(0.0, None), LONG) is None
    assert len(calls) <= 1


def test_no_disjunct_needs_no_attack() -> None:
    query = ask(random_network(1), random_domain(1), [])
    assert falsify(query, confirm_in(query), UNLIMITED, LONG) is None


def test_an_empty_conjunction_is_met_by_any_point() -> None:
    everything = Conjunction(np.zeros((0, 2)), np.zeros(0), np.zeros(0, bool))
    for unsafe in ([everything], [*random_rows(1, 2, 2), everything]):
        query = ask(random_network(1), random_domain(1), unsafe)
        assert falsify(query, confirm_in(query), UNLIMITED, LONG) is not None


def test_a_descent_finds_what_lies_below_the_starts_it_is_given() -> None:
    for seed in range(10):
        query = unsafe_above(seed, "box", 0.99)
        points = sample(query.domain, 200, seed)
        best = points[query.worst(query.network(points)).amin(-1).argsort()[:20]]
        short = Descent(steps=12, first_step=0.1, last_step=0.002)
        assert descend(query, confirm_in(query), UNLIMITED, short, best) is not None
