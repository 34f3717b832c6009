"""Products of two neurons, bounded by McCormick's planes.

u v - p u - q v is bilinear, so its minimum over a box of u and v is at one of the four corners, for
any p and q. This minimum is the offset of a lower plane with slopes p and q, exact but for the
rounding of three products and three sums, 8 eps of their sizes. The best lower planes have (p, q) =
(min v, min u) or (max v, max u), the best upper planes (max v, min u) or (min v, max u). Squares,
(u + v)^2 / 4 - (u - v)^2 / 4, would be looser: with radii r and s of u and v, the middle plane is
off by at most 2 r s, and squares by at least ((r + s)^2 + 4 r s) / 4, which is the same only if
r = s. Squares also need two more neurons with bounds for each product, while planes need the bounds
of each factor once, no matter how many products it occurs in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, rounded_down
from fgp_vnn.network.activations.base import Activation, Envelope, or_flat
from fgp_vnn.network.activations.curve import EPS, UNDERFLOW


@dataclass(frozen=True, eq=False)
class Product(Activation):
    """a_t = z[left_t] z[right_t]."""

    left: Tensor  # [n] indices of neurons
    right: Tensor  # [n]
    name: str = "Mul"
    operands: ClassVar[int] = 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Product) and all(
            a.shape == b.shape and bool((a.cpu() == b.cpu()).all())
            for a, b in ((self.left, other.left), (self.right, other.right))
        )

    def __hash__(self) -> int:
        return hash((self.name, len(self.left)))

    def outputs(self, width: int) -> int:
        return len(self.left)

    def value(self, z: Tensor) -> Tensor:
        return z[..., self.left] * z[..., self.right]

    def pull(self, z: Tensor, rows: Tensor) -> Tensor:
        parts = torch.cat([rows * z[..., self.right], rows * z[..., self.left]], -1)
        return self.gather(parts, z.shape[-1])

    def push(self, z: Tensor, moves: Tensor) -> Tensor:
        first = moves[..., self.left] * z[..., self.right]
        return first + moves[..., self.right] * z[..., self.left]

    def expand(self, z: Tensor) -> Tensor:
        return torch.cat([z[..., self.left], z[..., self.right]], -1)

    def gather(self, parts: Tensor, width: int) -> Tensor:
        result = parts.new_zeros(*parts.shape[:-1], width)
        return result.index_add_(-1, torch.cat([self.left, self.right]), parts)

    def to(self, device: torch.device | str) -> Product:
        return Product(self.left.to(device), self.right.to(device))

    def envelope(self, lower: Tensor, upper: Tensor) -> Envelope:
        dtype, lower, upper = lower.dtype, lower.double(), upper.double()
        upper = torch.maximum(lower, upper)
        u, v = ((lower[..., i], upper[..., i]) for i in (self.left, self.right))
        sides = []
        centre = middle(lower, upper, dtype).double()
        for sign, (first, last) in ((1, (0, 1)), (-1, (1, 0))):
            p = torch.stack([v[first], centre[..., self.right], v[last]]).to(dtype).double()
            q = torch.stack([u[0], centre[..., self.left], u[1]]).to(dtype).double()
            none = torch.zeros_like(p[:1])
            p, q = (torch.cat([part, none]).clamp(-1e100, 1e100) for part in (p, q))
            offsets = rounded_down(below(_least(u, v, p, q, sign)), dtype)
            slopes = torch.cat([p[:-1], q[:-1]], -1).to(dtype)
            sides.append((slopes, sign * offsets[:-1], sign * offsets[-1]))
        (low, floor, least), (high, ceiling, greatest) = sides
        return or_flat(Envelope(low, floor, high, ceiling, below(least), above(greatest)), 2)


def middle(lower: Tensor, upper: Tensor, dtype: torch.dtype) -> Tensor:
    """The slopes of the middle planes: (lower + upper) / 2, rounded to `dtype` once."""
    return (lower.double() / 2 + upper.double() / 2).to(dtype)


def _least(
    u: tuple[Tensor, Tensor], v: tuple[Tensor, Tensor], p: Tensor, q: Tensor, sign: int
) -> Tensor:
    """Lower bounds of sign (u v - p u - q v) over the box."""
    result = None
    for x in u:
        for y in v:
            terms = (x * y, -p * x, -q * y)
            size = sum((term.abs() for term in terms), UNDERFLOW * (1 + x.abs() + y.abs()))
            found = sign * (terms[0] + terms[1] + terms[2]) - 8 * EPS * size - 8 * UNDERFLOW
            result = found if result is None else torch.minimum(result, found)
    assert result is not None
    return result
