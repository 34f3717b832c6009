"""The interface of an affine map of a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import rounded_down, unit


class Underflows(NamedTuple):
    """Upper bound on the underflow error of a map's results, in units of `Unit.underflow`."""

    forward: Tensor  # [..., outputs or 1] error of each result
    backward: Tensor  # [..., 1] error of a row that is pulled back, in addition to |row| . forward


class Charge(NamedTuple):
    """Upper bound on the rounding error of a map, by the theorem in `base.rounding`."""

    terms: Tensor  # [..., outputs] error of each result
    floor: Tensor  # [..., 1] error of a row that is pulled back, in addition to |row| . terms


def charged(
    sizes: tuple[Tensor, ...], defect: Tensor | None, share: float, times: float
) -> tuple[Tensor, ...]:
    """Matrices [outputs + 1, n_s], one per source, and a constant [outputs + 1]: `AffineMap.charge`
    as an affine function of the values. `sizes` are |W| of each source and |bias|; the last row is
    the floor."""
    *matrices, offset = sizes
    lost, outputs = unit(offset.dtype).underflow, len(offset)
    entries = 1 + sum(matrix.shape[1] for matrix in matrices)
    constant = share * offset + lost * (times * (2 * entries + 1) + 8)
    if defect is not None:
        constant = constant + (1 + share) * defect
    parts = [*(share * matrix + times * lost for matrix in matrices), constant]
    floors = [lost * (2 * outputs + 4 + 2 * part.sum(0, keepdim=True)) for part in parts]
    floors[-1] = floors[-1] + 8 * outputs * lost
    return tuple(torch.cat(pair) for pair in zip(parts, floors, strict=True))


def terms_in(
    dtype: torch.dtype, terms: Sequence[Tensor], entries: Sequence[Tensor]
) -> Iterator[Tensor]:
    """The sums `terms` of the sizes of the terms of computed `entries`, for the entries in another
    precision.

    The entries were rounded in their own precision: in a coarser one, where the same error is a
    smaller multiple of the unit roundoff, their sums count for less, and the entries themselves,
    which are rounded once more, count like any other number.
    """
    for part, entry in zip(terms, entries, strict=True):
        here, there = unit(part.dtype), unit(dtype)
        size = part * (here.eps / there.eps)
        if here.eps < there.eps:
            size = here.grow(4) * (size + entry.abs())
        yield part if here == there else -rounded_down(-size, dtype)


class AffineMap(ABC):
    """An affine map from some of (x, a_1, ..., a_K) to one vector.

    `sources` lists what it reads: 0 is the network's input x, k the output a_k of the k-th layer.
    All vectors are flat, in C order; any number of batch dimensions may precede.
    """

    sources: tuple[int, ...]
    bias: Tensor  # [outputs]
    defect: Tensor | None = None  # [outputs] bound on |this map - intended map| over the domain

    @property
    def outputs(self) -> int:
        return int(self.bias.shape[0])

    @property
    @abstractmethod
    def operations(self) -> int:
        """Upper bound on the roundings of one term of a result, including the rounding of the map's
        constants to their precision; for rows that are pulled back, add `outputs`."""

    @abstractmethod
    def magnitude(self, values: Sequence[Tensor]) -> Tensor:
        """Upper bound on |W| values + |bias|, the sum of all terms' sizes, for values >= 0."""

    @abstractmethod
    def underflows(self, values: Sequence[Tensor]) -> Underflows:
        """Upper bound on the underflow error, for sources of at most these sizes (values >= 0).

        An operation loses one unit, and |x| units more if it multiplies x by a constant, because
        the constant may be off by one unit. An error in a coefficient changes a row's value by that
        error times the value that the coefficient multiplies.
        """

    def charge(self, values: Sequence[Tensor], share: float, times: float = 1.0) -> Charge:
        """Upper bound on the rounding error, for sources of at most these sizes (values >= 0):
        `share` times all terms' sizes, `times` the underflow error, and the defect.

        `share` covers `operations` and at least two more roundings. A row is multiplied by the
        terms at most twice; the floor includes the underflow of these products.
        """
        gone, lost = self.underflows(values), unit(self.bias.dtype).underflow
        terms = share * self.magnitude(values) + lost * (times * gone.forward + 8)
        if self.defect is not None:
            terms = terms + (1 + share) * self.defect
        weighed = 8 * self.outputs + 2 * terms.sum(-1, keepdim=True)
        return Charge(terms, lost * (gone.backward + weighed))

    def spread(self, radii: Sequence[Tensor]) -> Tensor:
        """|W| radii: the largest change of the results when the sources change by up to radii >= 0.

        Computed as a difference, it is off by 2 `operations` roundings of magnitude(0) = |bias|.
        """
        return self.magnitude(radii) - self.magnitude([torch.zeros_like(r) for r in radii])

    @abstractmethod
    def linear(self, values: Sequence[Tensor]) -> Tensor:
        """Apply the linear part to one value [..., n_s] per source; gives [..., outputs]."""

    @abstractmethod
    def adjoint(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Pull rows [..., outputs] back; gives one [..., n_s] per source."""

    def rows_at(self, outputs: Tensor) -> tuple[Tensor, ...]:
        """The matrix rows of outputs with indices [batch, m]; one [batch, m, n_s] per source."""
        units = self.bias.new_zeros(*outputs.shape, self.outputs)
        return self.adjoint(units.scatter(-1, outputs.unsqueeze(-1), 1))

    @abstractmethod
    def select(self, outputs: Tensor) -> AffineMap:
        """The map restricted to the outputs with these indices [m]."""

    @abstractmethod
    def to(self, device: torch.device | str, dtype: torch.dtype) -> AffineMap:
        """The same map on another device or in another precision."""

    def __call__(self, values: Sequence[Tensor]) -> Tensor:
        return self.linear(values) + self.bias
