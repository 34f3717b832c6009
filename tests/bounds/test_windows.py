"""Joint bounds of neurons that see the same inputs, against samples, exact numbers and lines."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds import windows
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.windows import Grouped, JointRow, closed_by_windows
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query, ask_values
from fgp_vnn.strategy import Windows
from tests.helpers.random_networks import exact_preactivations, generator, normal, rationals, sample

NUMBERS = Windows(steps=60)


def windowed(seed: int, channels: int = 3, offset: float = 0.0) -> tuple[Query, LayerBounds]:
    """One row over `channels` neurons for each of 6 windows of 3 inputs, that move by 2."""
    source = generator(seed)
    weight = torch.zeros(6 * channels, 13, dtype=torch.float64)
    for place in range(6):
        some = slice(channels * place, channels * (place + 1))
        weight[some, 2 * place : 2 * place + 3] = normal(source, channels, 3)
    bias = 0.3 * normal(source, len(weight))
    rows = normal(source, 1, 13), normal(source, 1, len(weight))
    output = Dense((0, 1), rows, torch.full((1,), offset, dtype=torch.float64))
    network = Network((Dense((0,), (weight,), bias),), output, 13)
    side = torch.ones(13, dtype=torch.float64)
    eye = torch.ones(1, 1, dtype=torch.float64)
    query = ask_values(network, Box(-side, side), 1, eye)
    query = replace(query, network=network)
    return query, root_bounds(network, query.domain, budget=UNLIMITED)


def joint(query: Query, bounds: LayerBounds, numbers: Windows = NUMBERS) -> JointRow:
    layer = query.network.layers[0]
    assert isinstance(layer, Dense)
    grouped = Grouped.of(layer.weights[0], numbers)
    assert grouped is not None
    return JointRow(query, bounds, grouped, Rounding(query.network, query.domain, bounds), 0)


def corners_and_samples(query: Query, seed: int) -> Tensor:
    points = sample(query.domain, 3000, seed)
    return torch.cat([points, points.sign()])


@pytest.mark.parametrize("seed", range(6))
def test_no_point_is_below_the_bound_at_any_step(seed: int) -> None:
    query, bounds = windowed(seed)
    lowest = float(query.network(corners_and_samples(query, seed)).min())
    for steps in (0, 1, 5, 40):
        row = joint(query, bounds)
        row.ascend(replace(NUMBERS, steps=steps), UNLIMITED)
        assert float(row.least()) <= lowest


def test_any_multipliers_are_sound() -> None:
    for seed in range(20):
        query, bounds = windowed(seed)
        row, source = joint(query, bounds), generator(seed)
        row.shared = row.shared + normal(source, *row.shared.shape)
        row.beta = normal(source, *row.beta.shape).clamp(min=0)
        assert float(row.least()) <= float(query.network(corners_and_samples(query, seed)).min())


def test_windows_that_share_no_input_are_bounded_exactly() -> None:
    """|x| - x as relu(x) + relu(-x) - x is 0 on half of its range: lines lose that, patterns do
    not, and what is left is rounding."""
    weight = torch.zeros(6, 3, dtype=torch.float64)
    for place in range(3):
        weight[2 * place : 2 * place + 2, place] = torch.tensor([1.0, -1.0], dtype=torch.float64)
    rows = torch.full((1, 3), 0.5, dtype=torch.float64), -torch.ones(1, 6, dtype=torch.float64)
    output = Dense((0, 1), rows, torch.zeros(1, dtype=torch.float64))
    network = Network((Dense((0,), (weight,), weight.new_zeros(6)),), output, 3)
    side = torch.ones(3, dtype=torch.float64)
    query = replace(
        ask_values(network, Box(-side, side), 1, weight.new_ones(1, 1)), network=network
    )
    bounds = root_bounds(network, query.domain, budget=UNLIMITED)
    row = joint(query, bounds)
    row.ascend(replace(NUMBERS, steps=400, decay=0.98), UNLIMITED)
    assert -4.5 - 1e-2 <= float(row.least()) < -4.5  # at x = -1: -3 * (1 + 0.5)


def one_window(seed: int) -> Query:
    """A concave sum over one window."""
    source = generator(seed)
    layer = Dense((0,), (normal(source, 3, 2),), normal(source, 3))
    rows = normal(source, 1, 2), -normal(source, 1, 3).abs()
    network = Network((layer,), Dense((0, 1), rows, normal(source, 1)), 2)
    lower = normal(source, 2)
    box = Box(lower, lower + normal(source, 2).abs())
    return replace(ask_values(network, box, 1, lower.new_ones(1, 1)), network=network)


def least_at_corners(query: Query) -> Fraction:
    box = query.domain.box()
    corners = torch.cartesian_prod(*torch.stack([box.lower, box.upper], -1))
    corners = corners.reshape(-1, len(box.lower))
    return min(exact_preactivations(query.network, rationals(x))[-1][0] for x in corners)


def test_rounding_is_taken_off() -> None:
    """It is least at a corner, and there patterns are exact: with no multipliers, only rounding is
    between that and the bound."""
    for seed in range(40):
        query = one_window(seed)
        row = joint(query, root_bounds(query.network, query.domain, budget=UNLIMITED))
        output = query.network.output
        assert isinstance(output, Dense)
        row.shared = -output.weights[0]
        exact = least_at_corners(query)
        bound = Fraction(float(row.least()))
        assert exact - Fraction(1, 10**10) < bound <= exact


def test_a_row_that_is_met_with_equality_is_never_closed() -> None:
    """Nor one that is met by less than a rounding."""
    for seed in range(30):
        query = one_window(seed)
        output = query.network.output
        assert isinstance(output, Dense)
        bias = Fraction(float(output.bias)) - least_at_corners(query)
        met = float(bias)
        while Fraction(met) > bias:
            met = math.nextafter(met, -math.inf)
        output = replace(output, bias=torch.tensor([met], dtype=torch.float64))
        query = replace(query, network=replace(query.network, output=output))
        assert least_at_corners(query) <= 0
        bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
        assert closed_by_windows(query, bounds, UNLIMITED, replace(NUMBERS, steps=20)) == []


def concave(seed: int, scale: float) -> tuple[Query, LayerBounds]:
    """A row that is least at a corner: four windows of two inputs, each of which shares one with
    the next, two neurons each; large numbers that nearly cancel."""
    source = generator(seed)
    weight = torch.zeros(8, 5, dtype=torch.float64)
    for place in range(4):
        weight[2 * place : 2 * place + 2, place : place + 2] = normal(source, 2, 2)
    layer = Dense((0,), (weight,), scale * normal(source, 8))
    rows = scale * normal(source, 1, 5), -scale * normal(source, 1, 8).abs()
    lower = scale * normal(source, 5)
    box = Box(lower, lower + normal(source, 5).abs())
    network = Network((layer,), Dense((0, 1), rows, scale**2 * normal(source, 1)), 5)
    query = replace(ask_values(network, box, 1, lower.new_ones(1, 1)), network=network)
    return query, root_bounds(network, box, budget=UNLIMITED)


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1.0, 1e6, 1e100])
def test_no_corner_is_below_the_bound_in_exact_arithmetic(scale: float) -> None:
    for seed in range(4):
        query, bounds = concave(seed, scale)
        exact = least_at_corners(query)
        row = joint(query, bounds)
        for steps in (0, 20):
            row.ascend(replace(NUMBERS, steps=steps), UNLIMITED)
            bound = float(row.least())
            assert bound == -torch.inf or Fraction(bound) <= exact


@pytest.mark.parametrize(("dtype", "size"), [(torch.float64, 1e154), (torch.float32, 1.38e19)])
def test_a_pattern_whose_sum_overflows_proves_nothing(dtype: torch.dtype, size: float) -> None:
    """Its bias and its slopes cancel in exact arithmetic, and the row is far below 0."""
    weight = torch.tensor([[1.0], [0.5]], dtype=dtype)
    bias = torch.tensor([-1.4 * size, -0.7 * size], dtype=dtype)
    outer = torch.tensor([[-1.4 * size, -1e-3]], dtype=dtype)
    constant = torch.tensor([0.05 * size * size], dtype=torch.float64).to(dtype)
    network = Network((Dense((0,), (weight,), bias),), Dense((1,), (outer,), constant), 1)
    box = Box(*(torch.tensor([part * size], dtype=dtype) for part in (0.7, 1.7)))
    query = replace(ask_values(network, box, 1, weight.new_ones(1, 1)), network=network)
    assert least_at_corners(query) < 0
    bounds = root_bounds(network, box, budget=UNLIMITED)
    row = joint(query, bounds)
    for shared in (row.shared, torch.zeros_like(row.shared)):
        row.shared = shared
        assert float(row.least()) < 0
    assert closed_by_windows(query, bounds, UNLIMITED, Windows()) == []


def test_errors_of_maps_are_taken_off() -> None:
    """A defect of the hidden layer or of the output moves the row by as much as its weights say."""
    query, bounds = concave(1, 1.0)
    layer, output = query.network.layers[0], query.network.output
    assert isinstance(layer, Dense) and isinstance(output, Dense)
    plain = float(joint(query, bounds).least())
    off = 0.01 * torch.ones_like(layer.bias)
    for maps, lost in (
        ((replace(layer, defect=off), output), 0.01 * float(output.weights[1].abs().sum())),
        ((layer, replace(output, defect=off[:1])), 0.01),
    ):
        network = Network(maps[:1], maps[1], 5)
        moved = replace(query, network=network)
        assert float(joint(moved, bounds).least()) <= plain - 0.99 * lost


@pytest.mark.parametrize("seed", range(4))
def test_disjuncts_are_closed_only_if_they_are_safe(seed: int) -> None:
    query, bounds = windowed(seed)
    row = joint(query, bounds)
    row.ascend(replace(NUMBERS, steps=300), UNLIMITED)
    least = float(row.least())
    lowest = float(query.network(corners_and_samples(query, seed)).min())
    numbers = replace(NUMBERS, steps=300)
    for offset, closed in ((0.1 - least, [0]), (-0.01 - lowest, [])):
        moved, around = windowed(seed, offset=offset)
        assert closed_by_windows(moved, around, UNLIMITED, numbers) == closed


def test_neurons_are_grouped_by_what_they_see() -> None:
    weight = torch.zeros(7, 6)
    for neuron, inputs in enumerate(([0, 1], [2, 3], [0, 1], [5], [0, 1], [2, 3], [0, 1])):
        weight[neuron, inputs] = 1.0
    grouped = Grouped.of(weight, Windows(neurons=3))
    assert grouped is not None
    found = {
        (tuple(n for n in group if n >= 0), tuple(i for i in inputs if i >= 0))
        for group, inputs in zip(grouped.neurons.tolist(), grouped.inputs.tolist(), strict=True)
    }
    assert found == {((0, 2, 4), (0, 1)), ((6,), (0, 1)), ((1, 5), (2, 3)), ((3,), (5,))}
    assert Grouped.of(weight, Windows(inputs=1)) is None


def test_what_has_no_windows_or_no_time_is_left_open() -> None:
    query, bounds = windowed(0, offset=1000.0)
    assert closed_by_windows(query, bounds, UNLIMITED, NUMBERS) == [0]
    assert closed_by_windows(query, bounds, UNLIMITED, replace(NUMBERS, inputs=2)) == []
    alone, around = windowed(0, channels=1, offset=1000.0)
    assert closed_by_windows(alone, around, UNLIMITED, NUMBERS) == []


def test_when_time_is_up_no_row_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    query, bounds = windowed(0, offset=1000.0)
    begun: list[int] = []

    class Noted(JointRow):
        def __init__(self, *parts: Any) -> None:
            begun.append(1)
            super().__init__(*parts)

    monkeypatch.setattr(windows, "JointRow", Noted)
    assert closed_by_windows(query, bounds, Budget.of(0.0, None), NUMBERS) == []
    assert not begun
    assert closed_by_windows(query, bounds, UNLIMITED, NUMBERS) == [0]
    assert begun == [1]
