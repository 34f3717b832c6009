"""Bounds and collapse in one pass forward."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.strategy import Shrinking
from fgp_vnn.transform.chains import Condensed, condense, is_chain
from fgp_vnn.transform.stable import undecided
from tests.helpers.small_networks import (
    balls,
    bounds_of,
    random_network,
    random_point,
    robustness_query,
    sample,
)
from tests.helpers.solving import first_bounds
from tests.helpers.ticking import Ticking

KINDS = ("l2", "l1", "linf", "clipped")


def chain(kind: str, seed: int, *, deep: bool = False) -> Query:
    widths = (6, *[8] * 12, 3) if deep else (6, 8, 9, 7, 3)
    network = random_network(widths, seed)
    return robustness_query(network, balls(random_point(6, seed), 0.15)[kind])


def condensed(query: Query) -> Condensed:
    small = condense(query, UNLIMITED, Shrinking())
    assert small is not None
    return small


@pytest.mark.parametrize(
    "budget", [Budget(0.0, 1 << 30), Budget(math.inf, 0)], ids=["time", "memory"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_without_time_or_memory_bounds_hold_and_prove_no_more(kind: str, budget: Budget) -> None:
    query = chain(kind, 1)
    least, whole = first_bounds(query, budget), condensed(query)
    assert bool((least <= whole.least + 1e-9).all())
    values = query.network.preactivations(sample(query.domain, 400, 1))
    assert bool((values[-1] >= least - 1e-9).all())


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_condensed_network_is_equal_on_the_domain(kind: str, seed: int, deep: bool) -> None:
    query = chain(kind, seed, deep=deep)
    small = condensed(query)
    points = sample(query.domain, 400, seed)
    before, after = query.network(points), small.query.network(points)
    defect = small.query.network.output.defect
    assert defect is not None
    assert float(defect.max()) < 1e-5
    assert bool(((before - after).abs() <= defect).all())


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_bounds_hold_at_sampled_points(kind: str, seed: int, deep: bool) -> None:
    query = chain(kind, seed, deep=deep)
    small = condensed(query)
    points = sample(query.domain, 400, seed)
    values = small.query.network.preactivations(points)
    assert bool((values[-1] >= small.least - 1e-9).all())
    for z, low, high in zip(values, small.bounds.lower, small.bounds.upper, strict=False):
        assert bool((low - 1e-9 <= z).all()) and bool((z <= high + 1e-9).all())
    assert all(bool(mask.all()) for mask in small.bounds.unstable())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_no_more_neurons_are_unstable_than_by_a_backward_pass(kind: str, seed: int) -> None:
    query = chain(kind, seed)
    count = sum(int(mask.sum()) for mask in bounds_of(query).unstable())
    assert condensed(query).query.network.neurons <= count


def test_stable_neurons_are_left_out() -> None:
    query = chain("l2", 0)
    small = condensed(query)
    assert small.query.network.neurons < query.network.neurons
    assert is_chain(query.network)
    assert small.query.network.inputs == query.network.inputs


def test_time_may_be_up_within_a_product() -> None:
    query, one = chain("linf", 3), replace(Shrinking(), products=1)
    whole, looks, more = condensed(query), Ticking(10_000), Ticking(10_000)
    condense(query, looks, Shrinking())
    columns = condense(query, more, one)
    assert columns is not None
    torch.testing.assert_close(columns.least, whole.least)
    assert len(more.asked) >= len(looks.asked) + query.network.inputs * len(query.network.layers)
    assert condense(query, Ticking(len(more.asked) // 2), one) is None


def test_a_point_is_a_domain_too() -> None:
    network = random_network((6, 8, 9, 7, 3), 0)
    query = robustness_query(network, balls(random_point(6, 0), 0.0)["l2"])
    small = condensed(query)
    assert small.query.network.neurons == 0
    expected = query.network(query.domain.center.unsqueeze(0))[0]
    assert torch.allclose(small.least, expected, atol=1e-9)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_neurons_without_weights_are_left_out(kind: str, deep: bool) -> None:
    query = chain(kind, 3, deep=deep)
    dead = query.network.layers[1]
    assert isinstance(dead, Dense)
    weight, bias = dead.weights[0].clone(), dead.bias.clone()
    weight[:4], bias[:4] = 0, 0
    layers = list(query.network.layers)
    layers[1] = replace(dead, weights=(weight,), bias=bias)
    query = replace(query, network=replace(query.network, layers=tuple(layers)))
    small = condensed(query)
    gone = set(range(8, 12))  # places of these neurons, after the first layer of 8
    assert not gone & set(small.neurons.tolist())
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    assert not bool(undecided(bounds)[1][:4].any())
    values = query.network.preactivations(sample(query.domain, 400, 1))
    assert bool((values[-1] >= small.least - 1e-9).all())


@pytest.mark.parametrize("deep", [0, 9], ids=["by norms", "by sums"])
def test_defects_of_all_maps_are_in_the_bounds_and_in_the_condensed_maps(deep: int) -> None:
    """z = (x + 5, x), then z' = relu(z), each up to 0.1, and y = 3 relu(z'_1) - 15 + relu(z'_2):
    the first neurons are on, and their errors of 0.2 count three times."""
    one, zero = torch.ones(2, 1, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    first = Dense((0,), (one,), torch.tensor([5.0, 0.0]).double(), zero + 0.1)
    second = Dense((1,), (torch.eye(2).double(),), zero, zero + 0.1)
    last = Dense((2,), (torch.tensor([[3.0, 1.0]]).double(),), zero[:1] - 15)
    network, row = Network((first, second), last, 1), torch.zeros(1, dtype=torch.long)
    query = Query(network, Box(-one[0], one[0]), row, row.bool(), 1)
    found = condense(query, UNLIMITED, replace(Shrinking(), deep=deep))
    assert found is not None
    assert -4 < float(found.least) <= -3.6
    assert [round(float(side), 6) for side in found.bounds.lower] == [-1.1, -0.1]
    assert [round(float(side), 6) for side in found.bounds.upper] == [1.1, 1.2]
    defects = [affine.defect for affine in found.query.network.maps]
    for defect, least in zip(defects, (0.1, 0.1, 0.6), strict=True):
        assert defect is not None and least <= float(defect) < least + 0.001
