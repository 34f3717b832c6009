"""The dense matrices of convolutions and of their sums, filled in directly from the weights."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor, fx, nn

from fgp_vnn.network.maps.batched import amid_zeros, is_padding, pads
from fgp_vnn.network.maps.kinds import kind


def filter_matrices(
    module: fx.GraphModule, end: fx.Node, stops: Mapping[fx.Node, int]
) -> dict[int, Tensor] | None:
    """The matrix [outputs, n_s] of each source of an affine map, every entry a single weight.

    None unless the map is a sum of sources, each of them read once and through at most one
    convolution. `stops` holds the number of each source.
    """
    found: dict[int, Tensor] = {}
    todo: list[tuple[fx.Node, Tensor | None]] = [(end, None)]
    while todo:
        node, matrix = todo.pop()
        if node in stops:
            if stops[node] in found:
                return None
            size = prod(node.meta["shape"])
            found[stops[node]] = torch.eye(size, dtype=torch.float64) if matrix is None else matrix
            continue
        operands = [a for a in node.args if isinstance(a, fx.Node)]  # twice if it is read twice
        if kind(node) == "Conv" and matrix is None:
            target = module.get_submodule(str(node.target))
            matrix = convolution_matrix(target, operands[0].meta["shape"])
            if matrix is None:
                return None
        elif kind(node) == "Add":
            if any(n.meta["shape"] != node.meta["shape"] or n.op == "get_attr" for n in operands):
                return None
        elif kind(node) not in ("Identity", "Reshape"):
            return None
        todo += [(operand, matrix) for operand in operands if operand.op != "get_attr"]
    return found


def convolution_matrix(module: nn.Module, shape: tuple[int, ...]) -> Tensor | None:
    """The matrix [outputs, inputs] of a module on one image of the shape [1, channels, ...].

    Every entry is a copy of one weight: an input reaches an output through at most one position of
    the filter. None unless the module is a convolution padded with zeros.
    """
    *before, last = module if isinstance(module, nn.Sequential) else [module]
    if not isinstance(last, nn.Conv1d | nn.Conv2d | nn.Conv3d) or not amid_zeros(last):
        return None
    if not all(map(is_padding, before)) or len(shape) != last.weight.dim() or shape[0] != 1:
        return None
    inputs = prod(shape)
    places = _places(before, last, shape)  # [channels, outputs of a channel, kernel]
    channels, results, _ = places.shape
    weight = last.weight.detach()  # [filters, channels of a group, ...]
    matrix = weight.new_zeros(len(weight), results, inputs)
    of_group = len(weight) // last.groups
    for g, group in enumerate(torch.split(places, channels // last.groups)):
        rows = slice(g * of_group, (g + 1) * of_group)
        index = group.transpose(0, 1).reshape(1, results, -1)
        values = weight[rows].reshape(of_group, 1, -1).where(index > 0, 0.0)  # 0 on the padding
        index = (index - 1).clamp_(min=0).expand_as(values)
        matrix[rows].scatter_add_(2, index, values)  # only these zeros share an entry with others
    return matrix.reshape(-1, inputs)


def _places(before: list[Any], convolution: Any, shape: tuple[int, ...]) -> Tensor:
    """The input at each position of the filter [channels, outputs of a channel, kernel], counted
    from 1; 0 is padding."""
    numbers = torch.arange(1, prod(shape) + 1).reshape(shape)
    for step in before:
        numbers = nn.functional.pad(numbers, pads(step))
    around = [width for width in reversed(convolution.padding) for _ in range(2)]
    numbers = nn.functional.pad(numbers, around)[0]
    rank = len(convolution.kernel_size)
    for axis in range(rank):
        step, size = convolution.dilation[axis], convolution.kernel_size[axis]
        reach = (size - 1) * step + 1
        numbers = numbers.unfold(axis + 1, reach, convolution.stride[axis])[..., ::step]
    return numbers.reshape(shape[1], prod(numbers.shape[1 : rank + 1]), -1)
