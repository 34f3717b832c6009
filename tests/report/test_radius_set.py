"""Radii of many points: certified accuracy against radius, and the summary."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgp_vnn.base.errors import InputError
from fgp_vnn.report.radius_set import (
    PointRadius,
    certified_curve,
    describe_radii,
    percent,
    read_row,
    round_radii,
    summarise_radii,
)

MAXIMUM = 1.0


def row(
    lower: float, upper: float = math.inf, *, y: int | None = 0, number: int = 0
) -> PointRadius:
    tight = math.isfinite(upper) and upper - lower <= 0.01 * upper
    ended = "tight" if tight else "max" if lower >= MAXIMUM else "timeout"
    return PointRadius(number, y, 0, lower, upper, ended, "walk", 0.5)


@st.composite
def rows(draw: st.DrawFn) -> list[PointRadius]:
    """Points whose true radius is between their bounds, right and wrong ones."""
    made = []
    for number in range(draw(st.integers(1, 12))):
        lower = draw(st.floats(0, MAXIMUM))
        upper = draw(st.one_of(st.floats(lower, 2 * MAXIMUM), st.just(math.inf)))
        made.append(row(lower, upper, y=draw(st.integers(0, 1)), number=number))
    return made


@given(rows(), st.floats(0, MAXIMUM))
def test_the_curve_is_the_share_of_right_points_with_that_bound(
    points: list[PointRadius], radius: float
) -> None:
    curve = certified_curve(points, MAXIMUM)
    assert curve.radius[0] == 0 and curve.radius[-1] == MAXIMUM
    assert (np.diff(curve.radius) > 0).all()
    step = int(np.searchsorted(curve.radius, radius))  # constant up to and with its right end
    for side, shares in (("lower", curve.lower), ("upper", curve.upper)):
        count = sum(point.right and getattr(point, side) >= radius for point in points)
        assert shares[step] == pytest.approx(count / len(points))


@given(rows())
def test_a_few_radii_have_short_names_and_cover_the_bounds(points: list[PointRadius]) -> None:
    radii = round_radii(points, MAXIMUM)
    assert radii[0] == 0 and radii == sorted(set(radii))
    assert all(radius <= MAXIMUM and len(f"{radius:g}") <= 8 for radius in radii)
    steps = np.diff(radii)
    farthest = max(point.lower for point in points)
    if len(radii) > 1:
        assert farthest <= radii[-1] + steps[0] * (1 + 1e-9)


def test_the_summary_counts_and_takes_medians() -> None:
    points = [row(0.5, 0.502), row(0.2, 0.4, y=1), row(1.0)]
    summary = summarise_radii(points, MAXIMUM)
    assert summary["points"] == 3 and summary["tight"] == 1
    assert summary["counterexamples"] == 2 and summary["at_maximum"] == 1
    assert summary["mean_lower"] == pytest.approx(1.7 / 3)
    assert summary["median_gap"] == pytest.approx((0.002 / 0.502 + 0.5) / 2)
    assert summary["accuracy"] == pytest.approx(2 / 3)
    shares = {entry["radius"]: entry for entry in summary["certified_accuracy"]}
    assert shares[0.4]["lower"] == shares[0.4]["upper"] == pytest.approx(2 / 3)
    assert shares[1.0]["lower"] == shares[1.0]["upper"] == pytest.approx(1 / 3)
    assert "1 tight, 1 certified up to 1, 2 with" in describe_radii(summary)
    lines = describe_radii(summary).splitlines()
    assert lines[2:4] == ["accuracy 0.667", "radius    certified  at most"]
    assert "0.4           0.667    0.667" in lines


def test_without_classes_there_is_no_accuracy() -> None:
    summary = summarise_radii([row(0.5, 0.6, y=None)], MAXIMUM)
    assert "accuracy" not in summary and "certified_accuracy" not in summary
    assert describe_radii(summarise_radii([], MAXIMUM)) == "0 points"


def test_a_point_without_a_counterexample_has_no_gap() -> None:
    assert math.isinf(row(0.5).gap)
    assert row(0.0, 0.0).gap == 0
    assert summarise_radii([row(0.5)], MAXIMUM)["median_gap"] is None


def test_the_gap_of_a_point_certified_up_to_the_maximum_does_not_count() -> None:
    reached = [row(1.0, 14.0), row(1.0, 20.0)]
    assert all(math.isinf(point.gap) for point in reached)
    summary = summarise_radii([*reached, row(0.5, 0.505)], MAXIMUM)
    assert summary["at_maximum"] == 2 and summary["counterexamples"] == 3
    assert summary["median_gap"] == pytest.approx(0.005 / 0.505)
    assert "2 certified up to 1, 3 with a counterexample" in describe_radii(summary)
    assert "median gap of the others 0.99 %; median" in describe_radii(summary)
    assert "gap" not in describe_radii(summarise_radii(reached, MAXIMUM))


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.934, "93 %"),
        (0.9999, "100 %"),
        (0.0123, "1.2 %"),
        (0.01, "1 %"),
        (0.0, "0 %"),
        (9.1e-7, "0.000091 %"),
        (None, "-"),
        (math.inf, "-"),
    ],
)
def test_a_percentage_has_two_digits_and_no_exponent(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_a_row_reads_the_same_from_csv_and_from_json() -> None:
    plain: dict[str, object] = {"point": 3, "y": None, "label": 2, "lower": 0.25, "upper": None}
    plain |= {"ended": "max", "decided_by": "bounds", "seconds": 0.125}
    text = {name: "" if value is None else str(value) for name, value in plain.items()}
    assert read_row(plain) == read_row(text)
    assert read_row(plain).upper == math.inf
    with pytest.raises(InputError, match="lower"):
        read_row({name: value for name, value in plain.items() if name != "lower"})
