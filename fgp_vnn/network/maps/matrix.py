"""Products with sparse matrices in compressed rows (CSR).

A row of a convolution's matrix reads only a patch of the input. On a CPU, the product with such a
matrix in compressed form is several times faster; it adds the same terms, without the zeros.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.strategy import COMMON


class Compressed(NamedTuple):
    """A matrix and its transpose in compressed rows."""

    plain: Tensor  # [outputs, inputs], sparse
    transposed: Tensor  # [inputs, outputs], sparse

    def pull(self, rows: Tensor) -> Tensor:
        """rows [..., outputs] @ matrix, [..., inputs]."""
        return _times(self.transposed, rows)

    def push(self, values: Tensor) -> Tensor:
        """values [..., inputs] @ matrix.T, [..., outputs]."""
        return _times(self.plain, values)


def most_in_a_row(matrix: Tensor) -> int:
    """The largest number of nonzero entries in a row: a product with a vector rounds each term at
    most so many times, because a product by 0 and a sum with it are exact."""
    return int(torch.count_nonzero(matrix, -1).amax()) if matrix.numel() else 0


def compressed(matrix: Tensor) -> Compressed | None:
    """The matrix in compressed rows, where that makes products on the CPU faster."""
    if matrix.device.type != "cpu" or matrix.numel() < COMMON.sparse_from:
        return None
    if int(torch.count_nonzero(matrix)) > COMMON.sparse * matrix.numel():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls compressed rows a beta feature
        return Compressed(matrix.to_sparse_csr(), matrix.T.contiguous().to_sparse_csr())


def _times(matrix: Tensor, values: Tensor) -> Tensor:
    """values [..., n] @ matrix.T, computed in pieces that fit into the cache."""
    flat = values.reshape(-1, values.shape[-1])
    result = flat.new_empty(flat.shape[0], matrix.shape[0])
    for start in range(0, len(flat), COMMON.sparse_vectors):
        chunk = slice(start, start + COMMON.sparse_vectors)
        result[chunk] = (matrix @ flat[chunk].T).T
    return result.reshape(*values.shape[:-1], matrix.shape[0])
