"""A chain of matrices becomes one, whose roundings are counted by entries that are not 0."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.network import load_network
from fgp_vnn.network.maps.matrix import compressed
from fgp_vnn.network.model import Dense
from fgp_vnn.network.onnx.products import composed, roundings, sizes
from tests.helpers.network_models import Builder

WIDTHS = (6, 40, 30, 20)  # outputs of the last matrix first


def factors(nonzero: int, seed: int) -> list[Tensor]:
    """Matrices with so many entries in each row, of all magnitudes."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for outputs, inputs in pairwise(WIDTHS):
        order = torch.rand(outputs, inputs, generator=generator).argsort(-1) < nonzero
        scale = 10.0 ** torch.randint(-3, 4, (outputs, inputs), generator=generator).double()
        drawn = torch.randn(outputs, inputs, generator=generator, dtype=torch.float64)
        found.append(drawn * scale * order)
    return found


def exactly(matrices: list[Tensor]) -> list[list[Fraction]]:
    product = [[Fraction(value) for value in row] for row in matrices[0].tolist()]
    for matrix in matrices[1:]:
        columns = [[Fraction(value) for value in column] for column in matrix.T.tolist()]
        product = [
            [
                sum((a * b for a, b in zip(row, column, strict=True)), Fraction())
                for column in columns
            ]
            for row in product
        ]
    return product


@pytest.mark.parametrize("nonzero", [1, 2, 40])
def test_entries_are_off_by_at_most_the_roundings_counted(nonzero: int) -> None:
    for seed in range(3):
        matrices = factors(nonzero, seed)
        terms, _ = sizes(matrices, torch.zeros(WIDTHS[0]).double())
        count = roundings(matrices)
        share = unit(torch.float64).share(count)
        rows = zip(composed(matrices).tolist(), exactly(matrices), terms.tolist(), strict=True)
        for found, exact, size in rows:
            for one, other, most in zip(found, exact, size, strict=True):
                assert abs(Fraction(one) - other) <= Fraction(share * most)
        assert count >= sum(min(nonzero, width) for width in WIDTHS[1:])
        # With few entries in a row there are few roundings, however many columns there are.
        assert count <= sum(min(prod([nonzero] * (i + 1)), 40) + 2 for i in range(3))


def test_products_with_mostly_zeros_are_those_of_dense_matrices() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(400, 300, generator=generator, dtype=torch.float64)
    few = drawn * (torch.rand(400, 300, generator=generator) < 0.02)
    many = torch.randn(300, 5, generator=generator, dtype=torch.float64)
    assert compressed(few) is not None and compressed(many) is None
    for chain in ([few, few.T, few, many], [many.T, few.T], [few, many]):
        found = composed(chain)
        torch.testing.assert_close(found, torch.linalg.multi_dot(chain))
        assert found.is_contiguous()


def many_adds(b: Builder) -> tuple[str, Fraction, Fraction]:
    """x + 1, and 400 times half of the last digit of 1."""
    t = b.op("Add", b.op("MatMul", "x", b.const([[1.0]])), b.const([1.0]))
    for _ in range(400):
        t = b.op("Add", t, b.const([2.0**-53]))
    return t, Fraction(1), 1 + Fraction(400, 2**53)


def large_offset(b: Builder) -> tuple[str, Fraction, Fraction]:
    """A matrix that is not a plain chain of products, beside an offset that hides its terms."""
    t = b.op("MatMul", "x", b.const([[1.0] + [2.0**-53] * 800]))
    t = b.op("MatMul", b.op("Mul", t, b.const([1.0] * 801)), b.const(np.ones((801, 1))))
    return b.op("Add", t, b.const([2.0**60])), 1 + Fraction(800, 2**53), Fraction(2**60)


def copies(b: Builder) -> tuple[str, Fraction, Fraction]:
    """A sum of copies of one entry, by a product with a vector."""
    t = b.op("MatMul", b.op("Tile", "x", b.ints(1, 3001)), b.const([1.0] + [2.0**-53] * 3000))
    return t, 1 + Fraction(3000, 2**53), Fraction(0)


def copies_of_copies(b: Builder) -> tuple[str, Fraction, Fraction]:
    """The same by two short sums, one after the other; all are one sum when pulled back."""
    t = b.op("Reshape", b.op("Tile", "x", b.ints(1, 4096)), b.ints(64, 64))
    t = b.op("MatMul", b.op("Mul", t, b.const(_small(4096).reshape(64, 64))), b.const(_ones(64)))
    t = b.op("MatMul", b.op("Transpose", t), b.const(_ones(64)))
    return t, 1 + Fraction(4095, 2**53), Fraction(0)


def broadcast(b: Builder) -> tuple[str, Fraction, Fraction]:
    """An entry that is multiplied by many numbers."""
    t = b.op("Reshape", b.op("Mul", "x", b.const(_small(4096))), b.ints(64, 64))
    t = b.op("MatMul", t, b.const(_ones(64)))
    t = b.op("MatMul", b.op("Transpose", t), b.const(_ones(64)))
    return t, 1 + Fraction(4095, 2**53), Fraction(0)


def _ones(size: int) -> Any:
    return np.ones((size, 1))


def _small(size: int) -> Any:
    return np.asarray([1.0] + [2.0**-53] * (size - 1))


@pytest.mark.parametrize("entries", [2_000_000, 0])
@pytest.mark.parametrize("made", [many_adds, large_offset, copies, copies_of_copies, broadcast])
def test_what_loading_has_rounded_is_within_what_the_map_charges(
    made: Callable[[Builder], tuple[str, Fraction, Fraction]], entries: int, tmp_path: Path
) -> None:
    b = Builder([1, 1])
    t, weight, bias = made(b)
    path = b.save(tmp_path / "m.onnx", b.op("MatMul", b.op("Relu", t), b.const([[1.0]])))
    first = load_network(path, dense_entries=entries).network.layers[0]
    one = torch.ones(1, dtype=torch.float64)
    ones, none = first.charge([one], 1.0).terms, first.charge([0 * one], 1.0).terms
    share = unit(torch.float64).share(first.operations)
    (column,) = first.adjoint(torch.ones(1, 1, dtype=torch.float64))
    off = abs(Fraction(float(first.bias)) - bias)
    assert off <= Fraction(share * float(none))
    assert off + abs(Fraction(float(column)) - weight) <= Fraction(share * float(ones))
    if isinstance(first, Dense) and first.terms is not None:
        lost = abs(Fraction(float(column)) - weight)
        assert lost <= Fraction(share * float(first.terms[0]))


@pytest.mark.parametrize(("kind", "sign"), [("Add", 1), ("Sub", -1)])
def test_an_offset_before_a_product_is_a_sum(kind: str, sign: int, tmp_path: Path) -> None:
    offsets = [128.0] + [2.0**-47] * 62 + [-127.75]
    b = Builder([1, 64])
    t = b.op("MatMul", b.op(kind, "x", b.const(offsets)), b.const(np.ones((64, 1))))
    path = b.save(tmp_path / "m.onnx", b.op("MatMul", b.op("Relu", t), b.const([[1.0]])))
    first = load_network(path).network.layers[0]
    none = float(first.charge([torch.zeros(64).double()], 1.0).terms)
    off = abs(Fraction(float(first.bias)) - sign * sum(map(Fraction, offsets), Fraction()))
    assert 0 < off <= Fraction(unit(torch.float64).share(first.operations) * none)


@pytest.mark.parametrize(("kind", "times"), [("Add", 2), ("Sub", 0)])
def test_a_value_that_is_added_to_itself_counts_twice(
    kind: str, times: int, tmp_path: Path
) -> None:
    b = Builder([1, 2])
    t = b.op("MatMul", "x", b.const([[1.0, 2.0], [3.0, 4.0]]))
    t = b.op("MatMul", b.op(kind, t, t), b.const([[1.0], [1.0]]))
    only = load_network(b.save(tmp_path / "m.onnx", t)).network.output
    (row,) = only.adjoint(torch.ones(1, 1, dtype=torch.float64))
    assert row.tolist() == [[3.0 * times, 7.0 * times]]


def test_a_chain_of_selections_costs_hardly_more_than_its_entries(tmp_path: Path) -> None:
    """Two inputs, 40 pieces, 1600 copies of them: terms that counted every column were 800 times
    the entries."""
    b = Builder([1, 2])
    selection = torch.eye(40).repeat(1, 40).numpy()
    pairs = torch.kron(torch.eye(800), torch.tensor([[1.0, -1.0], [-1.0, 1.0]])).numpy()
    t = b.op("MatMul", "x", b.random(2, 40))
    t = b.op("Add", t, b.random(40))
    t = b.op("MatMul", t, b.const(selection))
    t = b.op("Relu", b.op("MatMul", t, b.const(pairs)))
    path = b.save(tmp_path / "m.onnx", b.op("MatMul", t, b.random(1600, 1)))
    first = load_network(path).network.layers[0]
    assert isinstance(first, Dense) and first.terms is not None
    assert float(first.terms[0].max()) <= 2.001 * float(first.weights[0].abs().max())
    assert first.rounded <= 20
