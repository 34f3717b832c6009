"""Random numbers from a seed, the same on every device and with every version of torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class Draws:
    """A source of random numbers on the CPU; sources with other seeds draw other numbers."""

    def __init__(self, *seeds: int) -> None:
        self._source = np.random.default_rng(seeds)

    def uniform(self, *shape: int) -> Tensor:
        """Numbers from 0 to below 1, of this shape, in float64."""
        return torch.from_numpy(self._source.random(shape))

    def normal(self, *shape: int) -> Tensor:
        """Numbers of the standard normal distribution, of this shape, in float64."""
        return torch.from_numpy(self._source.standard_normal(shape))

    def indices(self, below: int, count: int) -> Tensor:
        """`count` whole numbers from 0 to below `below`, with repetitions."""
        return torch.from_numpy(self._source.integers(below, size=count))
