"""Which neurons and inputs the outputs of a network or of a map depend on.

A neuron of a convolution reads a patch of the image. A network cut down to the patch of a few
neighbours is a small part of the whole, and its bundles cost little to bound.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.base.draws import Draws
from fgp_vnn.network.model import Dense, Network


def seen(network: Network) -> tuple[Tensor, ...]:
    """Which neurons [n_k] of each layer have a path to an output.

    Found by one backward pass of random positive numbers, whose terms are unlikely to cancel. This
    is a guess: good for choosing which neurons to bound, not for a proof.
    """
    like = network.output.bias
    draws = Draws(0)

    def random(width: int) -> Tensor:
        return (0.5 + draws.uniform(width)).to(like.device, like.dtype)

    masks = [torch.zeros(width, dtype=torch.bool, device=like.device) for width in network.widths]
    rows = {len(network.layers): torch.ones_like(like, dtype=torch.bool)}
    for k in range(len(network.layers), -1, -1):
        if k not in rows:
            continue
        affine = network.maps[k]
        row = (rows[k] * random(affine.outputs)).reshape(1, -1)
        for source, part in zip(affine.sources, affine.adjoint(row), strict=True):
            if source:
                masks[source - 1] |= part[0] != 0
                rows[source - 1] = masks[source - 1]
    return tuple(masks)


def inputs_read(network: Network, target: int) -> Tensor:
    """Which inputs each output of map number `target` depends on by any path, [outputs of the map,
    inputs]; all maps must be dense matrices."""
    found: dict[int, Tensor] = {}
    for number, affine in enumerate(network.maps[: target + 1], 1):
        if not isinstance(affine, Dense):
            raise TypeError(f"map {number} is no matrix")
        reads = torch.zeros(affine.outputs, network.inputs, device=network.device)
        for source, weight in zip(affine.sources, affine.weights, strict=True):
            ways = (weight != 0).to(reads.dtype)
            reads += ways @ found[source] if source else ways
        found[number] = (reads > 0).to(reads.dtype)
    return found[target + 1] > 0


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
