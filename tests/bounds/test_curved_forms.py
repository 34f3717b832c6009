"""Rounding in single steps of forms of second order."""

from __future__ import annotations

from fractions import Fraction

import torch

from fgp_vnn.base.rounding import unit
from fgp_vnn.bounds.curved_forms import Forms, through_map, times
from fgp_vnn.bounds.quadratics import Shape
from fgp_vnn.network.model import Dense
from tests.helpers.extreme_networks import Exact, apply, exact
from tests.helpers.random_networks import generator, normal

SHAPE = Shape(1, 1, torch.device("cpu"))


def constants(random: torch.Generator, count: int) -> Forms:
    """Forms of numbers that are known."""
    flat = torch.zeros(1, SHAPE.flat, count).double()
    flat[0, 0] = normal(random, count)
    return Forms(flat, None, torch.zeros(1, count).double())


def check(made: Forms, wanted: Exact) -> None:
    """The errors cover what is off, and something is."""
    off = [abs(a - b) for a, b in zip(exact(made.flat[:, 0]), wanted, strict=True)]
    assert all(a <= b for a, b in zip(off, exact(made.error), strict=True))
    assert any(a > Fraction(0) for a in off)


def test_products_of_constants_are_off_by_rounding() -> None:
    random = generator(8)
    u, v = constants(random, 300), constants(random, 300)
    numbers = zip(exact(u.flat[:, 0]), exact(v.flat[:, 0]), strict=True)
    check(times(u, v, SHAPE), [a * b for a, b in numbers])


def test_maps_of_constants_are_off_by_rounding() -> None:
    random = generator(9)
    u = constants(random, 20)
    affine = Dense((0,), (normal(random, 100, 20),), normal(random, 100))
    check(through_map(affine, [u], SHAPE), apply(affine, [exact(u.flat[:, 0])]))


def test_the_error_of_a_matrix_acts_on_the_error_of_what_it_reads() -> None:
    """A weight that is a sum whose large terms cancel, and a source about which nothing is known
    but its error."""
    one, none = torch.ones(1, 1).double(), torch.zeros(1, 1).double()
    terms = 2.0**60 * one, none[0]
    affine = Dense((0,), (none,), none[0], terms=terms, rounded=3)
    u = Forms(torch.zeros(1, SHAPE.flat, 1).double(), None, 1e3 * one)
    error = through_map(affine, [u], SHAPE).error
    assert float(error) >= unit(torch.float64).share(3) * 2.0**60 * 1e3
