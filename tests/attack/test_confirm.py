"""The last word on a counterexample: snapped into the box as float32, run, and judged."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fgp_vnn.attack.ball_judge import BallJudge, within
from fgp_vnn.attack.confirm import Judge
from fgp_vnn.base.robustness import NORMS, Norm
from fgp_vnn.property.numbers import snap

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

finite = st.floats(-1e30, 1e30, allow_nan=False)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)
LARGEST = float(np.finfo(np.float32).max)


def doubles(*values: float) -> Doubles:
    return np.array(values, dtype=np.float64)


def identity_judge(lower: Doubles, upper: Doubles, *, at_least: float = -np.inf) -> Judge:
    """The network y = x, broken in the box where all y >= at_least."""

    def breaks(x: Doubles, y: Doubles) -> bool:
        inside = (lower <= x).all() and (x <= upper).all()
        return bool(inside and (y >= at_least).all())

    return Judge(lower, upper, lambda x: x, breaks)


@given(finite, finite, finite)
def test_a_snapped_point_is_in_the_box_if_any_float32_is(a: float, b: float, point: float) -> None:
    lower, upper = doubles(min(a, b)), doubles(max(a, b))
    x = snap(doubles(point), lower, upper)
    assert lower[0] <= x[0] <= upper[0]
    first = np.float32(lower[0])  # the lowest float32 that is not below the lower bound
    if first < lower[0]:
        first = np.nextafter(first, np.float32(np.inf))
    if first <= upper[0]:
        assert x[0] == np.float32(x[0])


@given(finite, st.floats(0, 1e3))
def test_narrow_boxes_are_hit_where_they_hold_a_float32(value: float, width: float) -> None:
    """Boxes that are narrower than the spacing of float32, around one of its values."""
    middle = np.float64(np.float32(value))
    spacing = np.float64(np.spacing(np.abs(np.float32(value))))
    lower, upper = doubles(middle - width * 1e-4 * spacing), doubles(middle + 0.2 * spacing)
    for point in (lower, upper, doubles(middle)):
        x = snap(point, lower, upper)
        assert lower[0] <= np.float64(x[0]) <= upper[0]


@given(finite)
def test_a_float32_of_the_box_stays_as_it_is(value: float) -> None:
    x = np.float32(value)
    box = doubles(np.float64(x) - 1), doubles(np.float64(x) + 1)
    assert snap(doubles(float(x)), *box)[0] == x


def test_the_nearest_float32_is_taken_where_it_is_inside() -> None:
    assert snap(doubles(0.1), doubles(0.0), doubles(1.0))[0] == np.float32(0.1)


@pytest.mark.parametrize("value", [0.1, -0.1, 1e-40, 1 / 3])
def test_a_point_that_rounds_out_of_the_box_is_moved_back_in(value: float) -> None:
    """float32(0.1) is above 0.1: the float32 below is the last one in the box."""
    for lower, upper in ((value - 1, value), (value, value + 1)):
        x = np.float64(snap(doubles(value), doubles(lower), doubles(upper))[0])
        assert lower <= x <= upper


def test_a_point_far_outside_is_brought_to_the_face() -> None:
    x = snap(doubles(50.0, -50.0), doubles(-1.0, -1.0), doubles(2.0, 2.0))
    assert x.tolist() == [2.0, -1.0]


def test_a_box_without_a_float32_is_judged_by_the_digits_written() -> None:
    lower, upper = doubles(0.1), doubles(0.1)  # no float32 is equal to 0.1
    found = identity_judge(lower, upper)(torch.tensor([[0.1]]).double())
    assert found is not None
    assert found.x.tolist() == [0.1]
    assert found.y.tolist() == [np.float32(0.1)]  # what onnxruntime makes of it


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(-LARGEST, LARGEST), (1e39, 1e40), (-1e40, -1e39), (0.0, 1e300), (-SMALLEST, SMALLEST)],
)
def test_in_extreme_boxes_the_nearest_float32_inside_is_taken_without_a_warning(
    lower: float, upper: float
) -> None:
    for point in (lower, upper, (lower / 2 + upper / 2), LARGEST):
        inside = min(max(point, lower), upper)
        nearest = float(np.float32(min(max(inside, -LARGEST), LARGEST)))
        expected = nearest if lower <= nearest <= upper else inside
        assert snap(doubles(point), doubles(lower), doubles(upper)).tolist() == [expected]


def test_a_point_that_breaks_the_property_is_confirmed_with_its_output() -> None:
    judge = identity_judge(doubles(0.0, 0.0), doubles(1.0, 1.0), at_least=0.5)
    found = judge(torch.tensor([[0.2, 0.9], [0.7, 0.6], [0.8, 0.8]]).double())
    assert found is not None
    assert found.x.tolist() == found.y.tolist() == [np.float32(0.7), np.float32(0.6)]


def test_a_point_outside_is_never_confirmed_as_it_is() -> None:
    """Only what it becomes inside the box counts."""
    judge = identity_judge(doubles(0.0), doubles(1.0), at_least=2.0)
    assert judge(torch.tensor([[3.0]]).double()) is None


def test_points_that_do_not_break_the_property_are_refused() -> None:
    judge = identity_judge(doubles(0.0), doubles(1.0), at_least=0.5)
    assert judge(torch.tensor([[0.0], [0.25]]).double()) is None
    assert judge(torch.zeros(0, 1).double()) is None


@pytest.mark.parametrize("output", [np.nan, np.inf, -np.inf])
def test_outputs_that_are_not_finite_confirm_nothing(output: float) -> None:
    judge = Judge(
        doubles(0.0), doubles(1.0), lambda x: np.array([output], np.float32), lambda x, y: True
    )
    assert judge(torch.tensor([[0.5]]).double()) is None


def test_a_point_that_is_not_a_number_confirms_nothing() -> None:
    judge = identity_judge(doubles(0.0), doubles(1.0))
    assert judge(torch.tensor([[torch.nan]]).double()) is None


def test_the_judge_sees_the_values_that_the_network_saw() -> None:
    seen: list[tuple[Doubles, Doubles]] = []

    def run(x: Floats) -> Floats:
        assert x.dtype == np.float32
        return np.asarray(x * np.float32(3), dtype=np.float32)

    def breaks(x: Doubles, y: Doubles) -> bool:
        seen.append((x, y))
        return False

    Judge(doubles(0.0), doubles(1.0), run, breaks)(torch.tensor([[0.1]]).double())
    ((x, y),) = seen
    assert x.dtype == y.dtype == np.float64
    assert x[0] == np.float64(np.float32(0.1))
    assert y[0] == np.float64(np.float32(0.1) * np.float32(3))


@pytest.mark.parametrize("norm", NORMS)
def test_whether_a_point_is_in_a_ball_is_decided_exactly_at_every_size(norm: Norm) -> None:
    """Also where squares underflow: the largest epsilon that excludes the point, and the next."""
    generator = np.random.default_rng(0)
    for size in 10.0 ** np.repeat(np.array([-45.0, -30, -10, 0, 10, 38]), 20):
        x = (size * generator.normal(size=3)).astype(np.float32)
        center = np.where(generator.random(3) < 0.5, 0, 1e-150 * generator.normal(size=3))
        pairs = zip(x, center, strict=True)
        offset = [abs(Fraction(float(a)) - Fraction(float(c))) for a, c in pairs]
        for epsilon in size * np.array([0, 1e-300, 1e-160, 1, 2]):
            exact = {
                "linf": max(offset) <= Fraction(epsilon),
                "l1": sum(offset) <= Fraction(epsilon),
                "l2": sum(a * a for a in offset) <= Fraction(epsilon) ** 2,
            }
            assert within(x, center, float(epsilon), norm) == exact[norm]
            tiny = np.zeros(3), np.array([1.5e-162, 1.6e-162, 0]) * generator.random()
            least = float(np.hypot(*tiny[1][:2]))
            for near in (least, np.nextafter(least, 0), np.nextafter(least, 1)):
                inside = sum(Fraction(v) ** 2 for v in tiny[1]) <= Fraction(near) ** 2
                assert within(tiny[0].astype(np.float32), tiny[1], near, "l2") == inside


@pytest.mark.parametrize(
    ("targets", "found"), [(None, True), ((1,), True), ((0, 1), True), ((0,), False), ((2,), False)]
)
def test_a_class_is_not_a_target_of_itself(targets: tuple[int, ...] | None, found: bool) -> None:
    center, lower, upper = doubles(1, 0, -9), doubles(-1, -2, -11), doubles(3, 2, -7)
    judge = BallJudge(center, 2.0, "linf", lower, upper, lambda x: x, 0, targets)
    assert (judge(torch.tensor([[0.0, 1.0, -9.0]])) is not None) == found
