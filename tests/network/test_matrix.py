"""Products with matrices in compressed rows are those with the dense ones."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.network.maps.matrix import compressed
from fgp_vnn.network.model import Dense
from fgp_vnn.strategy import COMMON


def mostly_zero(rows: int, columns: int, part: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    keep = torch.rand(rows, columns, generator=generator, dtype=torch.float64) < part
    return matrix * keep


@pytest.mark.parametrize("batch", [(), (3,), (2, 150), (0,)])
def test_products_are_the_same_for_any_batch(batch: tuple[int, ...]) -> None:
    matrix = mostly_zero(250, 400, 0.05)
    sparse = compressed(matrix)
    assert sparse is not None
    rows, values = torch.randn(*batch, 250).double(), torch.randn(*batch, 400).double()
    torch.testing.assert_close(sparse.pull(rows), rows @ matrix)
    torch.testing.assert_close(sparse.push(values), values @ matrix.T)


def test_small_and_filled_matrices_stay_dense() -> None:
    assert compressed(torch.zeros(10, COMMON.sparse_from // 10 - 1)) is None
    assert compressed(mostly_zero(300, 300, 0.5)) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_map_does_not_show_how_it_multiplies(dtype: torch.dtype) -> None:
    matrices = (mostly_zero(250, 400, 0.02), mostly_zero(250, 30, 1.0))
    affine = Dense((0, 1), matrices, torch.zeros(250).double()).to("cpu", dtype)
    values = [torch.randn(4, 400, dtype=dtype), torch.randn(4, 30, dtype=dtype)]
    rows = torch.randn(4, 250, dtype=dtype)
    expected = sum(v @ m.to(dtype).T for v, m in zip(values, matrices, strict=True))
    torch.testing.assert_close(affine.linear(values), expected)
    for pulled, matrix in zip(affine.adjoint(rows), matrices, strict=True):
        torch.testing.assert_close(pulled, rows @ matrix.to(dtype))
