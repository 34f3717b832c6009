"""Put a normalisation of the input in front of a network, for users who have pixels."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fgp_vnn.base.errors import InputError
from fgp_vnn.network.onnx.edits import Edit
from fgp_vnn.network.onnx.graph import inputs_of

Array = NDArray[Any]
Values = TypeVar("Values", Array, Tensor)


def normalised(model: onnx.ModelProto, mean: Array, std: Array) -> onnx.ModelProto:
    """The model applied to (x - mean) / std, by a subtraction and a division in float32 in front of
    it; mean and std are numbers, or have one entry per channel."""
    check_normalisation(mean, std)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    given, *more = inputs_of(graph)
    if more:
        raise InputError(f"mean and std are for one input; the network has {1 + len(more)}")
    edit, axes = Edit(graph), len(given.type.tensor_type.shape.dim)
    less, by = (spread_channels(value, axes).astype(np.float32) for value in (mean, std))
    inner = edit.put("Div", edit.put("Sub", given.name, less), by)
    for node in graph.node:
        node.input[:] = [inner if name == given.name else name for name in node.input]
    nodes = [*edit.nodes, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    return result


def check_normalisation(mean: Array, std: Array) -> None:
    """Refuse a standard deviation that cannot be divided by."""
    finite = np.isfinite(mean).all() and np.isfinite(std).all()
    if not finite or not (np.asarray(std, dtype=np.float32) > 0).all():
        raise InputError("mean and std must be finite numbers, and std positive")


def spread_channels(value: Values, axes: int) -> Values:
    """One value per channel, in a shape that broadcasts to an input with this many axes."""
    if value.ndim == 1 and axes > 2:
        return value.reshape(-1, *[1] * (axes - 2))
    return value


class Normalised(nn.Module):
    """A module applied to (x - mean) / std; mean and std are numbers, or one per channel."""

    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, mean: Array, std: Array) -> None:
        super().__init__()
        check_normalisation(mean, std)
        self.module = module
        for name, value in (("mean", mean), ("std", std)):
            self.register_buffer(name, torch.from_numpy(np.asarray(value, dtype=np.float32)))
        self.train(module.training)

    def forward(self, x: Tensor) -> Tensor:
        mean, std = (spread_channels(v, x.ndim) for v in (self.mean, self.std))
        result: Tensor = self.module((x - mean) / std)
        return result
