"""Networks of convolutions, as programs and as the same matrices, at any magnitude."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, fx, nn

from fgp_vnn.domain.sets import Box
from fgp_vnn.network.maps.filters import convolution_matrix
from fgp_vnn.network.maps.kinds import mark
from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.model import Dense, Network


class Twins(NamedTuple):
    """The same network of operators and of dense maps, whose entries are copies of weights."""

    operators: Network
    dense: Network
    box: Box


def convolution(weight: Tensor, bias: Tensor, source: int, plane: tuple[int, ...]) -> Operator:
    """A convolution with zeros around a plane [channels, height, width], of one source."""
    shape = (1, *plane)
    return Operator((source,), _graph(weight), _graph(weight.abs(), bias), (shape,), bias)


def _graph(weight: Tensor, bias: Tensor | None = None) -> fx.GraphModule:
    root = nn.Module()
    filters, channels, *kernel = weight.shape
    padding = tuple(k // 2 for k in kernel)
    step = nn.Conv2d(channels, filters, tuple(kernel), padding=padding, bias=False)  # type: ignore[arg-type]
    step.weight = nn.Parameter(weight.clone(), requires_grad=False)
    root.add_module("step", step)
    graph = fx.Graph()
    node = graph.call_module("step", (graph.placeholder("source"),))
    mark(node, "Conv")
    if bias is not None:  # the sizes of the offsets are part of the absolute program
        root.register_buffer("offset", bias.abs().reshape(1, filters, *_plane(bias, filters)))
        root.add_module("sum", _Sum())
        node = graph.call_module("sum", (node, graph.get_attr("offset")))
        mark(node, "Add")
    graph.output(node)
    return fx.GraphModule(root, graph)


def _plane(bias: Tensor, filters: int) -> tuple[int, int]:
    side = round((len(bias) // filters) ** 0.5)
    return side, len(bias) // filters // side


class _Sum(nn.Module):
    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return first + second


def random_convolutions(
    seed: int, dtype: torch.dtype, *, side: int = 7, depth: int = 3, powers: float = 0.0
) -> Twins:
    """A chain of convolutions of one or two channels, each layer scaled by up to 10^powers, whose
    values are about 10^0 again where `powers` is 0."""
    source = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=source, dtype=torch.float64) * 2 - 1

    area, layers, matrices = side * side, [], []
    channels = 1
    for k in range(depth):
        filters, scale = 1 + (seed + k) % 2, 10.0 ** float(powers * uniform(1))
        weight = (uniform(filters, channels, 3, 3) * scale).to(dtype)
        offset = 0.1 * (seed % 2) * uniform(filters, 1) * scale  # without, sums alone round
        bias = (offset * torch.ones(area)).reshape(-1).to(dtype)
        layers.append(convolution(weight, bias, k, (channels, side, side)))
        matrices.append(_matrix(weight, bias, k, (1, channels, side, side)))
        channels = filters
    weight = uniform(2, channels * area).to(dtype)
    output = Dense((depth,), (weight,), uniform(2).to(dtype))
    center = uniform(area)
    radius = 0.05 * uniform(area).abs() * (uniform(area) > -0.5)
    lower = (center - radius).to(dtype)
    box = Box(lower, torch.maximum(lower, (center + radius).to(dtype)))
    return Twins(Network(tuple(layers), output, area), Network(tuple(matrices), output, area), box)


def _matrix(weight: Tensor, bias: Tensor, source: int, shape: tuple[int, ...]) -> Dense:
    step: Any = _graph(weight).get_submodule("step")
    found = convolution_matrix(step, shape)
    assert found is not None
    return Dense((source,), (found,), bias)
