"""Counterexamples by construction: a narrow spike on a random network that is safe without it.

With p the planted point and r the spike's width, a few neurons compute relu(r - |x - p|_1), which
is 0 except in a tiny diamond around p: no gradient outside leads to it. Interval bounds keep the
margin of the random network above 0, so counterexamples exist only in the diamond.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from planting.instance import Planted
from training.linear import interval_bounds

MARGIN = 0.25  # by which the network is safe elsewhere, and unsafe at the point


def dense_spike(seed: int, inputs: int, widths: Sequence[int], radius: float) -> Planted:
    """A random dense network that computes the spike in two layers; the others pass it on."""
    generator = torch.Generator().manual_seed(seed)
    point = _point(generator, inputs)
    layers = _spiked(generator, inputs, widths, point, torch.zeros(inputs), radius)
    model = nn.Sequential(*layers)
    name = f"dense_{inputs}_{'x'.join(map(str, widths))}_{radius:g}_{seed}"
    return _aimed(name, model, (inputs,), point)


def conv_spike(
    seed: int, side: int, channels: int, widths: Sequence[int], radius: float
) -> Planted:
    """A convolution whose first channel copies the image, followed by such a dense network."""
    generator = torch.Generator().manual_seed(seed)
    inputs = side * side
    point = _point(generator, inputs)
    convolution = nn.Conv2d(1, channels, 3, padding=1)
    weight, bias = _normal(generator, channels, 1, 3, 3) / 3, _normal(generator, channels) / 4
    weight[0] = 0
    weight[0, 0, 1, 1] = 1
    bias[0] = 1  # the image is in [-1, 1]: its ReLUs are always on
    _set(convolution, weight, bias)
    layers = _spiked(generator, channels * inputs, widths, point, torch.ones(inputs), radius)
    model = nn.Sequential(convolution, nn.ReLU(), nn.Flatten(), *layers)
    name = f"conv_{side}_{channels}_{'x'.join(map(str, widths))}_{radius:g}_{seed}"
    return _aimed(name, model, (1, side, side), point)


def _spiked(
    generator: torch.Generator,
    features: int,
    widths: Sequence[int],
    point: Tensor,
    shift: Tensor,
    radius: float,
) -> list[nn.Module]:
    """Dense layers whose first inputs are x + shift, and whose last hidden neuron is the spike."""
    count, noisy = len(point), [features, *widths]
    layers: list[nn.Module] = []
    extra = 0
    for k, (before, after) in enumerate(pairwise(noisy)):
        added = 2 * count if k == 0 else 1
        weight = torch.zeros(after + added, before + extra)
        weight[:after, :before] = _normal(generator, after, before) * (1.5 / before**0.5)
        bias = torch.cat([_normal(generator, after) / 4, torch.zeros(added)])
        if k == 0:
            sides = torch.cat([torch.eye(count), -torch.eye(count)])
            weight[after:, :count] = sides
            bias[after:] = -sides @ (point + shift)
        elif k == 1:
            weight[after:, before:] = -1
            bias[after:] = radius
        else:
            weight[after:, before:] = 1
        layers += [_linear(weight, bias), nn.ReLU()]
        extra = added
    last = torch.zeros(2, widths[-1] + 1)
    last[:, :-1] = _normal(generator, 2, widths[-1]) / widths[-1] ** 0.5
    return [*layers, _linear(last, torch.zeros(2))]


def _aimed(name: str, model: nn.Sequential, shape: tuple[int, ...], point: Tensor) -> Planted:
    """Raise output 0 above output 1 in the whole box, and let the spike reverse it at the point."""
    output = model[-1]
    if not isinstance(output, nn.Linear):
        raise TypeError("the last layer is linear")
    with torch.no_grad():
        centre = torch.zeros(1, *shape)
        *_, (low, high) = interval_bounds(nn.Sequential(*model, nn.ReLU()), centre - 1, centre + 1)
        output.bias[0] += (high[0, 1] - low[0, 0]).clamp(min=0) + MARGIN
        value = model(point.reshape(1, *shape))[0]
        peak = model[:-1](point.reshape(1, *shape))[0, -1]
        output.weight[1, -1] = (value[0] - value[1] + MARGIN) / peak
    bound = np.ones(point.numel(), np.float32)
    return Planted(name, model, shape, -bound, bound, point.numpy(), 0, 1)


def _point(generator: torch.Generator, inputs: int) -> Tensor:
    return torch.rand(inputs, generator=generator) * 1.8 - 0.9


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator)


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    _set(layer, weight, bias)
    return layer


def _set(layer: nn.Linear | nn.Conv2d, weight: Tensor, bias: Tensor) -> None:
    layer.weight.data.copy_(weight)
    if layer.bias is not None:
        layer.bias.data.copy_(bias)
