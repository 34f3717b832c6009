"""The interface of an activation function.

An activation maps the results z of one affine map to the values a that later maps read, neuron by
neuron; a product reads two neurons for each value. Bounds only need its `Envelope`: three lower and
three upper lines, proved over given intervals of z. A convex combination of two valid lines, with
weight alpha in [0, 1], is valid too, so slopes can be chosen by gradient ascent.

ReLU has exact regions and kernels of its own; `Network.piecewise_linear` is true if every
activation is a ReLU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor


class Envelope(NamedTuple):
    """Lower and upper lines slope . z + offset of an activation over intervals, and its range.

    Slopes are [3, batch, operands * n], one entry for each operand of a value; offsets are
    [3, batch, n]. All are in the requested precision, and valid without further rounding.
    """

    low: Tensor  # slopes of the lower lines
    floor: Tensor  # offsets of the lower lines
    high: Tensor  # slopes of the upper lines
    ceiling: Tensor  # offsets of the upper lines
    least: Tensor  # [batch, n] lower bounds of the values
    greatest: Tensor  # [batch, n] upper bounds of the values


def or_flat(envelope: Envelope, operands: int = 1) -> Envelope:
    """Replace each line whose offset is not finite by the constant `least` or `greatest`."""
    none, top = ~envelope.floor.isfinite(), ~envelope.ceiling.isfinite()
    return envelope._replace(
        low=envelope.low.masked_fill(torch.cat([none] * operands, -1), 0.0),
        floor=torch.where(none, envelope.least, envelope.floor),
        high=envelope.high.masked_fill(torch.cat([top] * operands, -1), 0.0),
        ceiling=torch.where(top, envelope.greatest, envelope.ceiling),
    )


class Activation(ABC):
    """A function applied to all neurons of a layer."""

    name: str
    operands: ClassVar[int] = 1  # neurons per value; with one, value i reads neuron i

    def outputs(self, width: int) -> int:
        """The number of values for a layer of `width` neurons."""
        return width

    @abstractmethod
    def value(self, z: Tensor) -> Tensor:
        """The values [..., n] at z [..., width], in the precision of z, not rounded outwards."""

    @abstractmethod
    def pull(self, z: Tensor, rows: Tensor) -> Tensor:
        """The gradient [..., width] at z of rows [..., n] times the values, for attacks."""

    @abstractmethod
    def push(self, z: Tensor, moves: Tensor) -> Tensor:
        """First-order change of the values [..., n] when z changes by moves [..., width]."""

    @abstractmethod
    def envelope(self, lower: Tensor, upper: Tensor) -> Envelope:
        """Lines and range for lower <= z <= upper [batch, width], in their precision."""

    def expand(self, z: Tensor) -> Tensor:
        """The operands [..., operands * n] of all values, side by side."""
        return z

    def gather(self, parts: Tensor, width: int) -> Tensor:
        """The transpose of `expand`: the operands' parts summed for each neuron [..., width]."""
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

    def envelope(self, lower: Tensor, upper: Tensor) -> Envelope:
        raise AssertionError("a ReLU has lines of its own")


RELU = Relu()
