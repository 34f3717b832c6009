"""Lower bounds of quadratic forms with symbols, over boxes."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds.quadratics import Curved, Shape, bottom, least, straight, without_symbols
from tests.helpers.extreme_networks import exact
from tests.helpers.flushing import flushed
from tests.helpers.random_networks import generator, normal

SHAPE = Shape(3, 2, torch.device("cpu"))
ROUNDS = 8


def random_forms(seed: int, count: int = 40) -> tuple[Tensor, Tensor, Tensor]:
    """Forms in which symbols often keep their sign, and some of which curve up or down only."""
    random = generator(seed)
    flat = normal(random, count, SHAPE.flat)
    bend = 0.5 * normal(random, count, SHAPE.columns - SHAPE.flat)
    bend[::3, len(SHAPE.pairs[0]) :] *= 0.1
    root = normal(random, count, 3, 3)
    square = root @ root.transpose(-1, -2)
    first, second = SHAPE.pairs
    packed = torch.where(first == second, 1.0, 2.0) * square[:, first, second]
    bend[1::3, : len(first)], bend[2::3, : len(first)] = packed[1::3], -packed[2::3]
    return flat, bend, 0.1 * normal(random, count).abs()


def places(seed: int, count: int) -> Tensor:
    """Values [count, inputs + symbols] of y and h, corners among them."""
    found = 2 * torch.rand(count, 5, generator=generator(seed), dtype=torch.float64) - 1
    found[::2] = found[::2].sign()
    found[1::4, 3:] = found[1::4, 3:].sign()
    return found


def values(flat: Tensor, bend: Tensor, at: Tensor) -> Tensor:
    """[places, forms]"""
    y, h = at[:, :3], at[:, 3:]
    first, second = SHAPE.pairs
    products = (h.unsqueeze(-1) * y.unsqueeze(-2)).flatten(1)
    return (
        torch.cat([torch.ones_like(y[:, :1]), at], -1) @ flat.T
        + torch.cat([y[:, first] * y[:, second], products], -1) @ bend.T
    )


@pytest.mark.parametrize("seed", range(10))
def test_no_value_is_below_the_bounds(seed: int) -> None:
    flat, bend, error = random_forms(seed)
    form = without_symbols(flat, bend, error, SHAPE)
    found = least(form, ROUNDS)
    at = places(seed, 4000)
    seen = values(flat, bend, at)
    assert bool((found.bound <= seen.amin(0) - error + 1e-12).all())
    tangent = found.level + at[:, :3] @ form.slope.T
    assert bool((tangent <= seen - error + 1e-12).all())
    assert bool((bottom(form.slope, found.level) <= tangent.amin(0) + 1e-12).all())


def test_a_bound_is_the_least_value_where_a_form_is_convex_and_symbols_keep_their_signs() -> None:
    flat, bend, _ = random_forms(3)
    bend[:, len(SHAPE.pairs[0]) :] *= 1e-3
    flat[:, 4:] += flat[:, 4:].sign()
    convex = slice(1, None, 3)
    form = without_symbols(flat[convex], bend[convex], torch.zeros_like(flat[convex, 0]), SHAPE)
    found = least(form, 400)
    at = torch.cat([places(5, 20000)[:, :3], torch.zeros(20000, 2).double()], -1)
    y = torch.cat([at[:, :3], found.point])
    bent = torch.einsum("pi,fij,pj->pf", y, form.matrix, y)
    seen = (form.value + y @ form.slope.T + bent).amin(0)
    assert bool((found.bound >= seen - 0.02 * seen.abs() - 1e-3).all())


def test_what_symbols_of_one_sign_do_is_linear() -> None:
    """h (3 + y_1) is least at h = -1: there it is -3 - y_1, and nothing is lost."""
    flat, bend = torch.zeros(1, SHAPE.flat).double(), torch.zeros(1, 12).double()
    flat[0, 4], bend[0, 6] = 3.0, 1.0
    form = without_symbols(flat, bend, torch.zeros(1).double(), SHAPE)
    assert float(least(form, ROUNDS).bound) == pytest.approx(-4.0, abs=1e-12)
    assert float(form.value) == -3.0 and form.slope.tolist() == [[-1.0, 0.0, 0.0]]


def test_forms_that_curve_down_are_least_at_their_corners() -> None:
    flat, bend = torch.zeros(1, SHAPE.flat).double(), torch.zeros(1, 12).double()
    bend[0, [0, 3, 5]] = -1.0
    found = least(without_symbols(flat, bend, torch.zeros(1).double(), SHAPE), ROUNDS)
    assert float(found.bound) == pytest.approx(-3.0, abs=1e-12)


def exact_value(flat: Tensor, bend: Tensor, at: Tensor) -> Fraction:
    numbers, products, point = exact(flat), exact(bend), exact(at)
    y, h = point[:3], point[3:]
    total = numbers[0] + sum((a * b for a, b in zip(numbers[1:], point, strict=True)), Fraction(0))
    pairs = zip(*(part.tolist() for part in SHAPE.pairs), strict=True)
    monomials = [y[i] * y[j] for i, j in pairs] + [a * b for a in h for b in y]
    return total + sum((a * b for a, b in zip(products, monomials, strict=True)), Fraction(0))


def check_exactly(scale: float) -> None:
    flat, bend, error = random_forms(7, 12)
    flat, bend, error = flat * scale, bend * scale, 0 * error
    form = without_symbols(flat, bend, error, SHAPE)
    found = least(form, ROUNDS)
    simple, level = straight(flat, error, SHAPE)
    floor = bottom(simple, level)
    for i in range(len(flat)):
        h = -torch.ones(2).double()
        for at in [*places(i, 16), torch.cat([found.point[i].clamp(-1, 1), h])]:
            value = exact_value(flat[i], bend[i], at)
            assert not found.bound[i].isfinite() or exact(found.bound[i])[0] <= value
            value = exact_value(flat[i], 0 * bend[i], at)
            assert not floor[i].isfinite() or exact(floor[i])[0] <= value


SCALES = [1e-320, 1e-305, 1e-200, 1.0, 1e200, 1e305]


@pytest.mark.parametrize("scale", SCALES)
def test_bounds_hold_in_exact_arithmetic(scale: float) -> None:
    check_exactly(scale)


@pytest.mark.parametrize("scale", SCALES)
def test_bounds_hold_where_small_numbers_are_flushed(scale: float) -> None:
    with flushed():
        check_exactly(scale)


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_what_is_not_finite_has_no_bound(value: float) -> None:
    for column in range(SHAPE.columns):
        flat, bend = torch.ones(1, SHAPE.flat).double(), torch.ones(1, 12).double()
        both = torch.cat([flat, bend], -1)
        both[0, column] = value
        flat, bend = both[:, : SHAPE.flat], both[:, SHAPE.flat :]
        form = without_symbols(flat, bend, torch.zeros(1).double(), SHAPE)
        found = least(form, ROUNDS)
        assert float(found.bound) == -torch.inf and float(found.level) == -torch.inf


def test_no_rounding_is_forgotten_where_everything_cancels() -> None:
    """A form that is 0 at a corner, with terms that are not: its bound is never above 0."""
    random = generator(11)
    for _ in range(200):
        flat, bend, _ = random_forms(int(torch.randint(0, 10**6, (1,), generator=random)), 3)
        flat, bend = 1e6 * flat, 1e6 * bend
        corner = normal(random, 1, 5).sign()
        flat[:, 0] -= values(flat, bend, corner)[0]
        found = least(without_symbols(flat, bend, torch.zeros(3).double(), SHAPE), ROUNDS)
        for i in range(3):
            assert exact(found.bound[i])[0] <= exact_value(flat[i], bend[i], corner[0])


def test_the_least_value_of_a_known_form_is_rounded_down() -> None:
    """v + w . y - sum b_i y_i^2 is least at a corner, where nothing but rounding is lost."""
    random = generator(12)
    value, slope, sag = normal(random, 300), normal(random, 300, 3), normal(random, 300, 3).abs()
    sag[::2] = 0
    none = torch.zeros(300).double()
    form = Curved(value, slope, torch.diag_embed(-sag), none, none.unsqueeze(-1))
    bound = least(form, ROUNDS).bound
    for i in range(300):
        terms = exact(slope[i]), exact(sag[i])
        wanted = exact(value[i])[0] - sum(map(abs, terms[0]), Fraction(0)) - sum(terms[1])
        assert wanted - Fraction(1, 10**12) <= exact(bound[i])[0] <= wanted


def test_the_level_of_a_form_without_a_bend_is_rounded_down() -> None:
    flat = normal(generator(13), 300, SHAPE.flat)
    level = straight(flat, torch.zeros(300).double(), SHAPE)[1]
    for i in range(300):
        numbers = exact(flat[i])
        wanted = numbers[0] - abs(numbers[4]) - abs(numbers[5])
        assert wanted - Fraction(1, 10**12) <= exact(level[i])[0] <= wanted
