"""Batch normalisation by elementwise operations.

The backward pass of `torch.nn.functional.batch_norm` is not used: torch 2.13 returns wrong
gradients for an input with an axis of size 1 whose result is transposed.
"""

from __future__ import annotations

from torch import Tensor, nn


class Normalisation(nn.Module):
    """(x - mean) scale + shift, with one number of each for every channel, axis 1 of x."""

    mean: Tensor
    scale: Tensor
    shift: Tensor

    def __init__(self, mean: Tensor, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        for name, value in (("mean", mean), ("scale", scale), ("shift", shift)):
            self.register_buffer(name, value)

    def forward(self, x: Tensor) -> Tensor:
        mean, scale, shift = (
            part.reshape(-1, *[1] * (x.dim() - 2)) for part in (self.mean, self.scale, self.shift)
        )
        return (x - mean) * scale + shift

    def pull(self, rows: Tensor) -> Tensor:
        """Apply the adjoint of the linear part, which has no mean and no shift."""
        return rows * self.scale.reshape(-1, *[1] * (rows.dim() - 2))
