"""What several rows prove together, and what caps bound, holds in exact arithmetic: where each term
of the error is all that makes it true."""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from fgp_vnn.base.rounding import rounded_down, unit
from fgp_vnn.bounds.backward import Backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.caps import Caps
from fgp_vnn.domain.sets import Box, Domain, L2Ball
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query, ask
from fgp_vnn.regions.combined import combine_constraints, excluded
from fgp_vnn.regions.halfspaces import HalfSpaces
from fgp_vnn.regions.triangular import triangular
from fgp_vnn.search.ball import SearchBall, about
from fgp_vnn.search.conjunctions import weigh_rows
from fgp_vnn.search.waiting_bounds import over_caps
from fgp_vnn.strategy import Inputs
from tests.helpers.extreme_networks import dot, matrix
from tests.helpers.flushing import flushed

EPS, TINY = torch.finfo(torch.float64).eps, torch.finfo(torch.float32).tiny


def single(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)


def double(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def exact(values: Tensor) -> list[Fraction]:
    return [Fraction(v) for v in values.flatten().tolist()]


def query_of(first: Dense, domain: Domain) -> Query:
    """A query with one layer, and outputs that are not looked at."""
    wide = first.bias.new_ones(1, first.outputs)
    network = Network((first,), Dense((1,), (wide,), wide[:, 0]), first.weights[0].shape[1])
    return Query(network, domain, torch.zeros(1).long(), torch.zeros(1, dtype=torch.bool), 1)


def closes(weight: Tensor, value: Tensor, least: Tensor, nominal: Tensor, radius: float) -> Tensor:
    """Which pairs of rows weight t + value, [pairs, 2] each, are taken to exclude each other in
    |t| <= radius, when each is off by up to nominal - least."""
    far = torch.full((len(weight), 1), radius)
    strict = torch.zeros(2, dtype=torch.bool)
    one = query_of(Dense((0,), (far[:1],), far[0]), Box(-far[0], far[0]))
    query = Query(one.network, one.domain, torch.zeros(2).long(), strict, 1)
    passed = Backward(weight.unsqueeze(-1), value, least, nominal, {})
    return weigh_rows(query, Box(-far, far), passed, Inputs()).closed[:, 0]


def test_rows_that_meet_in_a_point_are_not_closed_by_rounding() -> None:
    """Of 500 pairs, each is at most 0 at a point."""
    source = torch.Generator().manual_seed(0)
    slope, point = torch.rand(500, 2, generator=source) + 0.5, torch.rand(500, 1, generator=source)
    weight = slope * single(1.0, -1.0)
    down = rounded_down(-(weight.double() * point.double()), torch.float32)
    for row, offset, at in zip(weight, down, exact(point), strict=True):
        for w, v in zip(exact(row), exact(offset), strict=True):
            assert w * at + v <= 0
    below = -torch.ones_like(down)
    assert not bool(closes(weight, down, below, below, 1.0).any())


def test_an_error_of_a_row_that_is_flushed_is_not_nothing() -> None:
    """2 t + 1.5 and -2 t - 1, both off by 0.9, are at most 0 at -0.3: in smallest numbers."""
    assert 2 * -0.3 + 1.5 - 0.9 <= 1e-9 and -2 * -0.3 - 1 - 0.9 <= 0
    weight, value = single(2.0, -2.0) * TINY, single(1.5, -1.0) * TINY
    least, nominal = single(-3.0, -3.0) * TINY, single(-2.1, -2.1) * TINY
    with flushed():
        closed = closes(weight[None], value[None], least[None], nominal[None], 1.0)
    assert not bool(closed)


def test_a_weighed_row_that_is_flushed_counts_times_the_domain() -> None:
    """w t + 1.1 is below 0 at t = -1e38, for w the smallest normal number, 1.18e-38."""
    weight, value = single(TINY, TINY), single(1.1, 1.1)
    below = single(-1.0, -1.0)
    assert Fraction(TINY) * Fraction(-1e38) + Fraction(11, 10) < 0
    with flushed():
        assert not bool(closes(weight[None], value[None], below[None], below[None], 1e38))


def excludes(first: Dense, domain: Domain, row: int) -> bool:
    """Is the zero of a row taken to lie outside of the region in which all neurons are on?"""
    system = triangular(query_of(first, domain))
    on = torch.ones(first.outputs, 1, dtype=torch.float64)
    forms = system.forms(on)
    return bool(excluded(system, forms, combine_constraints(system, forms, on))[row, 0])


def test_a_product_of_joined_constraints_that_underflows_is_not_rounded_up() -> None:
    """t >= e holds at e, where e^2 is 1.7 times the smallest number, and is rounded to 2."""
    e = 2.9e-162
    first = Dense((0,), (torch.ones(1, 1).double(),), double(-e))
    system = triangular(query_of(first, L2Ball(double(0.0), 2 * e)))
    on = torch.ones(1, 1, dtype=torch.float64)
    joint = combine_constraints(system, system.forms(on), on)
    p, q, slack = (exact(part)[0] for part in joint)
    assert q > p * Fraction(e) >= q - slack


def test_the_errors_of_joined_constraints_and_of_the_row_itself_count() -> None:
    """t_1 >= 0.8 and t_2 = 0.8 are apart in a disc of radius 1; where one is off by 0.3, not."""
    assert Fraction(8, 10) ** 2 + Fraction(5, 10) ** 2 < 1
    eye, disc = torch.eye(2).double(), L2Ball(double(0.0, 0.0), 1.0)
    for defect in (double(0.3, 0.0), double(0.0, 0.3)):
        first = Dense((0,), (eye,), double(-0.8, -0.8), defect)
        system = triangular(query_of(first, disc))
        sign = double(1.0, -1.0).unsqueeze(1)
        forms = system.forms(sign.clamp(min=0))
        assert not bool(excluded(system, forms, combine_constraints(system, forms, sign))[1, 0])


def test_the_length_of_a_sum_that_cancels_is_rounded() -> None:
    """t_1 >= 1/2 and t_1 + d t_2 = 1/2 - d/2 meet at (1/2, -1/2), in the disc of radius 1."""
    d = 2.0**-30
    first = Dense((0,), (torch.stack([double(1.0, 0.0), double(1.0, d)]),), double(-0.5, -0.5))
    first.bias[1] += d / 2
    assert Fraction(float(first.bias[1])) == Fraction(d) / 2 - Fraction(1, 2)
    assert not excludes(first, L2Ball(double(0.0, 0.0), 1.0), 1)


def test_the_squares_of_a_sum_that_cancels_underflow() -> None:
    """t_1 >= e and t_1 + d t_2 + 512 = 0 meet at (e, -(512 + e) / d), with e^2 a small number."""
    e, d, radius = 2.0**-532, 2.0**-10, 2.0**20
    assert Fraction(e) ** 2 + ((512 + Fraction(e)) / Fraction(d)) ** 2 < Fraction(radius) ** 2
    first = Dense((0,), (torch.stack([double(1.0, 0.0), double(1.0, d)]),), double(-e, 512.0))
    assert not excludes(first, L2Ball(double(0.0, 0.0), radius), 1)


def over_cap(first: Dense, domain: Domain, normal: Tensor, level: float) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds [neurons] of the layer, from one cap of the domain alone."""
    query = query_of(first, domain)
    caps = Caps(domain, normal.unsqueeze(0), normal.new_full((1, 1), level))
    far = torch.full((1, first.outputs), torch.inf, dtype=normal.dtype)
    wide = LayerBounds((-far,), (far,))
    made = over_caps(query.network, caps, wide, torch.zeros(1).long(), UNLIMITED)
    return made.lower[0][0], made.upper[0][0]


def test_bounds_over_a_cap_hold_where_the_values_at_its_centre_cancel() -> None:
    source = torch.Generator().manual_seed(0)
    weight = torch.rand(40, 30, generator=source, dtype=torch.float64)
    center = torch.rand(30, generator=source, dtype=torch.float64)
    bias = -(weight @ center)
    lower, upper = over_cap(
        Dense((0,), (weight,), bias), L2Ball(center, 1e-30), torch.zeros_like(center), 0.0
    )
    for row, offset, low, high in zip(weight, *map(exact, (bias, lower, upper)), strict=True):
        value = sum(w * c for w, c in zip(exact(row), exact(center), strict=True)) + offset
        assert low <= value <= high


def test_bounds_over_a_cap_hold_where_a_weight_is_lost_when_it_is_cast() -> None:
    center, weight = single(1e36), double(6e-46)
    first = Dense((0,), (weight[None],), double(0.0)).to("cpu", torch.float32)
    _, upper = over_cap(first, L2Ball(center, 1.0), single(0.0), 0.0)
    assert exact(upper)[0] >= exact(weight)[0] * exact(center)[0]


def test_bounds_over_a_cap_hold_where_its_normal_is_not_quite_of_length_one() -> None:
    """A normal may be shorter by as much as its own roundings; r e_1 lies in the cap."""
    inputs = 64
    shorter = 1 - 0.9 * unit(torch.float64).share(2 * inputs + 16)
    normal, center = torch.zeros(2, inputs, dtype=torch.float64)
    normal[0] = shorter
    row = torch.zeros(1, inputs, dtype=torch.float64)
    row[0, 0] = 1.0
    _, upper = over_cap(Dense((0,), (row,), double(0.0)), L2Ball(center, 1.0), normal, 0.5)
    assert exact(upper)[0] >= 1


def test_a_defect_over_a_cap_is_not_rounded_down() -> None:
    bias = EPS * torch.linspace(-0.5, 0.5, 9, dtype=torch.float64)
    first = Dense((0,), (torch.zeros(9, 1).double(),), bias, torch.ones(9).double())
    lower, upper = over_cap(first, L2Ball(double(0.0), 1.0), double(0.0), 0.0)
    for offset, low, high in zip(*map(exact, (bias, lower, upper)), strict=True):
        assert low <= offset - 1 and high >= offset + 1


def test_half_spaces_about_another_centre_are_within_their_errors() -> None:
    for seed in range(10):
        source = torch.Generator().manual_seed(seed)
        rows, shift = torch.rand(2, 1, 4, 5, generator=source, dtype=torch.float64) - 0.5
        before = HalfSpaces(rows, torch.zeros(1, 4).double(), torch.full((1, 4), 1e-20).double())
        after = about(before, shift[0, 0])
        for row, value, error in zip(
            matrix(rows[0]), exact(after.values), exact(after.errors), strict=True
        ):
            meant = dot(row, exact(shift[0, 0]))
            assert abs(value - meant) + exact(before.errors)[0] <= error


def test_distances_in_a_ball_and_parts_of_it_are_rounded_down() -> None:
    origin = torch.zeros(2, dtype=torch.float64)
    output = Dense((0,), (torch.ones(1, 2).double(),), origin[:1])
    for seed in range(20):
        source = torch.Generator().manual_seed(seed)
        radius, part = torch.rand(2, generator=source, dtype=torch.float64).tolist()
        query = ask(Network((), output, 2), L2Ball(origin, radius), [])
        ball = SearchBall(query, LayerBounds((), ()), origin, radius)
        assert Fraction(ball.distance(part)) <= Fraction(part) * Fraction(radius)
        assert Fraction(ball.part(part)) * Fraction(radius) <= Fraction(part)
        near = part * radius
        assert Fraction(ball.holding(near)) * Fraction(radius) >= Fraction(near)
