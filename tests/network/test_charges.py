"""What a matrix charges for rounding by one product is what its parts charge one by one."""

from __future__ import annotations

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
