"""Alternating projections: regions that one projection leaves inconclusive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog
from torch import Tensor

from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, L1Ball, L2Ball
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.regions.halfspaces import HalfSpaces
from fgp_vnn.regions.nearest_points import nearest, nearest_in_norm
from fgp_vnn.regions.refute import Refuter
from fgp_vnn.search.leaves import Leaves, leaf_effort
from fgp_vnn.strategy import Projections
from oracle.radius import least_distance
from tests.helpers.exact import TOLERANCE, least, polytope
from tests.helpers.random_networks import (
    KINDS,
    confirm_in,
    random_domain,
    random_network,
    random_rows,
    sample,
)


def settle_at(query: Query, point: torch.Tensor) -> tuple[Counterexample | None, bool]:
    """Settle disjunct 0 in the region of a point."""
    z = query.network.preactivations(point.unsqueeze(0))[:-1]
    signs = torch.cat([torch.where(part >= 0, 1, -1).to(torch.int8) for part in z], -1)
    which = torch.zeros(1, dtype=torch.long)
    effort = leaf_effort(Projections(), False)
    leaves = Leaves(query, confirm_in(query), UNLIMITED, effort, Refuter(query, UNLIMITED))
    settled = leaves.settle(signs, which)
    return settled.found, bool(settled.closed)


@pytest.mark.parametrize("domain_kind", ["box", "l1"])
def test_what_is_proved_not_to_be_met_in_a_region_is_not(domain_kind: str) -> None:
    """Against the exact least value of the worst row within the region."""
    proved = found_one = 0
    for seed in range(9):
        network = random_network(seed, KINDS[seed % 3])
        domain = random_domain(seed, domain_kind)
        query = ask(network, domain, random_rows(seed, 2, 1 + seed % 2))
        point = sample(domain, 40, seed)[seed]
        found, closed = settle_at(query, point)
        signs = [
            torch.where(z >= 0, 1.0, -1.0)[0]
            for z in query.network.preactivations(point.unsqueeze(0))[:-1]
        ]
        exact = least(query.network, polytope(domain), rows=query.rows_of(0), signs=signs)
        assert not (closed and exact < -TOLERANCE)
        assert not (found is not None and closed)
        # Rows that are constant in the region are decided before, by their value.
        if exact > 1e-3 and KINDS[seed % 3] != "degenerate":
            assert closed
        proved += closed
        found_one += found is not None
    assert proved >= 3 and found_one >= 3


@pytest.mark.parametrize("domain_kind", ["l2", "clipped l2", "clipped l1"])
def test_nothing_is_closed_in_which_a_sample_is_unsafe(domain_kind: str) -> None:
    for seed in range(9):
        network = random_network(seed, KINDS[seed % 3])
        domain = random_domain(seed, domain_kind)
        points = sample(domain, 200, seed)
        y = network(points[seed : seed + 1])[0].numpy()
        rows = np.vstack([np.eye(2), -np.eye(2)])
        near = Conjunction(rows, rows @ y + 1e-6, np.zeros(4, bool))
        query = ask(network, domain, [near])
        _, closed = settle_at(query, points[seed])  # the point itself is unsafe
        assert not closed


def test_constant_neurons_do_not_keep_a_region_from_being_closed() -> None:
    """Rows of zeros cannot be scaled to length one."""
    network = random_network(0, "degenerate", widths=(5, 4))
    domain = random_domain(0)
    y = network(sample(domain, 500))
    row = Conjunction(
        np.array([[1.0, 0.0], [-1.0, 0.0]]),
        np.array([float(y[:, 0].min()) - 0.01, 100.0]),
        np.zeros(2, bool),
    )
    found, closed = settle_at(ask(network, domain, [row]), domain.center)
    assert found is None and closed


def test_a_region_without_constraints_is_settled_too() -> None:
    everything = Conjunction(np.zeros((0, 2)), np.zeros(0), np.zeros(0, bool))
    network = random_network(0)
    domain = random_domain(0, size=1e-6)  # no neuron changes its sign: none of them binds
    found, closed = settle_at(ask(network, domain, [everything]), domain.center)
    assert not closed
    assert found is not None


def _random_spaces(seed: int) -> HalfSpaces:
    """Half-spaces that all hold a point away from the centre, so that they meet."""
    source = torch.Generator().manual_seed(seed)
    rows = torch.randn(3, 6, 4, generator=source, dtype=torch.float64)
    inside = torch.randn(3, 4, 1, generator=source, dtype=torch.float64)
    room = torch.rand(3, 6, generator=source, dtype=torch.float64)
    values = -(rows @ inside).squeeze(-1) - 0.1 * room
    return HalfSpaces(rows, values, torch.zeros_like(values))


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_point_in_l2_is_exact(seed: int) -> None:
    spaces = _random_spaces(seed)
    ball = L2Ball(torch.zeros(4, dtype=torch.float64), 2.0)
    part, _ = nearest(ball, spaces, UNLIMITED, steps=400, look=20)
    for number in range(3):
        exact = least_distance(-spaces.rows[number].numpy(), -spaces.values[number].numpy())
        assert float(part[number]) * 2.0 == pytest.approx(exact, rel=1e-8)
        assert float(part[number]) * 2.0 <= exact * (1 + 1e-12)


@pytest.mark.parametrize("find", [nearest, nearest_in_norm])
def test_multipliers_that_overflow_are_no_distance(
    find: Callable[..., tuple[Tensor, Tensor]],
) -> None:
    """Opposite half-spaces with numbers so large that their sums are infinite."""
    huge = torch.tensor([[[1e-300], [-1e-300]]], dtype=torch.float64)
    values = torch.full((1, 2), 1e308, dtype=torch.float64)
    spaces = HalfSpaces(huge, values, torch.zeros_like(values))
    domain = L1Ball(torch.zeros(1, dtype=torch.float64), 1.0)
    part, _ = find(domain, spaces, UNLIMITED, steps=400, look=20)
    assert bool(part.isfinite().all())


@pytest.mark.parametrize("norm", ["linf", "l1"])
@pytest.mark.parametrize("seed", range(2))
def test_the_nearest_point_in_other_norms_is_never_nearer_than_it_is(norm: str, seed: int) -> None:
    spaces = _random_spaces(seed)
    zero = torch.zeros(4, dtype=torch.float64)
    ball = Box(zero - 2.0, zero + 2.0) if norm == "linf" else L1Ball(zero, 2.0)
    part, _ = nearest_in_norm(ball, spaces, UNLIMITED, steps=2000, look=20)
    for number in range(3):
        exact = _least_in_norm(spaces.rows[number].numpy(), spaces.values[number].numpy(), norm)
        assert exact * 0.99 <= float(part[number]) * 2.0 <= exact * (1 + 1e-9)


def _least_in_norm(rows: NDArray[np.float64], values: NDArray[np.float64], norm: str) -> float:
    """min |u| such that rows u + values <= 0, by a linear program."""
    inputs = rows.shape[1]
    sizes = inputs if norm == "l1" else 1
    eye = np.eye(inputs)
    spread = -np.eye(inputs) if norm == "l1" else -np.ones((inputs, 1))
    above = np.vstack(
        [
            np.hstack([rows, np.zeros((len(rows), sizes))]),
            np.hstack([eye, spread]),
            np.hstack([-eye, spread]),
        ]
    )
    right = np.concatenate([-values, np.zeros(2 * inputs)])
    cost = np.concatenate([np.zeros(inputs), np.ones(sizes)])
    solved = linprog(cost, A_ub=above, b_ub=right, bounds=(None, None), method="highs")
    return float(solved.fun)
