"""Boxes that are bounded by forms of second order."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.activations.powers import SQUARE
from fgp_vnn.network.activations.product import Product
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.search.boxes import BoundedBoxes, Subdivision
from fgp_vnn.search.curved_boxes import CurvedRows, bound_curved
from fgp_vnn.search.inputs import split_inputs
from fgp_vnn.search.last_boxes import Parts
from fgp_vnn.strategy import Inputs, Strategy
from tests.helpers.random_networks import confirm_in, generator, normal


def random_query(seed: int) -> Query:
    """Products of ReLUs and inputs; a disjunct of one row, one of two, and one of three, of which
    one is shared."""
    random = generator(seed)
    first = Dense((0,), (normal(random, 5, 2),), normal(random, 5))
    second = Dense((0, 1), (normal(random, 4, 2), normal(random, 4, 5)), normal(random, 4))
    left, right = torch.randint(0, 4, (2, 5), generator=random)
    rows = normal(random, 6, 5)
    rows[4] = rows[1]
    offset = 2 * normal(random, 6)
    offset[4] = offset[1]
    straight = normal(random, 6, 2)
    straight[4] = straight[1]
    network = Network(
        (first, second), Dense((0, 2), (straight, rows), offset), 2, (RELU, Product(left, right))
    )
    box = Box(-torch.ones(2).double(), torch.ones(2).double())
    disjunct = torch.tensor([0, 1, 1, 2, 2, 2])
    return Query(network, box, disjunct, torch.zeros(6, dtype=torch.bool), 3)


def random_parts(query: Query, seed: int, count: int = 60) -> Parts:
    random = generator(seed)
    center = 2 * torch.rand(count, 2, generator=random, dtype=torch.float64) - 1
    radius = torch.rand(count, 2, generator=random, dtype=torch.float64).square()
    signs = torch.zeros(count, query.network.neurons, dtype=torch.int8)
    return Parts(center - radius, center + radius, signs)


def bounded(query: Query, parts: Parts, *, cut: bool = True) -> BoundedBoxes:
    return bound_curved(CurvedRows(query, Inputs()), parts, cut=cut)


def samples(parts: Parts, seed: int) -> Tensor:
    """[boxes, points, inputs]"""
    share = torch.rand(len(parts.lower), 600, 2, generator=generator(seed), dtype=torch.float64)
    lower, upper = parts.lower.unsqueeze(1), parts.upper.unsqueeze(1)
    return lower + (upper - lower) * share


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_no_sample_that_meets_a_disjunct_is_closed_or_cut_off(seed: int, cut: bool) -> None:
    query = random_query(seed)
    parts = random_parts(query, seed)
    found = bounded(query, parts, cut=cut)
    points = samples(parts, seed)
    g = query.network(points.flatten(0, 1)).view(*points.shape[:2], -1)
    met = (query.worst(g) < -1e-9).any(-1)  # [boxes, points]
    assert not bool((met.any(-1) & found.closed).any())
    lower, upper = found.left.lower.unsqueeze(1), found.left.upper.unsqueeze(1)
    inside = ((points >= lower) & (points <= upper)).all(-1)
    assert bool((inside | ~met).all())
    assert bool((found.nominal.unsqueeze(1) <= g + 1e-9).all())


def test_boxes_of_random_queries_are_closed_as_well() -> None:
    closed = [bounded(q, random_parts(q, 1)).closed.sum() for q in map(random_query, range(20))]
    assert sum(map(int, closed)) > 100


def between(low: float, high: float) -> Query:
    """Whether low <= x' x and x' x <= high at once."""
    eye, one = torch.eye(2).double(), torch.ones(1, 2).double()
    output = Dense((1,), (torch.cat([one, -one]),), torch.tensor([-high, low]).double())
    layer = Dense((0,), (eye,), torch.zeros(2).double())
    box = Box(-torch.ones(2).double(), torch.ones(2).double())
    network = Network((layer,), output, 2, (SQUARE,))
    return Query(network, box, torch.zeros(2).long(), torch.zeros(2, dtype=torch.bool), 1)


def whole(query: Query) -> Parts:
    box = query.domain.box()
    signs = torch.zeros(1, query.network.neurons, dtype=torch.int8)
    return Parts(box.lower.unsqueeze(0), box.upper.unsqueeze(0), signs)


def test_rows_that_curve_against_each_other_are_closed_together() -> None:
    never, sometimes = between(1.2, 0.4), between(0.4, 1.2)
    assert bool(bounded(never, whole(never)).closed.all())
    assert not bool(bounded(sometimes, whole(sometimes)).closed.any())


def test_a_row_that_is_only_touched_stays_open() -> None:
    touched = between(0.5, 0.5)
    assert not bool(bounded(touched, whole(touched)).closed.any())


def test_errors_of_forms_count_in_sums_of_rows() -> None:
    """relu(x) - x / 2 - 0.1 <= 0 and x^2 - 2 <= 0 at 0, where the form of the first is 0.15 with an
    error of 0.25."""
    one, zero = torch.ones(1, 1).double(), torch.zeros(1).double()
    same, rows = Dense((0,), (one,), zero), torch.tensor([[1.0], [0.0]]).double()
    weights = (-rows / 2, rows, 1 - rows)
    output = Dense((0, 1, 2), weights, torch.tensor([-0.1, -2.0]).double())
    network = Network((same, same), output, 1, (RELU, SQUARE))
    two = torch.zeros(2)
    query = Query(network, Box(-one[0], one[0]), two.long(), two.bool(), 1)
    forms = CurvedRows(query, Inputs(symbols=0))
    assert not bool(bound_curved(forms, whole(query), cut=False).closed.any())


def descent(seed: int, step: float) -> Query:
    """Whether x' P x falls by less than a little along a step of a stable system with a ReLU, on a
    ring x' P x in [1, 2]."""
    random = generator(seed)
    root = torch.eye(3).double() + 0.2 * normal(random, 3, 3)
    form = root.T @ root
    bend = 0.2 * step * normal(random, 3, 2)
    relu = Dense((0,), (normal(random, 2, 3),), torch.zeros(2).double())
    after = (1 - step) * torch.eye(3).double()
    factors = Dense(
        (0, 1), (torch.cat([after, form @ after]), torch.cat([bend, form @ bend])),
        torch.zeros(6).double(),
    )  # fmt: skip
    same = Dense((0,), (torch.cat([torch.eye(3).double(), form]),), torch.zeros(6).double())
    pairs = Product(torch.arange(3), torch.arange(3, 6))
    one, none = torch.ones(1, 3).double(), torch.zeros(1, 3).double()
    output = Dense(
        (2, 3), (torch.cat([-one, none, none]), torch.cat([one, one, -one])),
        torch.tensor([-1e-4, -2.0, 1.0]).double(),
    )  # fmt: skip
    box = Box(-2 * torch.ones(3).double(), 2 * torch.ones(3).double())
    network = Network((relu, factors, same), output, 3, (RELU, pairs, pairs))
    return Query(network, box, torch.zeros(3).long(), torch.zeros(3, dtype=torch.bool), 1)


def test_a_search_with_them_takes_fewer_boxes_than_with_linear_bounds() -> None:
    query = descent(0, 0.02)
    found = []
    for inputs in (12, 0):
        how = Subdivision(strategy=Strategy(inputs=Inputs(together=inputs)))
        found.append(split_inputs(query, lambda points: None, UNLIMITED, how))
    assert [outcome.status for outcome in found] == ["unsat", "unsat"]
    assert 3 * found[0].statistics["boxes"] < found[1].statistics["boxes"]


@pytest.mark.parametrize("seed", range(6))
def test_a_search_with_them_never_contradicts_a_sample(seed: int) -> None:
    query = random_query(100 + seed)
    outcome = split_inputs(query, confirm_in(query), UNLIMITED, Subdivision())
    points = samples(whole(query), seed)
    met = bool((query.worst(query.network(points[0])) < -1e-9).any())
    assert outcome.status == ("sat" if met else outcome.status)
    assert outcome.status in ("sat", "unsat")
