"""Clipped boxes hold every point at which an open disjunct is met."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.bounds.backward import Backward, backward
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.search.clipping import clip_boxes
from tests.helpers.met import is_met
from tests.helpers.random_networks import (
    KINDS,
    normal,
    random_domain,
    random_network,
    random_rows,
    sample,
)
from tests.helpers.random_networks import generator as seeded


def pass_of(query: Query, box: Box) -> Backward:
    """The proved linear bounds of every row in each of the boxes."""
    network = query.network
    bounds = root_bounds(network, box, budget=UNLIMITED)
    rows = torch.eye(network.outputs, dtype=network.dtype).expand(len(box.lower), -1, -1)
    return backward(
        network,
        box,
        len(network.layers),
        rows,
        bounds.lines(),
        rounding=Rounding(network, box, bounds),
    )


def batch_of(query: Query, *boxes: Box) -> Box:
    lower, upper = torch.stack([b.lower for b in boxes]), torch.stack([b.upper for b in boxes])
    return Box(lower.to(query.network.dtype), upper.to(query.network.dtype))


def linear_query(weights: list[list[float]], limits: list[float], *counts: int) -> Query:
    """Conjunctions of so many rows of y = weights . x, each at most its limit."""
    matrix = torch.tensor(weights, dtype=torch.float64)
    network = Network((), Dense((0,), (matrix,), torch.zeros(len(matrix)).double()), len(matrix[0]))
    eye, start, unsafe = np.eye(len(matrix)), 0, []
    for count in counts:
        part = slice(start, start + count)
        unsafe.append(Conjunction(eye[part], np.array(limits[part]), np.zeros(count, bool)))
        start += count
    return ask(network, Box(-torch.ones(network.inputs).double(), torch.ones(1).double()), unsafe)


def clip_linear(query: Query) -> tuple[Box, Tensor]:
    size = query.network.inputs
    box = batch_of(query, Box(-torch.ones(size).double(), torch.ones(size).double()))
    passed = pass_of(query, box)
    return clip_boxes(query, box, passed, query.closed(passed.least))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("counts", [(1,), (2,), (3,), (1, 2), (2, 1, 2)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3)
@given(seed=st.integers(0, 10_000))
def test_no_point_that_meets_an_open_disjunct_is_cut_off(
    kind: str, counts: tuple[int, ...], dtype: torch.dtype, seed: int
) -> None:
    network = random_network(seed, kind, widths=(4, 3))
    boxes = [random_domain(seed + i, size=0.5).box() for i in range(3)]
    y = network(sample(boxes[0], 100, seed))
    unsafe = random_rows(seed, 2, *counts, strict=seed % 2 == 0)
    moved = []
    for c in unsafe:  # met by about a tenth of the first box, so that there is much to cut off
        worst = (y.numpy() @ c.rows.T - c.limits).max(-1)
        moved.append(Conjunction(c.rows, c.limits + np.quantile(worst, 0.1), c.strict))
    query = ask(network, boxes[0], moved)
    coarse = query.to("cpu", dtype)
    batch = batch_of(coarse, *boxes)
    before = seeded(seed)
    closed = torch.rand(3, query.disjuncts, generator=before) < 0.2
    left, shut = clip_boxes(coarse, batch, pass_of(coarse, batch), closed)
    assert bool((shut | ~closed).all())
    assert bool((left.lower >= batch.lower).all()) and bool((left.upper <= batch.upper).all())
    for i in range(3):
        box = Box(batch.lower[i].double(), batch.upper[i].double())
        points = sample(box, 300, seed)
        met = is_met(query, query.network(points))  # [points, disjuncts]
        assert not bool((met[:, shut[i] & ~closed[i]]).any())
        open_ = points[(met & ~closed[i]).any(-1)]
        kept = Box(left.lower[i].double(), left.upper[i].double())
        assert bool(kept.contains(open_).all())


def test_one_row_cuts_each_input_where_the_others_cannot_make_up_for_it() -> None:
    left, closed = clip_linear(linear_query([[1.0, -2.0]], [-2.0], 1))  # x - 2 y <= -2
    assert not bool(closed.any())
    expected = torch.tensor([[-1.0, 0.5]]).double(), torch.tensor([[0.0, 1.0]]).double()
    torch.testing.assert_close((left.lower, left.upper), expected)


def test_all_rows_of_a_conjunction_cut_and_only_what_no_disjunct_needs_is_cut() -> None:
    """x <= -0.5 and -y <= -0.5 leave one corner; or y <= -0.9 leaves a strip across."""
    weights, limits = [[1.0, 0.0], [0.0, -1.0], [0.0, 1.0]], [-0.5, -0.5, -0.9]
    corner, _ = clip_linear(linear_query(weights[:2], limits[:2], 2))
    torch.testing.assert_close(corner.lower, torch.tensor([[-1.0, 0.5]]).double())
    torch.testing.assert_close(corner.upper, torch.tensor([[-0.5, 1.0]]).double())
    hull, closed = clip_linear(linear_query(weights, limits, 2, 1))
    assert not bool(closed.any())
    torch.testing.assert_close(hull.lower, torch.tensor([[-1.0, -1.0]]).double())
    torch.testing.assert_close(hull.upper, torch.tensor([[1.0, 1.0]]).double())


def test_rows_that_leave_nothing_to_each_other_close_their_disjunct_only() -> None:
    """x <= -0.5 and -x <= -0.5 cannot both hold; y <= 0 can."""
    weights, limits = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [-0.5, -0.5, 0.0]
    left, closed = clip_linear(linear_query(weights, limits, 2, 1))
    assert closed.tolist() == [[True, False]]
    torch.testing.assert_close(left.lower, torch.tensor([[-1.0, -1.0]]).double())
    torch.testing.assert_close(left.upper, torch.tensor([[1.0, 0.0]]).double())


def test_rows_that_touch_in_one_point_keep_it() -> None:
    left, closed = clip_linear(linear_query([[1.0], [-1.0]], [0.25, -0.25], 2))
    assert not bool(closed.any())
    assert float(left.lower) <= 0.25 <= float(left.upper)


def test_a_box_with_nothing_open_stays_as_it_was() -> None:
    left, closed = clip_linear(linear_query([[1.0]], [-2.0], 1))  # x <= -2 in [-1, 1]
    assert closed.tolist() == [[True]]
    assert (float(left.lower), float(left.upper)) == (-1.0, 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_limits_are_rounded_outwards(dtype: torch.dtype) -> None:
    """Against rational arithmetic, with a bound that has no rounding of its own to spare."""
    cut = 0
    for seed in range(200):
        source = seeded(seed)
        center, weight = normal(source, 2).to(dtype) * 100, normal(source, 1, 1, 2).to(dtype)
        radius = torch.rand(2, generator=source).to(dtype)
        box = Box((center - radius).unsqueeze(0), (center + radius).unsqueeze(0))
        w, lower, upper = ([Fraction(v) for v in t.flatten().tolist()]
                           for t in (weight, box.lower, box.upper))  # fmt: skip
        low = [min(a * x, a * y) for a, x, y in zip(w, lower, upper, strict=True)]
        need = -Fraction(float(torch.rand(1, generator=source))) * abs(w[0]) * (upper[0] - lower[0])
        least = torch.tensor([[float(need)]], dtype=dtype)
        least = torch.minimum(least, least.nextafter(torch.full_like(least, -torch.inf)))
        limit = sum(low) - need  # the row w . x - limit has the least value `need`
        passed = Backward(weight, least, least, least, {})
        query = linear_query([[1.0, 1.0]], [0.0], 1)
        left, _ = clip_boxes(query, box, passed, torch.zeros(1, 1, dtype=torch.bool))
        edge = (limit - low[1]) / w[0]  # as far as x_0 can go with x_1 at its best
        if lower[0] <= edge <= upper[0]:
            assert Fraction(float(left.lower[0, 0])) <= edge <= Fraction(float(left.upper[0, 0]))
            cut += bool((left.lower > box.lower).any() or (left.upper < box.upper).any())
    assert cut > 100


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_bound_that_overflowed_cuts_nothing_off(bad: float) -> None:
    query = linear_query([[1.0, 1.0]], [0.0], 1)
    box = batch_of(query, Box(-torch.ones(2).double(), torch.ones(2).double()))
    least = torch.tensor([[bad if bad < 0 else float("nan")]]).double()
    weight = torch.tensor([[[bad, 1.0]]]).double()
    passed = Backward(weight, least, least, least, {})
    left, closed = clip_boxes(query, box, passed, torch.zeros(1, 1, dtype=torch.bool))
    assert not bool(closed.any())
    assert torch.equal(left.lower, box.lower) and torch.equal(left.upper, box.upper)
