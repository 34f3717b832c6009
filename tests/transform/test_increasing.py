"""Functions at the end of a network that are taken off."""

from __future__ import annotations

import pytest
import torch
from mpmath import mpf
from torch import Tensor

from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.model import Combination, Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.transform.increasing import take_off_end
from tests.helpers.activation_cases import EXACT, curves
from tests.helpers.random_networks import generator

INCREASING = ("Sigmoid", "Tanh", "Erf", "Softsign", "Atan", "Asinh", "Exp", "Sinh", "Softplus")


def _doubles(values: object) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


def query(
    name: str,
    rows: Tensor,
    offset: Tensor,
    *,
    inner: Dense | None = None,
) -> Query:
    """Rows of f(relu(x) - relu(-x)), each a disjunct; an input for each of their columns."""
    width, count = rows.shape[1], len(rows)
    eye, zero = torch.eye(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
    parted = Dense((0,), (torch.cat([eye, -eye]),), torch.cat([zero, zero]))
    joined = Dense((1,), (torch.cat([eye, -eye], 1),), zero)
    output = Combination(inner or Dense((2,), (eye,), zero), rows, offset)
    network = Network((parted, joined), output, width, (RELU, curves()[name]))
    ends = torch.full((width,), 5.0, dtype=torch.float64)
    strict = torch.zeros(count, dtype=torch.bool)
    return Query(network, Box(-ends, ends), torch.arange(count), strict, count)


@pytest.mark.parametrize("name", INCREASING)
def test_a_limit_moves_to_a_place_on_its_safe_side_and_near(name: str) -> None:
    random = generator(len(name))
    z = 4 * torch.rand(40, generator=random, dtype=torch.float64) - 2
    signs = torch.where(torch.rand(40, generator=random) < 0.5, 1.0, -1.0).double()
    factors = signs * 10.0 ** torch.randn(40, generator=random, dtype=torch.float64)
    limits = curves()[name].value(z)
    asked = query(name, factors.unsqueeze(-1), -factors * limits)
    found = take_off_end(asked)
    assert found.network.piecewise_linear
    output = found.network.output
    assert isinstance(output, Combination)
    before = asked.network.output
    assert isinstance(before, Combination)
    for row, sign in enumerate(signs.tolist()):
        assert output.rows[row].tolist() == [sign]
        place = -sign * float(output.offset[row])
        limit = -mpf(float(before.offset[row])) / mpf(float(before.rows[row]))
        assert sign * (EXACT[name](mpf(place)) - limit) >= 0
        assert abs(place - float(z[row])) <= 1e-11


def test_numbers_that_were_rounded_are_left_alone() -> None:
    """Those of sums, and those of a query in float32."""
    one, zero = _doubles([[1.0]]), _doubles([0.0])
    asked = query("Sigmoid", one, _doubles([-0.5]))
    assert take_off_end(asked).network.piecewise_linear
    summed = Dense((2,), (one,), zero, terms=(one, zero + 1e20))
    for rounded in (
        query("Sigmoid", one, _doubles([-0.5]), inner=summed),
        asked.to("cpu", torch.float32),
        query("Sigmoid", one, _doubles([-torch.inf])),
    ):
        assert take_off_end(rounded) is rounded


def test_comparisons_of_outputs_are_comparisons_of_what_comes_before() -> None:
    rows = _doubles([[2.0, -2.0], [-0.5, 0.5]])
    found = take_off_end(query("Sigmoid", rows, torch.zeros(2, dtype=torch.float64)))
    output = found.network.output
    assert isinstance(output, Combination)
    assert output.rows.tolist() == [[1.0, -1.0], [-1.0, 1.0]]
    assert output.offset.tolist() == [0.0, 0.0]


def test_outputs_may_be_scaled_and_moved() -> None:
    """50 - 100 sigmoid(x_1) <= 0 and 3 sigmoid(x_0) + 1 <= 2.5: both have their limit at 0."""
    inner = Dense((2,), (_doubles([[0.0, -100.0], [3.0, 0.0]]),), _doubles([50.0, 1.0]))
    found = take_off_end(query("Sigmoid", torch.eye(2).double(), _doubles([0, -2.5]), inner=inner))
    assert found.network.piecewise_linear
    points = _doubles([[0.0, 0.0], [1e-9, -1e-9]])
    assert (found.network(points) <= 0).tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("name", INCREASING)
def test_what_meets_a_row_still_meets_it(name: str) -> None:
    random = generator(7)
    points = 6 * torch.rand(3000, 1, generator=random, dtype=torch.float64) - 3
    limits = curves()[name].value(points[:20, 0])  # met with equality
    rows = torch.where(torch.arange(20) % 2 == 0, 1.0, -1.0).double()
    asked = query(name, rows.unsqueeze(-1), -rows * limits)
    found = take_off_end(asked)
    assert found is not asked
    met, still = asked.network(points) <= 0, found.network(points) <= 0
    assert bool(met.any()) and not bool((met & ~still).any())


@pytest.mark.parametrize(
    ("name", "row", "offset"),
    [
        ("Sigmoid", [1.0, 1.0], -1.0),  # of a sum
        ("Sigmoid", [1.0, -2.0], 0.0),
        ("Sigmoid", [1.0, -1.0], -0.25),
        ("Cos", [1.0, 0.0], -0.5),  # no increasing function
        ("Sign", [1.0, 0.0], -0.5),
        ("SiLU", [1.0, 0.0], -0.5),
    ],
)
def test_other_rows_and_functions_are_left_alone(
    name: str, row: list[float], offset: float
) -> None:
    rows, offsets = _doubles([[1.0, 0.0], row]), _doubles([-0.5, offset])
    asked = query(name, rows, offsets)
    assert take_off_end(asked) is asked


ALWAYS, NEVER = [0.0, -1.0], [0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "row", "offset", "found"),
    [
        ("Sigmoid", 1.0, -1.0, ALWAYS),  # at most 1
        ("Tanh", -1.0, -2.0, ALWAYS),  # at least -2
        ("Exp", -1.0, 0.0, ALWAYS),
        ("Sigmoid", 0.0, 0.0, ALWAYS),
        ("Sigmoid", -1.0, 2.0, NEVER),  # at least 2
        ("Tanh", 1.0, 1.5, NEVER),  # at most -1.5
        ("Softplus", 1.0, 1.0, NEVER),
        ("Sigmoid", 0.0, 1.0, NEVER),
    ],
)
def test_rows_that_are_met_always_or_never_are_constant(
    name: str, row: float, offset: float, found: list[float]
) -> None:
    taken = take_off_end(query(name, _doubles([[1.0], [row]]), _doubles([-0.5, offset])))
    output = taken.network.output
    assert taken.network.piecewise_linear and isinstance(output, Combination)
    assert [*output.rows[1].tolist(), float(output.offset[1])] == found


@pytest.mark.parametrize(
    ("name", "row", "offset", "within"),
    [
        ("Sigmoid", -1.0, 1.0, 2.0**-24),  # at least 1, which is what float32 rounds to
        ("Sigmoid", 1.0, 0.0, 2.0**-24),
        ("Exp", 1.0, 0.0, 2.0**-24),
        ("Tanh", -1.0, 1.0, 2.0**-23),
        ("Tanh", 1.0, 1.0 - 2.0**-40, 2.0**-29),
        ("Sigmoid", 1.0, -(2.0**-50), 2.0**-30),
    ],
)
def test_limits_at_the_end_of_a_range_become_some_that_are_reached(
    name: str, row: float, offset: float, within: float
) -> None:
    output = take_off_end(query(name, _doubles([[row]]), _doubles([offset]))).network.output
    assert isinstance(output, Combination) and output.rows.tolist() == [[row]]
    value = EXACT[name](mpf(-row * float(output.offset[0])))
    apart = row * (value + mpf(offset) / row)  # from the limit, on the side that is asked for less
    assert 0 < apart <= mpf(within) * (1 + mpf(1e-5))


def test_maps_that_mix_values_or_have_a_defect_are_left_alone() -> None:
    eye, zero = torch.eye(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    rows, offset = _doubles([[1.0, 0.0]]), _doubles([-0.5])
    for inner in (
        Dense((2,), (_doubles([[1.0, 1.0], [0.0, 1.0]]),), zero),
        Dense((2,), (eye,), zero, zero + 1e-9),
        Dense((1, 2), (torch.cat([eye, eye], 1), eye), zero),
    ):
        asked = query("Sigmoid", rows, offset, inner=inner)
        assert take_off_end(asked) is asked
