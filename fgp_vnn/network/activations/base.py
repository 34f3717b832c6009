"""What the verifier has to know of an activation.

An activation turns the results z of one map into the values a that later maps read, neuron by
neuron; a product reads two neurons for each value. Bounds need nothing of it but a `Fan`: over any
intervals of z, three lines below and three above, all proved. Whatever lies between two lines that
hold, weighed by alpha in [0, 1], holds too, so that slopes can be chosen by gradient ascent.

ReLU has exact regions and kernels of its own; `Network.piecewise_linear` says where only it occurs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor


class Fan(NamedTuple):
    """Lines around an activation over intervals: slope . z + offset, with the range of its values.

    A slope has one entry for each operand of a value: [3, batch, operands * n], offsets have
    [3, batch, n]. All are numbers of the precision asked for, and hold as they are written.
    """

    low: Tensor  # slopes of the lines below
    floor: Tensor  # their offsets
    high: Tensor  # slopes of the lines above
    ceiling: Tensor  # their offsets
    least: Tensor  # [batch, n] lower bounds of the values
    greatest: Tensor  # [batch, n] upper bounds


def or_flat(fan: Fan, operands: int = 1) -> Fan:
    """Where a line has no offset, the flat one at the least or greatest value in its place."""
    none, top = ~fan.floor.isfinite(), ~fan.ceiling.isfinite()
    return fan._replace(
        low=fan.low.masked_fill(torch.cat([none] * operands, -1), 0.0),
        floor=torch.where(none, fan.least, fan.floor),
        high=fan.high.masked_fill(torch.cat([top] * operands, -1), 0.0),
        ceiling=torch.where(top, fan.greatest, fan.ceiling),
    )


class Activation(ABC):
    """A function applied to all neurons of a layer."""

    name: str
    operands: ClassVar[int] = 1  # neurons that a value reads; if it is one, the one of its number

    def outputs(self, width: int) -> int:
        """How many values it makes of so many neurons."""
        return width

    @abstractmethod
    def value(self, z: Tensor) -> Tensor:
        """The values [..., n] at z [..., width], in the precision of z: not rounded outwards."""

    @abstractmethod
    def pull(self, z: Tensor, rows: Tensor) -> Tensor:
        """The gradient [..., width] at z of rows [..., n] times the values, for attacks."""

    @abstractmethod
    def push(self, z: Tensor, moves: Tensor) -> Tensor:
        """How far the values move, to first order, where z moves by moves [..., width]."""

    @abstractmethod
    def fan(self, lower: Tensor, upper: Tensor) -> Fan:
        """Lines and range for lower <= z <= upper [batch, width], in their precision."""

    def expand(self, z: Tensor) -> Tensor:
        """The operands [..., operands * n] of all values, side by side."""
        return z

    def gather(self, parts: Tensor, width: int) -> Tensor:
        """The transpose of `expand`: what is given to operands, added up for each neuron."""
        return parts

    def to(self, device: torch.device | str) -> Activation:
        return self


@dataclass(frozen=True)
class Relu(Activation):
    """max(z, 0)."""

    name: str = "Relu"

    def value(self, z: Tensor) -> Tensor:
        return z.clamp(min=0)

    def pull(self, z: Tensor, rows: Tensor) -> Tensor:
        return rows * (z > 0)

    def push(self, z: Tensor, moves: Tensor) -> Tensor:
        return moves * (z > 0)

    def fan(self, lower: Tensor, upper: Tensor) -> Fan:
        raise AssertionError("a ReLU has lines of its own")


RELU = Relu()
