"""Each term of a bound on rounding counts by itself, where the others are nothing beside it."""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from fgp_vnn.base.rounding import larger_radius, moved_center, unit
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import RELU, Activation
from fgp_vnn.network.activations.powers import power
from fgp_vnn.network.activations.table import ACTIVATIONS
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.regions.halfspaces import HalfSpaces, nominal, sum_error

SINGLE, DOUBLE = unit(torch.float32), unit(torch.float64)
UNDERFLOW, EPS = SINGLE.underflow, SINGLE.eps
ALMOST = 0.99  # of what is expected: the expectation is rounded too


def rounding(
    *,
    weight: float = 0.0,
    width: int = 1,
    inputs: int = 1,
    size: float = 0.0,
    hidden: float = 0.0,
    defect: Tensor | None = None,
    activation: Activation = RELU,
) -> Rounding:
    """Of a layer with equal weights, inputs of at most `size` and values of at most `hidden`."""
    first = Dense((0,), (torch.full((width, inputs), weight),), torch.zeros(width), defect)
    output = Dense((1,), (torch.zeros(1, width),), torch.zeros(1))
    network = Network((first,), output, inputs, (activation,))
    box = Box(torch.full((inputs,), -size), torch.full((inputs,), size))
    values = torch.full((1, width), hidden)
    return Rounding(network, box, LayerBounds((-values,), (values,), (activation,)))


def of_map(made: Rounding, row: float, width: int = 1) -> float:
    return float(made.of_map(0, torch.full((1, 1, width), row)))


def of_layer(made: Rounding, size: float, width: int = 1) -> float:
    return float(made.of_layer(1, torch.full((1, 1, width), size)))


def exact(values: Tensor) -> list[Fraction]:
    return [Fraction(v) for v in values.double().flatten().tolist()]


def test_an_input_that_is_flushed_is_multiplied_by_its_weight() -> None:
    assert of_map(rounding(weight=1e30), 1.0) >= EPS * 1e30 * UNDERFLOW


def test_a_defect_is_weighed_and_not_rounded_down() -> None:
    for seed in range(20):
        source = torch.Generator().manual_seed(seed)
        defect, rows = torch.rand(50, generator=source), torch.rand(1, 1, 50, generator=source)
        given = exact(rounding(width=50, defect=defect).of_map(0, rows))[0]
        pairs = zip(exact(rows), exact(defect), strict=True)
        assert given >= sum(row * part for row, part in pairs)


def test_a_row_is_rounded_once_for_each_of_its_entries() -> None:
    made = rounding(weight=1.0, width=1000, size=1.0)
    assert of_map(made, 1.0, 1000) >= 1000 * EPS / 2 * 1000


def test_what_a_coefficient_loses_counts_times_what_it_is_the_coefficient_of() -> None:
    made = rounding(size=1e30, width=100)
    assert of_map(made, 0.0, 100) >= 200 * UNDERFLOW * 1e30
    assert float(made.of_neurons(0, torch.zeros(1, 1, dtype=torch.long))) >= 200 * UNDERFLOW * 1e30
    assert of_layer(made, 0.0, 100) >= 200 * UNDERFLOW * 1e30


def test_each_product_with_constants_and_errors_loses_something() -> None:
    width = 1000
    made = rounding(width=width)
    assert of_map(made, 0.0, width) >= ALMOST * 6 * width * UNDERFLOW
    assert of_layer(made, 0.0, width) >= ALMOST * 10 * width * UNDERFLOW


def test_an_error_that_is_weighed_by_almost_nothing_is_lost() -> None:
    made = rounding(defect=torch.full((1,), 1e30))
    assert of_map(made, 0.0) >= ALMOST * UNDERFLOW * 1e30
    assert of_layer(made, 0.0) >= ALMOST * 2 * UNDERFLOW * 1e30


def test_single_neurons_round_as_rows_do() -> None:
    made = rounding(weight=1e30, size=1.0)
    assert float(made.of_neurons(0, torch.zeros(1, 1, dtype=torch.long))) >= EPS * 1e30


def test_coefficients_at_a_relu_round_and_underflow() -> None:
    assert of_layer(rounding(hidden=1e10), 1.0) >= 4 * EPS * 1e10
    assert of_layer(rounding(), 1e30) >= ALMOST * 10 * UNDERFLOW * 1e30
    assert of_layer(rounding(hidden=1e10), 0.0) >= ALMOST * 4 * UNDERFLOW * 1e10
    assert of_layer(rounding(defect=torch.ones(1)), 1.0) >= 1.0


def test_coefficients_at_a_smooth_function_round_and_underflow() -> None:
    """exp is 1 at 0 and has slopes of 1 and more in [-1, 1]; z^2 and its slope are 0 at 0."""
    exp, square, none = ACTIVATIONS["Exp"]({}), power(2.0), torch.zeros(1, 1, 1)
    assert of_layer(rounding(activation=exp), 1e10) >= 8 * EPS * 1e10
    assert of_layer(rounding(activation=exp, hidden=1.0, defect=torch.ones(1)), 1.0) >= 1.0
    assert of_layer(rounding(activation=square), 1e30) >= ALMOST * 8 * UNDERFLOW * 1e30
    wide = rounding(activation=square, width=100)
    assert of_layer(wide, 0.0, 100) >= ALMOST * (1600 + 600) * UNDERFLOW
    weighed = rounding(activation=square, hidden=1e10).of_layer(1, none, none + 1)
    assert float(weighed) >= EPS * 1e10


def test_the_input_rounds_and_underflows() -> None:
    none, one = torch.zeros(1, 1), torch.ones(1, 1, 1)
    assert float(rounding(size=1.0).of_input(1e10 * one, none)) >= EPS * 1e10
    assert float(rounding().of_input(1e30 * one, none)) >= ALMOST * UNDERFLOW * 1e30
    assert float(rounding().of_input(0 * one, none + 1e10)) >= EPS * 1e10
    wide = rounding(inputs=100)
    assert float(wide.of_input(torch.zeros(1, 1, 100), none)) >= ALMOST * 404 * UNDERFLOW


def test_a_neuron_that_is_taken_for_nothing_is_one_whose_square_may_underflow() -> None:
    for size_of in (SINGLE, DOUBLE):
        assert size_of.negligible**2 * size_of.eps >= ALMOST * size_of.underflow


def test_a_moved_centre_is_within_its_larger_radius() -> None:
    source = torch.Generator().manual_seed(0)
    for _ in range(100):
        center = torch.rand(1, generator=source, dtype=torch.float64) / 7
        radius = float(torch.rand(1, generator=source, dtype=torch.float64)) / 3
        cast, moved = moved_center(center, "cpu", torch.float32)
        assert exact(moved) == [abs(exact(cast)[0] - exact(center)[0])]
        larger = larger_radius(radius, float(moved), 1, torch.float32)
        assert Fraction(larger) >= Fraction(radius) + exact(moved)[0]
    assert larger_radius(1e-60, 0.0, 1, torch.float32) >= SINGLE.tiny
    assert larger_radius(0.0, 0.0, 1, torch.float32) == 0.0


def test_what_several_half_spaces_lose_is_counted() -> None:
    box = Box(-torch.ones(1).double(), torch.ones(1).double())
    rows, none = torch.zeros(1, 9, 1).double(), torch.zeros(1, 9).double()
    spaces = HalfSpaces(rows, none, none)
    assert float(sum_error(box, spaces, none)) >= ALMOST * 62 * DOUBLE.underflow
    assert float(sum_error(box, spaces, none + 1e300)) >= ALMOST * 9 * DOUBLE.underflow * 1e300
    for seed in range(20):
        source = torch.Generator().manual_seed(seed)
        errors, weights = torch.rand(2, 1, 9, generator=source, dtype=torch.float64)
        given = exact(sum_error(box, spaces._replace(errors=errors), weights))[0]
        assert given >= sum(e * w for e, w in zip(exact(errors), exact(weights), strict=True))


def test_sums_of_half_spaces_that_cancel_are_rounded() -> None:
    point = torch.zeros(1).double()
    rows, none = torch.zeros(1, 9, 1).double(), torch.zeros(1, 9).double()
    for seed in range(20):
        source = torch.Generator().manual_seed(seed)
        values, weights = torch.rand(2, 1, 9, generator=source, dtype=torch.float64)
        spaces = HalfSpaces(rows, values - 0.5, none)
        box = Box(point, point)
        proved = exact(nominal(box, spaces, weights) - sum_error(box, spaces, weights))[0]
        pairs = zip(exact(spaces.values), exact(weights), strict=True)
        assert proved <= sum(v * w for v, w in pairs)
