"""Boxes, balls and clipped balls: supports, maximisers, projections, containment."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fgp_vnn.base.rounding import unit
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.regions.projections import project_onto_half_spaces
from tests.helpers.random_networks import DOMAINS, generator, normal, random_domain, sample

EXACT = ("box", "l2", "l1", "thin box")  # kinds whose support is no upper bound but the maximum

kinds = pytest.mark.parametrize("kind", DOMAINS)
exact_kinds = pytest.mark.parametrize("kind", EXACT)
seeds = st.integers(0, 10_000)


def rows_for(seed: int, inputs: int, count: int = 12) -> torch.Tensor:
    """Random rows, unit rows and a zero row."""
    units = torch.eye(inputs, dtype=torch.float64)
    zero = torch.zeros(1, inputs, dtype=torch.float64)
    return torch.cat([normal(generator(seed), count, inputs), units, -units, zero])


def offsets(domain: Domain, points: torch.Tensor) -> torch.Tensor:
    return points - domain.center


@kinds
@given(seed=seeds, inputs=st.integers(1, 5))
def test_no_point_goes_beyond_the_support(kind: str, seed: int, inputs: int) -> None:
    domain = random_domain(seed, kind, inputs=inputs)
    rows = rows_for(seed, inputs)
    values = offsets(domain, sample(domain, 60, seed)) @ rows.T  # [points, rows]
    assert bool((values.amax(0) <= domain.support(rows) + 1e-12).all())


@kinds
@given(seed=seeds, inputs=st.integers(1, 5))
def test_no_point_goes_beyond_the_reach_to_either_side(kind: str, seed: int, inputs: int) -> None:
    domain = random_domain(seed, kind, inputs=inputs)
    rows = rows_for(seed, inputs)
    values = offsets(domain, sample(domain, 60, seed)) @ rows.T
    assert bool((values.abs().amax(0) <= domain.reach(rows) + 1e-12).all())
    assert torch.equal(domain.reach(rows), domain.reach(-rows))


@kinds
@given(seed=seeds, inputs=st.integers(1, 5))
def test_no_point_goes_beyond_the_sharp_support(kind: str, seed: int, inputs: int) -> None:
    domain = random_domain(seed, kind, inputs=inputs)
    rows = rows_for(seed, inputs)
    values = offsets(domain, sample(domain, 60, seed)) @ rows.T  # [points, rows]
    sharp = domain.sharp_support(rows)
    assert bool((values.amax(0) <= sharp + 1e-12).all())
    assert bool((sharp <= domain.support(rows)).all())


@pytest.mark.parametrize("kind", ["clipped l2", "clipped l1"])
@given(seed=seeds, inputs=st.integers(1, 5))
def test_the_sharp_support_of_a_clipped_ball_is_attained(kind: str, seed: int, inputs: int) -> None:
    """By row / k cut to the box, for the best k, in l2; by filling the best inputs first in l1."""
    domain = random_domain(seed, kind, inputs=inputs, size=0.5)
    assert isinstance(domain, Clipped)
    rows = rows_for(seed, inputs)
    low, high = (side - domain.center for side in (domain.clip.lower, domain.clip.upper))
    for row, sharp in zip(rows, domain.sharp_support(rows).tolist(), strict=True):
        if isinstance(domain.ball, L1Ball):
            best, left = 0.0, domain.ball.radius
            for i in row.abs().argsort(descending=True).tolist():
                taken = min(left, float(high[i] if row[i] > 0 else -low[i]))
                best, left = best + float(row[i].abs()) * taken, left - taken
            assert sharp == pytest.approx(best, abs=1e-9)
            continue
        scales = torch.logspace(-6, 6, 4000, dtype=torch.float64).unsqueeze(-1)
        points = torch.minimum(torch.maximum(scales * row, low), high)
        inside = points[points.norm(dim=-1) <= domain.ball.radius]
        assert float((inside @ row).max()) == pytest.approx(sharp, rel=0.01, abs=1e-4)


def test_the_sharp_support_is_sharper_where_ball_and_box_both_bind() -> None:
    zero, one = torch.zeros(2).double(), torch.ones(2).double()
    ball = Clipped(L2Ball(zero, 1.0), Box(-one, torch.tensor([0.6, 1.0], dtype=torch.float64)))
    row = torch.tensor([[4.0, 3.0]]).double()
    assert float(ball.support(row)) == pytest.approx(5.0)
    assert float(ball.sharp_support(row)) == pytest.approx(4 * 0.6 + 3 * 0.8, abs=1e-9)


@exact_kinds
@given(seed=seeds, inputs=st.integers(1, 5))
def test_the_maximiser_attains_the_support(kind: str, seed: int, inputs: int) -> None:
    domain = random_domain(seed, kind, inputs=inputs)
    rows = rows_for(seed, inputs)
    attained = (offsets(domain, domain.maximiser(rows)) * rows).sum(-1)
    torch.testing.assert_close(attained, domain.support(rows), rtol=1e-12, atol=1e-12)


@kinds
@given(seed=seeds, inputs=st.integers(1, 5))
def test_maximisers_and_projections_are_points_of_the_domain(
    kind: str, seed: int, inputs: int
) -> None:
    domain = random_domain(seed, kind, inputs=inputs)
    far = 5 * normal(generator(seed), 40, inputs)
    for points in (domain.maximiser(rows_for(seed, inputs)), domain.project(far)):
        pulled = domain.center + (points - domain.center) * (1 - 1e-12)
        assert bool(domain.contains(pulled).all())


@kinds
@given(seed=seeds, inputs=st.integers(1, 5))
def test_projection_leaves_points_of_the_domain_alone(kind: str, seed: int, inputs: int) -> None:
    domain = random_domain(seed, kind, inputs=inputs)
    points = sample(domain, 40, seed)
    inside = points[domain.contains(points)]
    assert len(inside) > 0
    assert torch.equal(domain.project(inside), inside)


@exact_kinds
@given(seed=seeds, inputs=st.integers(1, 4))
def test_the_projection_is_the_nearest_point(kind: str, seed: int, inputs: int) -> None:
    """(x - p) . (y - p) <= 0 for all y of the domain: what makes p nearest to x."""
    domain = random_domain(seed, kind, inputs=inputs)
    x = domain.center + 3 * normal(generator(seed), 10, inputs)
    p = domain.project(x)
    y = sample(domain, 60, seed)
    angles = ((x - p).unsqueeze(1) * (y.unsqueeze(0) - p.unsqueeze(1))).sum(-1)
    assert float(angles.max()) <= 1e-9


@kinds
@given(seed=seeds, inputs=st.integers(1, 5))
def test_points_outside_of_the_smallest_box_are_not_contained(
    kind: str, seed: int, inputs: int
) -> None:
    domain = random_domain(seed, kind, inputs=inputs)
    box = domain.box()
    points = sample(domain, 40, seed)
    assert float((box.project(points) - points).abs().max()) <= 1e-12
    for i in range(inputs):
        for face, way in ((box.lower, -1e-12), (box.upper, 1e-12)):
            point = domain.center.clone()
            point[i] = face[i] + way
            assert not bool(domain.contains(point))


@exact_kinds
def test_the_box_is_the_smallest(kind: str) -> None:
    domain = random_domain(3, kind, inputs=3)
    units = torch.eye(3, dtype=torch.float64)
    box = domain.box()
    torch.testing.assert_close(box.upper - domain.center, domain.support(units))
    torch.testing.assert_close(domain.center - box.lower, domain.support(-units))


def test_containment_has_no_tolerance() -> None:
    box = Box(torch.tensor([0.1]).double(), torch.tensor([0.3]).double())
    inside = torch.tensor([[0.1], [0.3], [0.2]]).float().double()
    # 0.1 and 0.3 as float32 are the doubles themselves here; one step beyond is outside.
    beyond = torch.nextafter(inside[:2], torch.tensor([[-1.0], [1.0]]).double())
    assert box.contains(inside).tolist() == [True, True, True]
    assert box.contains(beyond).tolist() == [False, False]


@kinds
@given(seed=seeds, inputs=st.integers(1, 4), value=st.floats(0, 5))
def test_a_projection_onto_a_hyperplane_lies_on_it_where_the_domain_meets_it(
    kind: str, seed: int, inputs: int, value: float
) -> None:
    domain = random_domain(seed, kind, inputs=inputs)
    rows = rows_for(seed, inputs)
    values = torch.full((len(rows),), value, dtype=torch.float64)
    points = project_onto_half_spaces(domain, rows, values)
    pulled = domain.center + (points - domain.center) * (1 - 1e-12)
    assert bool(domain.contains(pulled).all())
    if kind in EXACT:
        left = (offsets(domain, points) * rows).sum(-1) + values
        met = domain.support(-rows) >= value
        assert float(left[met].abs().sum()) <= 1e-9


def test_the_projection_onto_a_hyperplane_is_the_nearest_in_the_norm_of_the_domain() -> None:
    center, row = torch.zeros(2, dtype=torch.float64), torch.tensor([[3.0, 4.0]]).double()
    value = torch.tensor([2.5]).double()
    wide = Box(center - 1, center + 1)
    for domain, point in (
        (wide, [-2.5 / 7] * 2),
        (L2Ball(center, 1.0), [-0.3, -0.4]),
        (L1Ball(center, 1.0), [0, -0.625]),
    ):
        assert project_onto_half_spaces(domain, row, value)[0].tolist() == pytest.approx(point)


@kinds
def test_the_least_value_is_not_above_any_point(kind: str) -> None:
    domain = random_domain(5, kind, inputs=3)
    rows = rows_for(5, 3)
    values = normal(generator(6), len(rows))
    seen = offsets(domain, sample(domain)) @ rows.T + values
    least = values - domain.support(-rows)
    assert bool((least <= seen.amin(0) + 1e-12).all())
    if kind in EXACT:
        at = domain.maximiser(-rows)
        torch.testing.assert_close((offsets(domain, at) * rows).sum(-1) + values, least)


@pytest.mark.parametrize("radius", [1e-3, 1.0, 5.0, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("ball", [L2Ball, L1Ball])
def test_a_zero_row_has_a_finite_maximiser(
    ball: type[L2Ball | L1Ball], dtype: torch.dtype, radius: float
) -> None:
    domain = ball(torch.zeros(3, dtype=dtype), radius)
    zero = torch.zeros(1, 3, dtype=dtype)
    assert torch.equal(domain.maximiser(zero), zero)
    assert bool((domain.support(zero) <= 1e-11).all())  # what underflow could hide
    assert bool(project_onto_half_spaces(domain, zero, torch.ones(1, dtype=dtype)).isfinite().all())


def test_a_clipped_ball_knows_that_its_two_sides_differ() -> None:
    clip = Box(torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    domain = Clipped(L2Ball(torch.zeros(1, dtype=torch.float64), 0.5), clip)
    row = torch.ones(1, 1, dtype=torch.float64)
    assert domain.support(row).tolist() == [0.5]
    assert float(domain.support(-row)) <= 1e-300  # what underflow could hide
    assert domain.reach(-row).tolist() == domain.reach(row).tolist() == [0.5]


def test_a_batch_of_boxes_answers_as_each_box_alone() -> None:
    """Up to rounding, which two ways to compute one sum share out differently."""
    inputs = 3
    boxes = [random_domain(seed, "box", inputs=inputs).box() for seed in range(4)]
    batch = Box(torch.stack([b.lower for b in boxes]), torch.stack([b.upper for b in boxes]))
    rows = normal(generator(1), 4, 5, inputs)
    values = normal(generator(2), 4, 5)
    off = 2 * unit(rows.dtype).share(inputs + 8)  # of the sizes of a sum: each is off by half
    for i, box in enumerate(boxes):
        assert torch.equal(batch.maximiser(rows)[i], box.maximiser(rows[i]))
        assert torch.equal(batch.project(rows)[i], box.project(rows[i]))
        assert torch.equal(batch.contains(rows[:, 0])[i], box.contains(rows[i, 0]))
        support = box.support(rows[i])
        assert bool(((batch.support(rows)[i] - support).abs() <= off * support).all())
        moved = project_onto_half_spaces(batch, rows, values)[i]
        moved = moved - project_onto_half_spaces(box, rows[i], values[i])
        assert bool((moved.abs() <= off * (box.center.abs() + box.radius)).all())


def test_coordinates_of_width_zero_never_move() -> None:
    domain = random_domain(2, "thin box", inputs=4)
    fixed = torch.tensor([1, 3])
    for points in (
        domain.maximiser(rows_for(1, 4)),
        domain.project(normal(generator(3), 9, 4)),
        project_onto_half_spaces(domain, rows_for(1, 4), torch.ones(21, dtype=torch.float64)),
    ):
        assert torch.equal(points[:, fixed], domain.center[fixed].expand(len(points), 2))


@kinds
def test_a_domain_in_another_precision_is_the_same_set(kind: str) -> None:
    domain = random_domain(4, kind, inputs=3)
    single = domain.to("cpu", torch.float32)
    assert single.center.dtype == torch.float32
    rows = rows_for(4, 3)
    torch.testing.assert_close(
        single.support(rows.float()), domain.support(rows).float(), rtol=1e-5, atol=1e-6
    )


@given(seed=seeds, inputs=st.integers(1, 5))
def test_nothing_is_lost_in_a_lower_precision(seed: int, inputs: int) -> None:
    """Boxes are rounded outwards, balls grow by what their centre moves."""
    box = random_domain(seed, "box", inputs=inputs).box()
    single = box.to("cpu", torch.float32)
    assert bool((single.lower.double() <= box.lower).all())
    assert bool((single.upper.double() >= box.upper).all())
    for kind in ("l2", "l1"):
        ball = random_domain(seed, kind, inputs=inputs)
        rounded = ball.to("cpu", torch.float32)
        assert isinstance(rounded, L2Ball | L1Ball)
        wide = type(rounded)(rounded.center.double(), rounded.radius + 1e-12)
        assert bool(wide.contains(ball.maximiser(rows_for(seed, inputs)[:-1])).all())
