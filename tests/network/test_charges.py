"""What a matrix charges for rounding by one product is what its parts charge one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.network.model import AffineMap, Dense

OUTPUTS, WIDTHS = 3, (4, 2)


def drawn(size: float, *shape: int) -> Tensor:
    return size * torch.rand(*shape, generator=torch.Generator().manual_seed(1)).double()


def matrices(weight: float, defect: float, terms: float) -> Dense:
    weights = tuple(drawn(weight, OUTPUTS, width) for width in WIDTHS)
    sizes = (*(drawn(terms, OUTPUTS, width) for width in WIDTHS), drawn(terms, OUTPUTS))
    return Dense(
        (0, 1),
        weights,
        drawn(weight, OUTPUTS),
        drawn(defect, OUTPUTS) if defect else None,
        sizes if terms else None,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("times", [1.0, 3.0])
@pytest.mark.parametrize("weight", [0.0, 1.0, 1e20])
@pytest.mark.parametrize("defect", [0.0, 1e25])
@pytest.mark.parametrize("terms", [0.0, 1e10])
def test_one_product_charges_what_the_parts_do(
    dtype: torch.dtype, times: float, weight: float, defect: float, terms: float
) -> None:
    affine = matrices(weight, defect, terms).to("cpu", dtype)
    share, lost = unit(dtype).share(affine.operations + 4), unit(dtype).underflow
    for size in (0.0, 1.0, 1e15):
        values = [drawn(size, 5, width).to(dtype) for width in WIDTHS]
        kept, plain = (
            affine.charge(values, share, times),
            AffineMap.charge(affine, values, share, times),
        )
        for one, other, room in zip(kept, plain, (0, 2), strict=True):
            assert bool((one >= (1 - 1e-5) * other).all())
            read = 1 + sum(value.sum(-1, keepdim=True) for value in values)
            assert bool((one <= (1 + 1e-5) * (other + room * lost * read)).all())


def test_a_row_is_charged_for_each_number_that_it_is_multiplied_by() -> None:
    affine, lost = matrices(0.0, 0.0, 0.0), unit(torch.float64).underflow
    values = [drawn(1.0, width) for width in WIDTHS]
    read = float(1 + sum(value.sum() for value in values))
    terms, floor = AffineMap.charge(affine, values, 0.0, 3.0)
    assert float(terms.min()) >= lost * 3 * (2 * sum(WIDTHS) + read)
    assert float(floor) >= lost * (2 * OUTPUTS * read + 8 * OUTPUTS)


@pytest.mark.parametrize("times", [1e3, 1e10])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e25])
def test_sums_that_were_rounded_in_float64_count_in_float32_for_what_they_lost(
    size: float, times: float
) -> None:
    """Terms that are so many times larger than the entries that are left of them."""
    fine = matrices(size, 0.0, times * size)
    coarse = fine.to("cpu", torch.float32)
    assert fine.terms is not None and coarse.terms is not None
    parts = zip((*fine.weights, fine.bias), fine.terms, coarse.terms, strict=True)
    finer = unit(torch.float64).eps / unit(torch.float32).eps
    for entry, before, after in parts:
        least = entry.abs() + finer * before
        assert after.dtype == torch.float32
        assert bool((after.double() >= least).all())
        assert bool((after.double() <= 1.001 * least + 1e-36).all())


def test_sums_that_were_rounded_in_float32_count_for_as_much_more_in_float64() -> None:
    coarse = matrices(1.0, 0.0, 10.0).to("cpu", torch.float32)
    fine = coarse.to("cpu", torch.float64)
    assert coarse.terms is not None and fine.terms is not None
    for before, after in zip(coarse.terms, fine.terms, strict=True):
        lost = unit(torch.float32).eps * before.double()
        torch.testing.assert_close(unit(torch.float64).eps * after, lost)


def test_sums_stay_as_they_are_in_their_own_precision() -> None:
    fine = matrices(1.0, 0.0, 10.0)
    same = fine.to("cpu", torch.float64)
    assert fine.terms is not None and same.terms is not None
    assert all(map(torch.equal, fine.terms, same.terms))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_roundings_of_entries_stay_with_them(dtype: torch.dtype) -> None:
    whole = replace(matrices(1.0, 0.0, 10.0), rounded=50)
    plain = matrices(1.0, 0.0, 0.0)
    assert whole.operations == plain.operations + 50
    some = torch.tensor([0, 2])
    for part in (whole.select(some), whole.to("cpu", dtype), whole.select(some).to("cpu", dtype)):
        assert part.rounded == 50 and part.operations == whole.operations
