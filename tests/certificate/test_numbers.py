"""Numbers at the ends of float64: what is not finite, or too large or small, proves nothing."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.certificate.checker.bounds import Enclosure
from fgp_vnn.certificate.checker.check import check
from fgp_vnn.certificate.checker.network import CheckedNetwork, read_network
from fgp_vnn.certificate.checker.proof import Certificate, ProofStep
from fgp_vnn.certificate.prove import typed
from fgp_vnn.property import Case, Conjunction, Property
from tests.certificate.maps import affine, exact_values

Array = NDArray[np.float64]


def one_case(lower: list[float], upper: list[float], row: list[float], limit: float) -> Property:
    unsafe = Conjunction(np.array([row]), np.array([limit]), np.array([False]))
    case = Case(np.array(lower), np.array(upper), (unsafe,))
    return Property((case,), len(lower), len(row))


def close(weight: float = 1.0) -> ProofStep:
    arrays = {"disjuncts": [0], "weights": [[weight]], "tree": [-1], "columns": [], "slopes": [[]]}
    given = {name: np.array(a) for name, a in (arrays | {"multipliers": []}).items()}
    return typed(ProofStep("close", 0, given))


def boxes(weight: float = 1.0) -> ProofStep:
    arrays = {"disjuncts": [0], "weights": [[weight]], "tree": [-1], "cuts": []}
    return typed(ProofStep("boxes", 0, {name: np.array(a) for name, a in arrays.items()}))


@pytest.mark.parametrize("step", [close(), boxes()], ids=["close", "boxes"])
def test_a_bound_that_overflows_proves_nothing(step: ProofStep) -> None:
    """h = 10 - relu(1 + x_1) - ... - relu(1 + x_8), y = (h - 1) / 4 can be -0.15; 1e308 * 10 / 4 is
    infinite, and what is then taken away, layer by layer, is not."""
    units = np.eye(8).tolist()
    network = CheckedNetwork(
        (
            *(affine({0: [unit]}, [1.0]) for unit in units),
            affine({k: [[-1.0]] for k in range(1, 9)}, [10.0]),
            affine({9: [[0.25]]}, [-0.25]),
        ),
        8,
    )
    false = one_case([0.0] * 8, [0.2] * 8, [1e308], 0.0)
    with pytest.raises(InputError, match="bound -inf, which is not"):
        check(Certificate("", "", (step,)), network, false)


def test_what_is_not_finite_is_not_learned() -> None:
    network = CheckedNetwork((affine({0: [[1.0]]}, [0.0]), affine({1: [[1.0]]}, [0.0])), 1)
    enclosure = Enclosure(network, np.array([[-1.0]]), np.array([[1.0]]))
    before = enclosure.lower[0].copy(), enclosure.upper[0].copy()
    for value in (np.inf, -np.inf, np.nan):
        for below in (False, True):
            enclosure.learn(0, np.array([[0]]), np.array([[value]]), below=below)
    assert (enclosure.lower[0], enclosure.upper[0]) == before


@pytest.mark.parametrize("size", [1e101, 1e300, np.inf, np.nan])
def test_a_box_out_of_range_is_an_error(size: float) -> None:
    """Coefficients that underflow would be worth something there: 1e-330 * 1e300."""
    network = CheckedNetwork((affine({0: [[1e-150]]}, [0.0]), affine({1: [[1.0]]}, [0.0])), 1)
    with pytest.raises(OverflowError):
        Enclosure(network, np.array([[-1.0]]), np.array([[size]]))


powers = st.sampled_from([-323, -310, -300, -160, -100, -45, -20, 0, 20, 45, 100, 160, 300])


def extreme(generator: np.random.Generator, shape: tuple[int, ...], power: int) -> Array:
    return np.asarray(generator.normal(size=shape) * np.float64(f"1e{power}"))


@given(st.integers(0, 10**6), st.lists(powers, min_size=5, max_size=5))
@settings(deadline=None, max_examples=150)
def test_bounds_hold_at_the_ends_of_float64(seed: int, sizes: list[int]) -> None:
    generator = np.random.default_rng(seed)
    first = extreme(generator, (2, 2), sizes[0]), extreme(generator, (2,), sizes[1])
    last = extreme(generator, (1, 2), sizes[2]), extreme(generator, (1,), sizes[3])
    network = CheckedNetwork((affine({0: first[0]}, first[1]), affine({1: last[0]}, last[1])), 2)
    center = extreme(generator, (1, 2), sizes[4])
    lower, upper = np.minimum(center, 0), np.maximum(center, 1e-3 * np.abs(center))
    row = extreme(generator, (1, 1, 1), int(generator.integers(-300, 300)))
    try:
        enclosure = Enclosure(network, lower, upper)
    except OverflowError:
        return
    least = float(enclosure.least(1, row)[0, 0])
    for _ in range(4):
        ends = np.where(generator.random(2) < 0.5, lower[0], upper[0])
        z, y = exact_values(network, ends)
        for value, low, high in zip(z, enclosure.lower[0][0], enclosure.upper[0][0], strict=True):
            assert Fraction(low) <= value <= Fraction(high)
        assert least == -np.inf or Fraction(least) <= Fraction(float(row[0, 0, 0])) * y[0]


def test_weights_whose_products_underflow_are_refused() -> None:
    """y = x, by factors that cancel in real numbers only: 0 would be proved of it."""
    factors = [np.float32(2.0**-126)] * 9 + [np.float32(2.0**126)] * 9
    names = ["x", *(f"t{i}" for i in range(17)), "y"]
    nodes = [
        helper.make_node("Mul", [before, f"c{i}"], [after])
        for i, (before, after) in enumerate(pairwise(names))
    ]
    constants = [numpy_helper.from_array(np.array([f]), f"c{i}") for i, f in enumerate(factors)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 1]) for n in "xy"]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], constants)
    with pytest.raises(UnsupportedError, match="underflow"):
        read_network(helper.make_model(graph).SerializeToString())
