"""What every affine map of a network can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit


class Lost(NamedTuple):
    """Upper bound on what underflow takes from the results of a map, in units of `Unit.lost`."""

    forward: Tensor  # [..., outputs or 1] from each result
    backward: Tensor  # [..., 1] from a row's value, besides |row| . forward, when it is pulled back


class Charge(NamedTuple):
    """Upper bound on the rounding error of a map, by the theorem in `base.rounding`."""

    terms: Tensor  # [..., outputs] to each result
    floor: Tensor  # [..., 1] to a row's value when it is pulled back, besides |row| . terms


def charged(
    sizes: tuple[Tensor, ...], defect: Tensor | None, share: float, times: float
) -> tuple[Tensor, ...]:
    """What `AffineMap.charge` multiplies the values of each source by, [outputs + 1, n_s], and what
    it adds, [outputs + 1], for the sizes of the matrices and of the bias; the floor comes last."""
    *matrices, offset = sizes
    lost, outputs = unit(offset.dtype).lost, len(offset)
    entries = 1 + sum(matrix.shape[1] for matrix in matrices)
    constant = share * offset + lost * (times * (2 * entries + 1) + 8)
    if defect is not None:
        constant = constant + (1 + share) * defect
    parts = [*(share * matrix + times * lost for matrix in matrices), constant]
    floors = [lost * (2 * outputs + 4 + 2 * part.sum(0, keepdim=True)) for part in parts]
    floors[-1] = floors[-1] + 8 * outputs * lost
    return tuple(torch.cat(pair) for pair in zip(parts, floors, strict=True))


class AffineMap(ABC):
    """An affine map from some of (x, a_1, ..., a_K) to one vector.

    `sources` names what it reads: 0 is the network's input x, k the k-th ReLU layer's output a_k.
    All vectors are flat, in C order; any number of batch dimensions may stand in front.
    """

    sources: tuple[int, ...]
    bias: Tensor  # [outputs]
    defect: Tensor | None = None  # [outputs] how far it may be, over the domain, from the map meant

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return int(self.bias.shape[0])

    @property
    @abstractmethod
    def operations(self) -> int:
        """A bound on the roundings that any one term of a result passes through, that of the map's
        own constants to their precision included; together with the outputs, when pulled back."""

    @abstractmethod
    def magnitude(self, values: Sequence[Tensor]) -> Tensor:
        """Upper bound on |W| values + |bias|, the sizes of all terms together, for values >= 0."""

    @abstractmethod
    def lost(self, values: Sequence[Tensor]) -> Lost:
        """What underflow takes, for sources of at most these values >= 0.

        An operation loses one unit, and one more for each number of size 1 that it multiplies by
        a constant, which is off by that much. A coefficient that is off moves a row's value by
        as much times what it is the coefficient of.
        """

    def charge(self, values: Sequence[Tensor], share: float, times: float = 1.0) -> Charge:
        """That share of all terms' sizes, and `times` what underflow takes, for sources of at most
        these values >= 0; the defect is a part of it.

        `share` is that of `operations` and at least two more roundings. A row is weighed by the
        terms twice at most, each of them with what they lose by that.
        """
        gone, lost = self.lost(values), unit(self.bias.dtype).lost
        terms = share * self.magnitude(values) + lost * (times * gone.forward + 8)
        if self.defect is not None:
            terms = terms + (1 + share) * self.defect
        weighed = 8 * self.outputs + 2 * terms.sum(-1, keepdim=True)
        return Charge(terms, lost * (gone.backward + weighed))

    def spread(self, radii: Sequence[Tensor]) -> Tensor:
        """|W| radii: how far the results move when the sources move by up to radii >= 0.

        As a difference it is off by 2 `operations` roundings of the magnitude of 0, the bias.
        """
        return self.magnitude(radii) - self.magnitude([torch.zeros_like(r) for r in radii])

    @abstractmethod
    def linear(self, values: Sequence[Tensor]) -> Tensor:
        """Apply the linear part to one value [..., n_s] per source; gives [..., outputs]."""

    @abstractmethod
    def adjoint(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Pull rows [..., outputs] back; gives one [..., n_s] per source."""

    def rows_at(self, outputs: Tensor) -> tuple[Tensor, ...]:
        """The matrix rows of the outputs numbered [batch, m]; one [batch, m, n_s] per source."""
        units = self.bias.new_zeros(*outputs.shape, self.outputs)
        return self.adjoint(units.scatter(-1, outputs.unsqueeze(-1), 1))

    @abstractmethod
    def select(self, outputs: Tensor) -> AffineMap:
        """The map to some of the outputs only, numbered [m]."""

    @abstractmethod
    def to(self, device: torch.device | str, dtype: torch.dtype) -> AffineMap:
        """The same map on another device or in another precision."""

    def __call__(self, values: Sequence[Tensor]) -> Tensor:
        return self.linear(values) + self.bias
