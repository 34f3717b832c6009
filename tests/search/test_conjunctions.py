"""Rows weighed against each other: no disjunct is closed that some point meets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fgp_vnn.domain.sets import Box
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.conjunctions import WeighedRows, weigh_rows
from fgp_vnn.strategy import Inputs
from tests.helpers.met import is_met
from tests.helpers.random_networks import KINDS, random_domain, random_network, random_rows, sample
from tests.search.test_clipping import batch_of, linear_query, pass_of


def combine_linear(query: Query) -> WeighedRows:
    size = query.network.inputs
    box = batch_of(query, Box(-torch.ones(size).double(), torch.ones(size).double()))
    return weigh_rows(query, box, pass_of(query, box), Inputs())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("counts", [(1,), (2,), (3,), (1, 2), (2, 3)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3)
@given(seed=st.integers(0, 10_000))
def test_no_disjunct_that_a_sample_meets_is_closed(
    kind: str, counts: tuple[int, ...], dtype: torch.dtype, seed: int
) -> None:
    network = random_network(seed, kind, widths=(4, 3))
    boxes = [random_domain(seed + i, size=0.4).box() for i in range(3)]
    y = network(sample(boxes[0], 100, seed)).numpy()
    moved = []
    for c in random_rows(seed, 2, *counts, strict=seed % 2 == 0):
        best = (y @ c.rows.T - c.limits).max(-1).min()
        moved.append(Conjunction(c.rows, c.limits + best + 1e-6, c.strict))  # one sample meets it
    query = ask(network, boxes[0], moved)
    coarse = query.to("cpu", dtype)
    batch = batch_of(coarse, *boxes)
    combined = weigh_rows(coarse, batch, pass_of(coarse, batch), Inputs())
    assert bool((combined.weights >= 0).all())
    for i in range(3):
        box = Box(batch.lower[i].double(), batch.upper[i].double())
        points = sample(box, 200, seed) if i else sample(boxes[0], 100, seed)
        met = is_met(query, query.network(points)).any(0)
        assert not bool((met & combined.closed[i]).any())
        if combined.points is not None:
            assert bool(box.contains(combined.points[i].double()).all()) or dtype == torch.float32


def test_rows_that_exclude_each_other_are_closed_though_none_is_positive() -> None:
    """x <= -0.1 and -x <= -0.1; and the same with rows of very different size."""
    for size in (1.0, 1e-3, 1e4):
        query = linear_query([[1.0], [-size]], [-0.1, -0.1 * size], 2)
        box = batch_of(query, Box(-torch.ones(1).double(), torch.ones(1).double()))
        assert not bool(query.closed(pass_of(query, box).least).any())
        assert combine_linear(query).closed.tolist() == [[True]]


@given(seed=st.integers(0, 10_000))
def test_two_rows_are_weighed_as_well_as_can_be(seed: int) -> None:
    """Two rows that hardly exclude each other: no weights close them by a thousandth less."""
    random = torch.Generator().manual_seed(seed)
    first, other = torch.randn(2, 5, generator=random, dtype=torch.float64)
    second = -first + 0.3 * other
    part = torch.linspace(0, 1, 20_001, dtype=torch.float64).unsqueeze(-1)
    mixed = (1 - part) * first + part * second
    for level in (0.0, 0.4):  # of the first row; the second gets what lets one sum be 0 at least
        room = mixed.abs().sum(-1, keepdim=True) - (1 - part) * level
        least = float((room / part.clamp(min=1e-9)).min())
        for gap, closed in ((1e-3, True), (-1e-3, False)):
            limits = [-level, -least - gap]
            query = linear_query([first.tolist(), second.tolist()], limits, 2)
            assert combine_linear(query).closed.tolist() == [[closed]]


def test_rows_that_only_rounding_keeps_from_closing_are_told() -> None:
    """The gap between the rows is 0.2, and no row is positive by itself."""
    query = linear_query([[1.0], [-1.0]], [-0.1, -0.1], 2)
    box = batch_of(query, Box(-torch.ones(1).double(), torch.ones(1).double()))
    passed = pass_of(query, box)
    worse = passed._replace(least=passed.nominal - 0.11)
    found = weigh_rows(query, box, worse, Inputs())
    assert (found.closed.tolist(), found.almost.tolist()) == ([[False]], [[True]])
    apart = linear_query([[1.0], [-1.0]], [0.1, 0.1], 2)
    found = weigh_rows(apart, box, pass_of(apart, box), Inputs())
    assert (found.closed.tolist(), found.almost.tolist()) == ([[False]], [[False]])


def test_three_rows_in_the_plane_exclude_each_other_only_together() -> None:
    weights = [[1.0, 0.0], [-0.5, 0.8], [-0.5, -0.8]]
    assert combine_linear(linear_query(weights, [-0.25] * 3, 3)).closed.tolist() == [[True]]
    for pair in ([0, 1], [1, 2], [0, 2]):
        query = linear_query([weights[i] for i in pair], [-0.25] * 2, 2)
        assert combine_linear(query).closed.tolist() == [[False]]


def test_rows_that_touch_in_one_point_are_not_closed() -> None:
    """x <= a and -x <= -a is met at a alone, wherever a lies."""
    for a in np.linspace(-1, 1, 41).tolist():
        query = linear_query([[1.0], [-1.0]], [a, -a], 2)
        for dtype in (torch.float64, torch.float32):
            coarse = query.to("cpu", dtype)
            box = batch_of(coarse, Box(-torch.ones(1).double(), torch.ones(1).double()))
            assert not bool(weigh_rows(coarse, box, pass_of(coarse, box), Inputs()).closed.any())


def test_the_rounding_of_the_rows_is_taken_off_their_sum() -> None:
    """The gap between the rows is 0.2: closed with an error of 0.09 each, open with 0.11."""
    query = linear_query([[1.0], [-1.0]], [-0.1, -0.1], 2)
    box = batch_of(query, Box(-torch.ones(1).double(), torch.ones(1).double()))
    passed = pass_of(query, box)
    for error, closed in ((0.09, True), (0.11, False)):
        worse = passed._replace(least=passed.nominal - error)
        assert bool(weigh_rows(query, box, worse, Inputs()).closed) == closed


def test_each_disjunct_is_weighed_by_itself() -> None:
    """x <= -0.1 and -x <= -0.1 would exclude each other, but belong to different disjuncts."""
    query = linear_query([[1.0], [-1.0]], [-0.1, -0.1], 1, 1)
    assert combine_linear(query).closed.tolist() == [[False, False]]
    pairs = linear_query([[1.0], [-1.0]] * 2, [-0.1, -0.1, 0.1, 0.1], 2, 2)
    assert combine_linear(pairs).closed.tolist() == [[True, False]]


def test_a_row_that_is_not_finite_closes_nothing() -> None:
    query = linear_query([[1.0], [-1.0]], [-0.1, -0.1], 2)
    box = batch_of(query, Box(-torch.ones(1).double(), torch.ones(1).double()))
    passed = pass_of(query, box)
    for bad in (float("nan"), float("-inf")):
        spoilt = torch.tensor([[bad, 1.0]]).double()
        worse = passed._replace(
            constant=passed.constant * spoilt, least=torch.full_like(passed.least, bad)
        )
        assert not bool(weigh_rows(query, box, worse, Inputs()).closed.any())
