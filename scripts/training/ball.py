"""The ball around an input in which a network is trained to keep its class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Ball:
    """All inputs within epsilon in the norm, and within the range of the data."""

    norm: str  # a key of NORMS
    epsilon: float
    low: float = 0.0
    high: float = 1.0

    def random(self, x: Tensor) -> Tensor:
        """A random point of the ball around each x [batch, ...]."""
        return (x + self.epsilon * NORMS[self.norm].noise(x)).clamp(self.low, self.high)

    def ascend(self, point: Tensor, gradient: Tensor, length: float) -> Tensor:
        """Step by `length` radii in the direction of steepest ascent."""
        return point + self.epsilon * length * NORMS[self.norm].direction(gradient)

    def project(self, point: Tensor, x: Tensor) -> Tensor:
        """Project into the ball around x; x is in the data range, so clipping stays in the ball."""
        return NORMS[self.norm].project(point, x, self.epsilon).clamp(self.low, self.high)

    def distance(self, value: Tensor, rows: Tensor) -> Tensor:
        """Distance of x to the hyperplane value + rows.(x' - x) = 0: value over the dual norm."""
        return value / NORMS[self.norm].dual(rows).clamp(min=1e-6)


@dataclass(frozen=True)
class _Norm:
    noise: Callable[[Tensor], Tensor]  # points of the unit ball, shaped like its argument
    direction: Callable[[Tensor], Tensor]  # the unit step of steepest ascent for a gradient
    project: Callable[[Tensor, Tensor, float], Tensor]
    dual: Callable[[Tensor], Tensor]  # of the last dimension


def _lengths(x: Tensor) -> Tensor:
    """The l2 norm of each x [batch, ...], shaped so that x can be divided by it."""
    lengths: Tensor = torch.linalg.vector_norm(x.flatten(1), dim=1)
    return lengths.clamp(min=1e-12).reshape(-1, *[1] * (x.dim() - 1))


def _noise_l2(x: Tensor) -> Tensor:
    direction = torch.randn_like(x)
    return direction / _lengths(direction) * torch.rand(len(x), *[1] * (x.dim() - 1))


def _project_l2(point: Tensor, x: Tensor, epsilon: float) -> Tensor:
    step = point - x
    return x + step * (epsilon / _lengths(step)).clamp(max=1)


NORMS = {
    "linf": _Norm(
        noise=lambda x: 2 * torch.rand_like(x) - 1,
        direction=torch.sign,
        project=lambda point, x, epsilon: torch.max(torch.min(point, x + epsilon), x - epsilon),
        dual=lambda rows: rows.abs().sum(-1),
    ),
    "l2": _Norm(
        noise=_noise_l2,
        direction=lambda gradient: gradient / _lengths(gradient),
        project=_project_l2,
        dual=lambda rows: torch.linalg.vector_norm(rows, dim=-1),
    ),
}
