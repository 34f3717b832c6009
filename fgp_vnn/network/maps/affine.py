"""What every affine map of a network can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Lost(NamedTuple):
    """What underflow may take from the results of a map, in units of what an operation loses."""

    forward: Tensor  # [..., outputs or 1] from each result
    backward: Tensor  # [..., 1] from a row's value, besides |row| . forward, when it is pulled back


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
