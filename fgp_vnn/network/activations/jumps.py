"""Functions with jumps: Sign, Floor, Ceil, Round, and others in flat pieces.

Pieces are closed intervals: at a jump the values of both neighbours count, so any value of the
function between them is covered. Floor, Ceil and Round would have a piece for each integer; they
are bounded by z - 1 <= floor z <= z, ceil z = -floor(-z), |round z - z| <= 1/2, and monotonicity.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, rounded_down
from fgp_vnn.network.activations.base import Activation, Envelope
from fgp_vnn.network.activations.curve import Curve, Piece, of_piece, one


def _flat(level: float, start: float, end: float) -> Piece:
    return Piece(0, lambda z: level * one(z), torch.zeros_like, 0, start=start, end=end)


def step(equal: bool) -> Curve:
    """The step function: 1 for z > 0, and for z = 0 if `equal`; 0 elsewhere."""

    def value(z: Tensor) -> Tensor:
        return ((z >= 0) if equal else (z > 0)).to(z.dtype)

    pieces = (_flat(0.0, -inf, 0.0), _flat(1.0, 0.0, inf))
    return Curve("Step", value, one, pieces, (0.0, 1.0), key=(equal,))


SCORES = 1e36  # scores up to this size are small compared with the most negative float32
# The identity; it has no bounds outside +-SCORES, where masks in a softmax are not understood.
WITHIN = of_piece("Within", Piece(0, torch.clone, one, 0), domain=(-SCORES, SCORES))

SIGN = Curve("Sign", torch.sign, one, (_flat(-1.0, -inf, 0.0), _flat(1.0, 0.0, inf)), (-1.0, 1.0))


@dataclass(frozen=True)
class Rounded(Activation):
    """A monotone function with z - below <= f(z) <= z + above that is exact in float64."""

    name: str
    below: float
    above: float

    def value(self, z: Tensor) -> Tensor:
        functions = {"Floor": torch.floor, "Ceil": torch.ceil, "Round": torch.round}
        return functions[self.name](z)

    def pull(self, z: Tensor, rows: Tensor) -> Tensor:
        return rows

    def push(self, z: Tensor, moves: Tensor) -> Tensor:
        return moves

    def envelope(self, lower: Tensor, upper: Tensor) -> Envelope:
        """The flat line, the line of slope 1, and their average."""
        dtype, lower, upper = lower.dtype, lower.double(), upper.double()
        least, greatest = self.value(lower), self.value(torch.maximum(lower, upper))
        half = torch.full_like(least, 0.5)
        slopes = torch.stack([torch.zeros_like(half), half, torch.ones_like(half)])
        known = least.isfinite() & greatest.isfinite()
        slopes = torch.where(known, slopes, 0.0).to(dtype)
        # Sums of integers or halves with 1 or 1/2 are exact up to 2^52; else 2^-52 covers rounding.
        down = torch.stack([least, least / 2 - self.below / 2, torch.full_like(half, -self.below)])
        up = torch.stack(
            [greatest, greatest / 2 + self.above / 2, torch.full_like(half, self.above)]
        )
        down = torch.where(known, down - down.abs() * 2.0**-52, least)
        up = torch.where(known, up + up.abs() * 2.0**-52, greatest)
        floor, least = (below(rounded_down(part, dtype)) for part in (down, least))
        ceiling, greatest = (above(-rounded_down(-part, dtype)) for part in (up, greatest))
        return Envelope(slopes, floor, slopes, ceiling, least, greatest)


FLOOR = Rounded("Floor", 1.0, 0.0)
CEIL = Rounded("Ceil", 0.0, 1.0)
ROUND = Rounded("Round", 0.5, 0.5)
