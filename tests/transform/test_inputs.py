"""Queries with fewer inputs: the same values, the same answers, and a way back."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, L2Ball
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.query import Query, ask
from fgp_vnn.search.walk.walk import WalkOptions, walk_regions
from fgp_vnn.transform.inputs import drop_unread, reduce_inputs
from tests.helpers.extreme_networks import apply, dot, exact, matrix
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    confirm_in,
    defect_of,
    random_domain,
    random_network,
    random_rows,
    sample,
)


class Basis(NamedTuple):
    """What a decomposition gives, without its other factor."""

    Q: Tensor


def wide_query(seed: int, domain_kind: str, kind: str = "chain", inputs: int = 8) -> Query:
    network = random_network(seed, kind, inputs=inputs, widths=(3, 4))
    return ask(network, random_domain(seed, domain_kind, inputs=inputs), random_rows(seed, 2, 2, 1))


@pytest.mark.parametrize("domain_kind", ["thin box", "l2"])
@given(st.integers(0, 10_000))
def test_the_reduced_network_computes_the_same_at_lifted_points(
    domain_kind: str, seed: int
) -> None:
    query = wide_query(seed, domain_kind)
    reduced, lift = reduce_inputs(query)
    assert reduced.network.inputs < query.network.inputs
    t = sample(reduced.domain, 30, seed)
    x = lift(t)
    difference = (query.network(x) - reduced.network(t)).abs().max()
    assert float(difference) <= defect_of(reduced) + 1e-13
    assert defect_of(reduced) < 1e-9


@pytest.mark.parametrize("domain_kind", ["thin box", "l2"])
@given(st.integers(0, 10_000))
def test_lifted_points_lie_in_the_domain(domain_kind: str, seed: int) -> None:
    query = wide_query(seed, domain_kind)
    reduced, lift = reduce_inputs(query)
    x = lift(sample(reduced.domain, 30, seed))
    if isinstance(query.domain, Box):
        assert bool(query.domain.contains(x).all())
    else:
        assert float((query.domain.project(x) - x).abs().max()) <= 1e-10


@given(st.integers(0, 10_000))
def test_nothing_of_a_ball_is_lost_by_turning_it(seed: int) -> None:
    """Each x of the ball has a t of the reduced ball with the same values."""
    query = wide_query(seed, "l2")
    reduced, lift = reduce_inputs(query)
    assert isinstance(query.domain, L2Ball) and isinstance(reduced.domain, L2Ball)
    x = sample(query.domain, 30, seed)
    basis = lift(torch.eye(reduced.network.inputs, dtype=torch.float64)) - query.domain.center
    t = (x - query.domain.center) @ basis.T
    assert bool(reduced.domain.contains(t).all())
    difference = (query.network(x) - reduced.network(t)).abs().max()
    assert float(difference) <= defect_of(reduced) + 1e-13


@given(st.integers(0, 10_000))
def test_a_ball_in_single_precision_stays_large_enough(seed: int) -> None:
    query = wide_query(seed, "l2", inputs=40).to("cpu", torch.float32)
    reduced, lift = reduce_inputs(query)
    assert isinstance(query.domain, L2Ball) and isinstance(reduced.domain, L2Ball)
    basis = lift(torch.eye(reduced.network.inputs)) - query.domain.center
    # The image of the ball under Q^T has this radius, computed in double precision.
    norm = torch.linalg.matrix_norm(basis.double(), ord=2)
    assert reduced.domain.radius >= query.domain.radius * float(norm)
    assert reduced.domain.radius <= query.domain.radius * (1 + 1e-3)


def first_map(network: Network) -> Dense:
    first = network.layers[0]
    assert isinstance(first, Dense)
    return first


def stays_within_its_defect(seed: int, scale: float) -> bool:
    """Whether a map in float32, with biases so many times as large, is turned into one that is no
    farther from it than the defects say, at a point of the ball and in exact arithmetic."""
    network = random_network(seed, inputs=6, widths=(3,)).to("cpu", torch.float32)
    old = torch.tensor([0.0, 0.1, 1e-6])
    first = replace(first_map(network), bias=scale * first_map(network).bias, defect=old)
    ball = L2Ball(torch.linspace(-0.3, 0.4, 6), 10.0)
    reduced, lift = reduce_inputs(ask(replace(network, layers=(first,)), ball, []))
    turned = first_map(reduced.network)
    assert turned.defect is not None
    shift = [Fraction(3)] * 6
    x = [a + b for a, b in zip(exact(ball.center), shift, strict=True)]
    assert lift.basis is not None
    t = [dot(column, shift) for column in matrix(lift.basis.T)]
    pairs = zip(apply(turned, [t]), apply(first, [x]), strict=True)
    rooms = zip(exact(old), exact(turned.defect), strict=True)
    return all(abs(p - q) + r <= room for (p, q), (r, room) in zip(pairs, rooms, strict=True))


@pytest.mark.parametrize("scale", [0.0, 1e6])
def test_a_turned_map_is_within_its_defect_of_the_map_that_is_meant(scale: float) -> None:
    assert all(stays_within_its_defect(seed, scale) for seed in range(4))


@pytest.fixture
def first_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decomposition that takes the first axes for a basis, whatever the matrix."""

    def first(matrix: Tensor) -> Basis:
        return Basis(torch.eye(*matrix.shape, dtype=matrix.dtype))

    monkeypatch.setattr(torch.linalg, "qr", first)


@pytest.mark.usefixtures("first_axes")
def test_what_a_basis_misses_is_part_of_the_defect() -> None:
    assert stays_within_its_defect(0, 1.0)


@pytest.mark.usefixtures("first_axes")
def test_weights_that_cancel_at_the_centre_once_they_are_cast_are_part_of_the_defect() -> None:
    """1/3 less the float32 next to it is -9.9e-9; in float32 it is 0, and no axis is missed."""
    third, none = torch.tensor(1 / 3, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    weight = torch.stack([third, -third.float().double(), none[0]]).unsqueeze(0)
    maps = (
        Dense((0,), (torch.cat([weight, weight]),), none.repeat(2)),
        Dense((1,), (none.repeat(1, 2),), none),
    )
    network = Network(maps[:1], maps[1], 3).to("cpu", torch.float32)
    reduced, _ = reduce_inputs(ask(network, L2Ball(torch.ones(3), 0.5), []))
    defect = first_map(reduced.network).defect
    assert defect is not None and 1e-3 > defect[0] >= 9.9e-9


def test_a_weight_that_is_lost_counts_times_the_value_of_a_fixed_input() -> None:
    """No float32 is near 1.5e-46, which times 1e36 is far above what else is lost."""
    weight, none = torch.tensor([[1.0, 1.5e-46]], dtype=torch.float64), torch.zeros(1).double()
    maps = Dense((0,), (weight,), none), Dense((1,), (weight[:, :1],), none)
    network = Network(maps[:1], maps[1], 2).to("cpu", torch.float32)
    thin = Box(torch.tensor([0.0, 1e36]), torch.tensor([1.0, 1e36]))
    defect = first_map(reduce_inputs(ask(network, thin, []))[0].network).defect
    assert defect is not None and 1.0 > defect >= 1.5e-10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("domain_kind", DOMAINS)
def test_what_cannot_be_reduced_is_left_as_it_is(kind: str, domain_kind: str) -> None:
    query = wide_query(1, domain_kind, kind, inputs=2)
    reduced, lift = reduce_inputs(query)
    points = sample(reduced.domain, 9)
    torch.testing.assert_close(query.network(lift(points)), reduced.network(points))
    if domain_kind != "thin box":
        assert reduced is query
        assert torch.equal(lift(points), points)


def test_an_output_that_reads_the_input_keeps_all_inputs() -> None:
    query = wide_query(2, "thin box", "residual")
    reduced, _ = reduce_inputs(query)
    assert reduced is query


def test_a_box_that_is_a_point_is_left_as_it_is() -> None:
    network = random_network(1, inputs=3)
    point = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    query = ask(network, Box(point, point), random_rows(1, 2, 1))
    reduced, lift = reduce_inputs(query)
    torch.testing.assert_close(lift(reduced.domain.center.unsqueeze(0))[0], point)


def test_maps_that_read_several_sources_keep_the_others() -> None:
    network = random_network(3, "residual", inputs=6, widths=(2, 3))
    chain_output = random_network(3, inputs=6, widths=(2, 3)).output
    last: AffineMap = Dense((2,), chain_output.weights, chain_output.bias)  # type: ignore[attr-defined]
    query = ask(
        type(network)(network.layers, last, 6),
        random_domain(3, "l2", inputs=6),
        random_rows(3, 2, 1),
    )
    reduced, lift = reduce_inputs(query)
    assert reduced.network.inputs == 5  # two and three rows read the input
    t = sample(reduced.domain, 30)
    torch.testing.assert_close(query.network(lift(t)), reduced.network(t))


@pytest.mark.parametrize("domain_kind", ["thin box", "l2"])
def test_verdicts_are_those_of_the_whole_query(domain_kind: str) -> None:
    seen = set()
    for seed in range(13):
        query = wide_query(seed, domain_kind, inputs=5)
        reduced, lift = reduce_inputs(query)
        confirm = confirm_in(query)

        def lifted(points: Tensor) -> Counterexample | None:
            return confirm(lift(points))  # noqa: B023

        whole = walk_regions(
            query,
            root_bounds(query.network, query.domain, budget=UNLIMITED),
            confirm,
            UNLIMITED,
            WalkOptions(),
        )
        small = walk_regions(
            reduced,
            root_bounds(reduced.network, reduced.domain, budget=UNLIMITED),
            lifted,
            UNLIMITED,
            WalkOptions(),
        )
        assert {whole.status, small.status} != {"sat", "unsat"}
        seen.add(small.status)
    assert {"sat", "unsat"} <= seen


def test_a_network_without_unread_inputs_computes_the_same() -> None:
    places = torch.tensor([1, 3, 4, 6])  # of the inputs that are read, among eight
    whole = random_domain(5, "box", inputs=8).box()
    for kind in ("chain", "residual"):
        small = random_network(5, kind, inputs=4, widths=(3, 4))
        if kind == "residual":  # the first input is read by later maps only
            first = small.layers[0]
            assert isinstance(first, Dense)
            first.weights[0][:, 0] = 0

        def widened(affine: AffineMap) -> AffineMap:
            assert isinstance(affine, Dense)
            weights = list(affine.weights)
            if 0 in affine.sources:
                at = affine.sources.index(0)
                weights[at] = affine.bias.new_zeros(affine.outputs, 8)
                weights[at][:, places] = affine.weights[at]
            return replace(affine, weights=tuple(weights))

        *layers, output = map(widened, small.maps)
        network = Network(tuple(layers), output, 8)
        query = replace(wide_query(5, "box"), network=network, domain=whole)
        found = drop_unread(query)
        assert found.network.inputs == 4
        x = sample(whole, 30, 1)
        assert torch.allclose(network(x), found.network(x[:, places]), atol=1e-12)
        assert torch.equal(found.domain.box().lower, whole.lower[places])
        assert torch.equal(found.domain.box().upper, whole.upper[places])


def test_an_input_whose_weight_was_rounded_to_0_counts_as_read() -> None:
    weight = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    terms = (torch.tensor([[1.0, 2.0, 0.0]], dtype=torch.float64), weight.new_ones(1))
    output = Dense((0,), (weight,), weight.new_zeros(1), terms=terms)
    side = weight.new_ones(3)
    query = ask(Network((), output, 3), Box(-side, side), random_rows(0, 1, 1))
    rows = replace(query, network=Network((), output, 3))
    assert drop_unread(rows).network.inputs == 2


def test_other_domains_keep_their_inputs() -> None:
    query = wide_query(3, "l2")
    assert drop_unread(query) is query
