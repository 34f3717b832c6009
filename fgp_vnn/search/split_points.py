"""Where a neuron is split: a ReLU at 0, any other at a point of its interval."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.base.reading import counts as counted
from fgp_vnn.base.reading import places
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.lines import gap, middle
from fgp_vnn.network.activations.base import RELU, Activation

_SHARES = (0.5, 0.4, 0.6, 0.25, 0.75)  # of an interval, that are compared; the first wins a tie
_NARROW = 2.0**-16  # part of the size of its ends below which an interval is not split


def divisible(bounds: LayerBounds) -> list[Tensor]:
    """Which neurons can be split, [batch or 1, n_k] per layer: unstable ReLUs, and other neurons
    whose intervals are finite and have a float32 number well inside."""
    found = []
    triples = zip(bounds.activations, bounds.lower, bounds.upper, strict=True)
    for mask, (activation, lower, upper) in zip(bounds.unstable(), triples, strict=True):
        if activation is RELU:
            found.append(mask)
        else:
            size = torch.maximum(lower.abs(), upper.abs())
            found.append((upper - lower > _NARROW * size) & (size < torch.inf) & (size > 1e-30))
    return found


def split_points(bounds: LayerBounds, neuron: Tensor) -> Tensor:
    """The points [batch], float32 numbers, at which the neurons [batch] (numbered over all layers)
    are split; 0 for a ReLU."""
    point = torch.zeros_like(neuron, dtype=bounds.lower[0].dtype)
    counts = [lower.shape[-1] for lower in bounds.lower]
    begins = [sum(counts[:k]) for k in range(len(counts))]
    inside = [(neuron >= b) & (neuron < b + n) for b, n in zip(begins, counts, strict=True)]
    found = counted(*inside)
    for k, activation in enumerate(bounds.activations):
        if activation is not RELU and found[k]:
            at = places(inside[k], found[k])
            place = (neuron[at] - begins[k]).unsqueeze(-1)
            lower, upper = (
                side[k].expand(len(neuron), -1)[at].gather(-1, place).squeeze(-1)
                for side in (bounds.lower, bounds.upper)
            )
            point = point.index_copy(0, at, _best(activation, lower, upper))
    most = torch.finfo(torch.float32).max
    return point.clamp(-most, most).float().to(point.dtype)


def _best(activation: Activation, lower: Tensor, upper: Tensor) -> Tensor:
    """The point of each interval [n] for which the lines of both parts enclose the least area; the
    middle if the activation reads several neurons."""
    shares = lower.new_tensor(_SHARES).unsqueeze(-1)
    points = lower + shares * (upper - lower)  # [shares, n]
    if activation.operands > 1:
        return points[0]
    low, up = lower.expand_as(points), upper.expand_as(points)
    area = _area(activation, low, points) + _area(activation, points, up)
    best = area.nan_to_num(torch.inf).argmin(0, keepdim=True)
    return points.gather(0, best).squeeze(0)


def _area(activation: Activation, lower: Tensor, upper: Tensor) -> Tensor:
    """Area between the lines of intervals [shares, n]: their width times the gap in the middle."""
    between = gap(activation, middle(activation.envelope(lower, upper)), lower, upper)
    return between.squeeze(-2) * (upper - lower)
