"""Bounds and collapse in one pass forward, of networks in which few inputs move."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box, Domain, L2Ball
from fgp_vnn.network.model import Dense
from fgp_vnn.query import Query
from fgp_vnn.strategy import Shrinking
from fgp_vnn.transform.chains import Condensed
from fgp_vnn.transform.columns import condense_columns, moving
from tests.bounds.test_operators import IDS, NETS, Net, box_of, twins
from tests.helpers.small_networks import robustness_query, sample

every_net = pytest.mark.parametrize("net", NETS, ids=IDS)


def few_moving(box: Box, count: int = 5) -> Box:
    """The box with all inputs but some of them fixed."""
    moves = torch.arange(len(box.lower)) % (len(box.lower) // count) == 0
    return Box(torch.where(moves, box.lower, box.center), torch.where(moves, box.upper, box.center))


def domains(net: Net) -> dict[str, Domain]:
    network, _ = twins(net)
    box = box_of(network, 0.2)
    return {
        "few": few_moving(box),
        "box": Box(0.8 * box.center + 0.2 * box.lower, 0.8 * box.center + 0.2 * box.upper),
        "ball": L2Ball(box.center, 0.15),
        "point": Box(box.center, box.center),
    }


def condensed(query: Query) -> Condensed:
    found = condense_columns(query, UNLIMITED, Shrinking()).condensed
    assert found is not None
    return found


def rows_of(query: Query) -> tuple[Tensor, int]:
    """Lower bounds of the outputs by backward rows, and how many neurons these leave unstable."""
    network, domain = query.network, query.domain
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    rows = torch.eye(network.outputs, dtype=torch.float64).unsqueeze(0)
    rounding = Rounding(network, domain, bounds)
    depth = len(network.layers)
    least = backward(network, domain, depth, rows, bounds.lines(), rounding=rounding).least[0]
    return least, sum(int(mask.sum()) for mask in bounds.unstable())


@every_net
@pytest.mark.parametrize("kind", ["few", "box", "ball", "point"])
def test_the_condensed_network_is_equal_on_the_domain_and_no_looser(net: Net, kind: str) -> None:
    network, _ = twins(net)
    query = robustness_query(network, domains(net)[kind])
    small = condensed(query)
    points = sample(query.domain, 200, 1)
    before, after = query.network(points), small.query.network(points)
    defect = small.query.network.output.defect
    assert defect is not None
    assert float(defect.max()) < 1e-8
    assert bool(((before - after).abs() <= defect).all())
    assert bool((before >= small.least).all())
    least, unstable = rows_of(query)
    assert bool((small.least >= least - 1e-8).all())
    assert len(small.neurons) <= unstable


@every_net
@pytest.mark.parametrize("kind", ["few", "box", "ball"])
def test_bounds_of_all_neurons_hold_at_samples(net: Net, kind: str) -> None:
    network, _ = twins(net)
    query = robustness_query(network, domains(net)[kind])
    known = condense_columns(query, UNLIMITED, Shrinking()).known
    assert len(known.lower) == len(network.layers)
    for z, low, high in zip(
        network.preactivations(sample(query.domain, 200, 2)), known.lower, known.upper, strict=False
    ):
        assert bool((low <= z).all()) and bool((z <= high).all())


@every_net
@pytest.mark.parametrize("columns", [1, 3])
def test_columns_that_go_forward_in_parts_are_the_same(net: Net, columns: int) -> None:
    network, _ = twins(net)
    query = robustness_query(network, box_of(network, 0.2))
    widest = max(network.inputs, *network.widths)
    some = condense_columns(query, UNLIMITED, Shrinking(pushed=8 * columns * widest)).condensed
    every = condensed(query)
    assert some is not None
    assert len(every.neurons) > 3
    torch.testing.assert_close(some.least, every.least)
    for part, whole in zip(some.query.network.maps, every.query.network.maps, strict=True):
        assert isinstance(part, Dense) and isinstance(whole, Dense)
        torch.testing.assert_close(part.weights, whole.weights)


@every_net
def test_what_is_left_are_the_unstable_neurons_by_their_numbers(net: Net) -> None:
    network, _ = twins(net)
    query = robustness_query(network, box_of(network, 0.2))
    small = condensed(query)
    points = sample(query.domain, 50, 3)
    every = torch.cat(query.network.preactivations(points)[:-1], -1)
    left = torch.cat(small.query.network.preactivations(points)[:-1], -1)
    torch.testing.assert_close(left, every[:, small.neurons])


@pytest.mark.parametrize(
    "budget", [Budget(0.0, 1 << 30), Budget(math.inf, 0)], ids=["time", "memory"]
)
def test_without_time_or_memory_nothing_is_condensed(budget: Budget) -> None:
    network, _ = twins(NETS[0])
    found = condense_columns(
        robustness_query(network, domains(NETS[0])["few"]), budget, Shrinking()
    )
    assert found.condensed is None
    assert not found.known.lower


def test_bounds_of_the_first_layers_are_kept_where_memory_ends() -> None:
    network, _ = twins(NETS[0])
    query = robustness_query(network, domains(NETS[0])["few"])
    widest = max(network.widths)
    for layers in range(1, len(network.layers)):
        # Room for the columns of the inputs, and for ever fewer of the neurons'.
        for columns in range(7, 200):
            budget = replace(UNLIMITED, memory=2 * 4 * 8 * widest * columns)
            found = condense_columns(query, budget, Shrinking())
            if len(found.known.lower) == layers:
                break
        again = root_bounds(query.network, query.domain, known=found.known, budget=UNLIMITED)
        whole = root_bounds(query.network, query.domain, budget=UNLIMITED)
        for a, b in zip(again.lower, whole.lower, strict=True):
            assert bool((a >= b - 1e-9).all())


def test_fixed_inputs_take_no_columns() -> None:
    network, _ = twins(NETS[0])
    box = domains(NETS[0])["few"]
    chosen = moving(box)
    assert 0 < len(chosen) < network.inputs
    small = condensed(robustness_query(network, box)).query.network
    weight = small.output.weights[0]  # type: ignore[attr-defined]
    assert weight.shape[1] == network.inputs
    fixed = torch.ones(network.inputs, dtype=torch.bool)
    fixed[chosen] = False
    assert not bool(weight[:, fixed].any())
