"""Quadratic forms as squares: exactly the same numbers, or nothing."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.network import load_network
from fgp_vnn.network.onnx.quadratic import Doubles, squares_of
from tests.helpers.network_models import Builder


def convex(seed: int, size: int, scale: float = 1.0) -> Doubles:
    """A matrix of float32 numbers whose symmetric part is positive definite."""
    random = np.random.default_rng(seed)
    half, twist = random.normal(size=(2, size, size))
    matrix = half @ half.T + 0.1 * np.eye(size) + (twist - twist.T)
    return np.asarray((scale * matrix).astype(np.float32), dtype=np.float64)


@pytest.mark.parametrize("scale", [1.0, -1.0, 1e-4, -3e5])
@pytest.mark.parametrize("size", [1, 2, 6])
def test_a_form_is_the_sum_of_its_squares_and_a_small_rest_exactly(size: int, scale: float) -> None:
    matrix = convex(size, size, scale)
    found = squares_of(matrix)
    assert found is not None and found.sign == np.sign(scale)
    x = [Fraction(int(i), 7) for i in np.random.default_rng(0).integers(-50, 50, size)]

    def value(m: Doubles) -> Fraction:
        return sum(
            (x[i] * Fraction(m[i, j]) * x[j] for i in range(size) for j in range(size)), Fraction(0)
        )

    squares = [sum(Fraction(e) * v for e, v in zip(row, x, strict=True)) for row in found.factor]
    assert value(matrix) == found.sign * (sum(s * s for s in squares) + value(found.rest))
    assert np.abs(found.rest).max() <= 1e-5 * np.abs(matrix).max()


def test_what_curves_both_ways_or_is_not_finite_has_no_squares() -> None:
    assert squares_of(np.diag([1.0, -1.0])) is None
    assert squares_of(np.array([[0.0, 1.0], [1.0, 0.0]])) is None
    assert squares_of(np.diag([1.0, np.inf])) is None
    assert squares_of(np.ones((2, 3))) is None


def test_a_rest_that_is_no_float64_is_not_rounded() -> None:
    """The mean of 0.25 and of 1e-20 pi has too many digits."""
    assert squares_of(np.array([[2.0, 0.25], [1e-20 * np.pi, 1.1]])) is None
    assert squares_of(np.array([[2.0, 0.25], [0.25, 1.1]])) is not None


@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_a_file_with_a_form_is_read_as_squares(tmp_path: Path, scale: float) -> None:
    builder = Builder([1, 4])
    matrix = convex(3, 4, scale)
    moved = builder.op("MatMul", "x", builder.const(matrix))
    axes = builder.ints(1)
    total = builder.op("ReduceSum", builder.op("Mul", "x", moved), axes, keepdims=1)
    network = load_network(builder.save(tmp_path / "a.onnx", total)).network
    assert "Square" in network.smooth_names
