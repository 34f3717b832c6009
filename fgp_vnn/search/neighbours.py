"""Groups of neurons that read nearly the same inputs.

A neuron of a convolution reads a patch of the image. A network cut down to the patch of a few
neighbours is a small part of the whole, and its bundles cost as much less to bound.
"""

from __future__ import annotations

import torch
from torch import Tensor


def neighbours(reads: Tensor, most: int, growth: float) -> list[Tensor]:
    """Groups of at most `most` neurons, given the inputs that each neuron reads [neurons, inputs].
    A group together reads at most `growth` times as many inputs as its first neuron."""
    reads = reads.float()
    waiting = torch.arange(len(reads), device=reads.device)
    groups: list[Tensor] = []
    while len(waiting):
        first, rest = reads[waiting[0]], reads[waiting]
        order = (rest @ (1 - first)).argsort(stable=True)  # by inputs read beyond the first
        together = (rest[order].cumsum(0) > 0).sum(-1)
        fit = int((together <= growth * first.sum().clamp(min=1)).sum())
        chosen = order[: max(1, min(fit, most))]
        groups.append(waiting[chosen].sort().values)
        left = torch.ones_like(waiting, dtype=torch.bool)
        left[chosen] = False
        waiting = waiting[left]
    return groups
