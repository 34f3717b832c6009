"""How often the host reads the device in a batch of each search: on a GPU each time is a stall.

Operations are launches there; their limits are what was counted, with a little room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch

from fgp_vnn.attack.descent import falsify
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, L2Ball
from fgp_vnn.query import Query, ask
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.inputs import split_inputs
from fgp_vnn.search.walk.walk import PatternQueue, WalkOptions, walk_regions
from fgp_vnn.strategy import Attack, Descent, HashTable, Inputs, Neurons, Slopes, Strategy, Walk
from tensor_operations import TensorOperations
from tests.bounds.test_operators import twins
from tests.bounds.test_patches import NETS
from tests.helpers.random_networks import random_network, random_rows
from tests.helpers.solving import search_neurons

MOST = 2  # reads in a batch


def query_of(limit: float, *, widths: tuple[int, ...] = (16, 16, 16), inputs: int = 4) -> Query:
    """A network of which one output is to be below a limit, in a box."""
    network = random_network(1, inputs=inputs, widths=widths)
    box = Box(torch.full((inputs,), -1.0).double(), torch.full((inputs,), 1.0).double())
    (unsafe,) = random_rows(1, 2, 1)
    return ask(network, box, [replace(unsafe, limits=unsafe.limits * 0 + limit)])


def lowest(query: Query) -> float:
    """About the least value of the row."""
    points = 2 * torch.rand(20_000, query.network.inputs).double() - 1
    return float(query.network(points).min())


def unreachable(room: float, **shape: Any) -> Query:
    """The same with a limit below all values, and `room` between them."""
    return query_of(lowest(query_of(0.0, **shape)) - room, **shape)


def between(
    monkeypatch: pytest.MonkeyPatch, kind: type, method: str, run: Callable[[], object]
) -> list[tuple[int, int]]:
    """Operations and reads between one call of a method and the next, from the second one on."""
    seen: list[tuple[int, int]] = []
    plain = getattr(kind, method)
    with TensorOperations() as counted:

        def noting(*args: Any) -> Any:
            seen.append(counted.totals)
            return plain(*args)

        monkeypatch.setattr(kind, method, noting)
        run()
        seen.append(counted.totals)
    return [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(seen[1:])]


def assert_few(batches: list[tuple[int, int]], operations: int) -> None:
    assert len(batches) >= 3
    assert max(count for _, count in batches) <= MOST, batches
    assert max(count for count, _ in batches) <= operations, batches


def test_a_batch_of_boxes_is_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    query = unreachable(0.3)
    strategy = Strategy(inputs=Inputs(batch=64), attack=Attack(box_pause=100_000))
    how = Subdivision(strategy=strategy)

    def run() -> None:
        assert split_inputs(query, lambda points: None, UNLIMITED, how).status == "unsat"

    assert_few(between(monkeypatch, Frontier, "pop", run), 700)


@pytest.mark.slow
@pytest.mark.parametrize(("clipped", "operations"), [(0, 2800), (8, 3500)])
def test_a_batch_of_bundles_is_read_twice(
    monkeypatch: pytest.MonkeyPatch, clipped: int, operations: int
) -> None:
    query = unreachable(0.3)
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    slopes = replace(Slopes(), bundles=Slopes().bundles.on_device())
    neurons = Neurons(batch=16, most=60, clipped=clipped, near=1.0)
    strategy = Strategy(neurons=neurons, slopes=slopes)

    def run() -> None:
        outcome = search_neurons(query, bounds, lambda points: None, UNLIMITED, strategy)
        assert "leaves" not in outcome.statistics

    assert_few(between(monkeypatch, Frontier, "pop", run), operations)


def test_a_batch_of_regions_is_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    query = unreachable(50.0, widths=(12, 12), inputs=3)
    query = replace(query, domain=L2Ball(query.domain.center, 1.0))
    endless = tuple(torch.full((1, n), torch.inf).double() for n in query.network.widths)
    bounds = LayerBounds(tuple(-part for part in endless), endless)
    roomy = HashTable(slots=1 << 16, few=0)  # a table that does not grow meanwhile
    how = WalkOptions(numbers=Walk(table=roomy))

    def run() -> None:
        outcome = walk_regions(query, bounds, lambda points: None, UNLIMITED, how)
        assert outcome.status == "unsat" and outcome.statistics["regions"] > 1000

    assert_few(between(monkeypatch, PatternQueue, "take", run), 500)


def test_a_step_of_an_attack_is_read_once() -> None:
    query = unreachable(50.0)
    totals = []
    for steps in (5, 15):
        with TensorOperations() as counted:
            assert falsify(query, lambda points: None, UNLIMITED, Descent(steps=steps)) is None
        totals.append(counted.totals)
    (few, few_reads), (many, many_reads) = totals
    assert many_reads - few_reads == 10
    assert many - few <= 10 * 55


@pytest.mark.parametrize("boxes", [1, 8])
def test_first_bounds_are_read_once_a_layer(boxes: int) -> None:
    network = random_network(2, inputs=4, widths=(12, 12, 12, 12))
    lower = torch.full((boxes, 4), -0.5).double()
    with TensorOperations() as counted:
        root_bounds(network, Box(lower, -lower), budget=UNLIMITED)
    operations, reads = counted.totals
    assert reads <= len(network.layers)
    assert operations <= 135 * len(network.layers)


def test_first_bounds_by_patches_are_read_twice_a_layer() -> None:
    network, _ = twins(NETS[0])
    center = torch.zeros(network.inputs).double()
    with TensorOperations() as counted:
        root_bounds(network, Box(center - 0.2, center + 0.2), budget=UNLIMITED)
    assert counted.reads.total() <= MOST * len(network.layers)


def test_reads_are_counted_whatever_they_are_called() -> None:
    x = torch.tensor([1.0, -1.0])
    with TensorOperations() as counted:
        float(x.sum())
        x[x > 0]
        x.tolist()
        torch.nonzero(x)
        x.numpy()
    assert counted.reads.total() == 5
