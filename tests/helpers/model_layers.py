"""Modules that torch.nn has not, for the table of models."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Call(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._function = function

    def forward(self, x: Tensor) -> Tensor:
        return self._function(x)


class Residual(nn.Module):
    """relu(x + f(x)), f two convolutions with normalisations."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        first, second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        norms = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.inner = nn.Sequential(first, norms[0], nn.ReLU(), second, norms[1])

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.inner(x))


class Stem(nn.Sequential):
    """A convolution without bias, a normalisation, a ReLU and a pool."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 2, 3, padding=1, bias=False),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )


class Branches(nn.Module):
    """Two branches on the halves of an image, concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Conv2d(1, 2, 2), nn.Conv2d(1, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=3)
        return torch.cat([torch.relu(self.left(left)), self.right(right[:, :, :])], dim=1)


class Normalised(nn.Module):
    """(x - mean) / deviation, with buffers."""

    mean: Tensor
    deviation: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((1, 1, 1), 0.1307))
        self.register_buffer("deviation", torch.full((1, 1, 1), 0.3081))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.deviation


class Heads(nn.Module):
    """Two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.first, self.second = nn.Linear(4, 5), nn.Linear(5, 3), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.relu(self.body(x))
        return self.first(hidden), self.second(hidden)


class Pair(nn.Module):
    """Two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 5), nn.Linear(4, 5), nn.Linear(5, 3)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        result: Tensor = self.last(torch.relu(self.first(a) + self.second(b)))
        return result
