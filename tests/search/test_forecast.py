"""The prediction of what a search has left."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fgp_vnn.search.forecast import Forecast


def told(*counts: tuple[int, int, float]) -> Forecast:
    forecast = Forecast()
    for bounded, open_, moment in counts:
        forecast.add(bounded, open_, -1.0, moment)
    return forecast


def test_what_has_closed_has_nothing_left() -> None:
    assert told((10, 5, 0.0), (100, 0, 1.0)).left() == (0, 0)
    assert Forecast().left() == (0, 0)


def test_a_tree_that_grows_has_no_end_in_sight() -> None:
    assert told((100, 5, 0.0), (200, 5, 1.0), (400, 9, 2.0)).left() == (math.inf, math.inf)
    assert str(told((100, 5, 0.0), (400, 9, 2.0)).left()) == "no end in sight"


def test_a_steady_fall_is_followed_to_its_end() -> None:
    left = told((1000, 400, 0.0), (1500, 350, 5.0), (2000, 300, 10.0)).left()
    assert left == pytest.approx((3000, 30))
    assert str(left) == "about 3000 more to bound in 30 s"


def test_only_the_second_half_counts() -> None:
    """A tree that has grown first, and falls now."""
    counts = [(n, n, float(n)) for n in range(0, 600, 100)]
    counts += [(500 + n, 500 - n // 2, 500.0 + n) for n in range(100, 600, 100)]
    assert told(*counts).left().bounds == pytest.approx(500)


@pytest.mark.parametrize("chance", [0.3, 0.4])
def test_random_trees_end_about_when_it_is_said(chance: float) -> None:
    """Halves that stay open with a chance below 1/2, batch by batch."""
    rng = np.random.default_rng(1)
    forecast, bounded, open_ = Forecast(), 0, 4000
    said: list[tuple[int, float]] = []
    while open_:
        taken = min(open_, 50)
        bounded += 2 * taken
        open_ += int(rng.binomial(2 * taken, chance)) - taken
        forecast.add(bounded, open_, -1.0, float(bounded))
        if bounded > 1000 and open_ > 500:
            said.append((bounded, forecast.left().bounds))
    assert len(said) > 10
    for at, more in said:
        assert more == pytest.approx(bounded - at, rel=0.5)


def test_no_more_counts_are_kept_than_are_allowed() -> None:
    forecast = Forecast(most=16)
    for n in range(1000):
        forecast.add(n, 2000 - n, -1.0, float(n))
    assert len(forecast.counts) <= 16
    assert forecast.left().bounds == pytest.approx(1001)


def test_a_level_that_rises_while_as_much_stays_open_is_followed_to_zero() -> None:
    """Each rise by 0.1 takes twice the work of all before it."""
    forecast = Forecast()
    for turn in range(6):
        forecast.add(100 * 2**turn, 50, -1.0 + 0.1 * turn, float(2**turn))
    total = 100 * 2**10
    assert forecast.left().bounds == pytest.approx(total - 3200)
    assert forecast.left().seconds == pytest.approx((total - 3200) / 100)


@pytest.mark.parametrize("level", [-math.inf, math.nan, math.inf, 0.0])
def test_levels_that_are_no_numbers_below_zero_say_nothing(level: float) -> None:
    forecast = Forecast()
    forecast.add(100, 50, -1.0, 0.0)
    forecast.add(300, 50, level, 1.0)
    assert forecast.left() == (math.inf, math.inf)
