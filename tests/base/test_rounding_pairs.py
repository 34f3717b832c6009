"""Merged pairs of neurons hold what was there in exact arithmetic: where each term of the error is
all that makes it true."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.transform.opposites import merge_opposites
from tests.helpers.flushing import flushed

TINY = torch.finfo(torch.float64).tiny


def double(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def exact(values: Tensor) -> list[Fraction]:
    return [Fraction(v) for v in values.flatten().tolist()]


def merged(
    reads: Tensor,
    signs: Tensor,
    *,
    weight: float = 1.0,
    bias: float = 1.0,
    most: float = 1.0,
    defects: tuple[Tensor | None, Tensor | None] = (None, None),
) -> Dense:
    """The map with the matrix `reads` [outputs, neurons], after the neurons signs (weight x + bias)
    with |z| <= most are made one; with the defects of the neurons and of the outputs."""
    own, given = defects
    first = Dense((0,), (weight * signs.unsqueeze(1),), bias * signs, own)
    second = Dense((1,), (reads,), reads.new_zeros(len(reads)), given)
    output = Dense((2,), (reads.new_ones(1, len(reads)),), reads.new_ones(1))
    network = Network((first, second), output, 1)
    box = Box(-reads.new_ones(1), reads.new_ones(1))
    query = Query(network, box, torch.zeros(1).long(), torch.zeros(1, dtype=torch.bool), 1)
    sizes = [reads.new_full((1, len(signs)), most), reads.new_ones(1, len(reads))]
    bounds = LayerBounds(tuple(-s for s in sizes), tuple(sizes))
    found = merge_opposites(query, bounds, 1e-6)
    assert found is not None
    result = found[0].network.layers[1]
    assert isinstance(result, Dense)
    return result


def defect_of(affine: Dense) -> list[Fraction]:
    assert affine.defect is not None
    return exact(affine.defect)


def room(affine: Dense) -> list[list[Fraction]]:
    """How far each entry may be off, matrix by matrix and then the bias: half of the operations of
    a map whose entries are sums are for making these."""
    assert affine.terms is not None
    share = Fraction(unit(affine.bias.dtype).share(affine.operations // 2))
    return [[share * size for size in exact(terms)] for terms in affine.terms]


def test_defects_of_merged_neurons_are_not_rounded_down() -> None:
    source = torch.Generator().manual_seed(0)
    reads = torch.rand(60, 21, generator=source, dtype=torch.float64)
    own = torch.rand(21, generator=source, dtype=torch.float64)
    given = torch.rand(60, generator=source, dtype=torch.float64)
    signs = torch.where(torch.arange(21) > 0, -1.0, 1.0).double()
    made = merged(reads, signs, defects=(own, given))
    kept, *gone = exact(own)
    for row, before, after in zip(reads, exact(given), defect_of(made), strict=True):
        moved = zip(exact(row)[1:], gone, strict=True)
        assert after >= before + sum(size * (part + 2 * kept) for size, part in moved)


def test_products_with_defects_that_underflow_count() -> None:
    reads, own = double(1.0, 1e-200).unsqueeze(0), double(1e-200, 1e-200)
    made = merged(reads, double(1.0, -1.0), defects=(own, None))
    assert defect_of(made)[0] >= 3 * exact(reads)[1] * exact(own)[1]


@pytest.mark.parametrize(("weight", "own"), [(TINY / 2, 1e300), (1e300, TINY / 2)])
def test_weights_and_defects_that_are_flushed_count(weight: float, own: float) -> None:
    with flushed():
        made = merged(double(1.0, weight)[None], double(1.0, 1.0), defects=(double(0.0, own), None))
    assert defect_of(made)[0] >= Fraction(weight) * Fraction(own)


def test_a_remainder_that_rounding_hides_is_paid_for() -> None:
    """1 + 2^-55 - 1 is computed to 0, and dropped: with neurons of up to 1e9, 2^-55 of that."""
    reads = double(1.0, 2.0**-55, -1.0).unsqueeze(0)
    made = merged(reads, double(1.0, 1.0, 1.0), most=1e9)
    assert exact(made.weights[made.sources.index(1)]) == [0]
    assert defect_of(made)[0] >= sum(exact(reads)) * 10**9


def test_a_remainder_that_is_flushed_is_paid_for() -> None:
    with flushed():
        made = merged(double(1.5 * TINY, -TINY)[None], double(1.0, 1.0), most=1e300)
    assert exact(made.weights[made.sources.index(1)]) == [0]
    assert defect_of(made)[0] >= Fraction(TINY) / 2 * Fraction(1e300)


def test_an_entry_of_more_terms_than_columns_has_room_for_their_roundings() -> None:
    """1 and 300 numbers that each vanish beside it."""
    reads = torch.cat([double(0.5, 1.0), torch.full((300,), 2.0**-54).double()]).unsqueeze(0)
    made = merged(reads, torch.ones(302).double())
    at = made.sources.index(1)
    assert abs(exact(made.weights[at])[0] - sum(exact(reads))) <= room(made)[at][0]


def test_an_entry_and_a_bias_that_underflow_have_room() -> None:
    """-1e-200 relu(z) for the opposite of z = 1e-200 x + 1e-200."""
    made = merged(double(1.0, 1e-200)[None], double(1.0, -1.0), weight=1e-200, bias=1e-200)
    product = Fraction(1e-200) ** 2
    assert abs(exact(made.weights[made.sources.index(0)])[0] + product) <= room(made)[0][0]
    assert abs(exact(made.bias)[0] + product) <= room(made)[-1][0]


def test_an_entry_of_which_a_factor_is_flushed_has_room() -> None:
    """1e300 times half of the smallest normal number."""
    with flushed():
        made = merged(double(1.0, 1e300)[None], double(1.0, -1.0), weight=TINY / 2)
    product = Fraction(1e300) * Fraction(TINY) / 2
    assert abs(exact(made.weights[made.sources.index(0)])[0] + product) <= room(made)[0][0]
