"""Export a Sequential to ONNX, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from training.architectures import Residual

OPSET = 13
IR_VERSION = 8


def to_onnx(model: nn.Sequential, shape: tuple[int, ...], *, name: str) -> onnx.ModelProto:
    """The network for one input of the shape (without batch): input `x`, output `y`, float32."""
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    _write(model, "x", "", nodes, weights)
    nodes[-1].name = nodes[-1].output[0] = "y"
    *_, last = (layer for layer in model if isinstance(layer, nn.Linear))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, *shape])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, last.out_features])],
        weights,
    )
    opset = helper.make_opsetid("", OPSET)
    result = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
    onnx.checker.check_model(result, full_check=True)
    return result


def _write(
    model: nn.Sequential,
    value: str,
    prefix: str,
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto],
) -> str:
    """Add the nodes and weights of layers applied to a value; return the name of their output."""
    for index, layer in enumerate(model):
        number = f"{prefix}{index}"
        target = f"{type(layer).__name__.lower()}_{number}"
        inputs = [value]
        if isinstance(layer, Residual):
            ways = {"a": layer.body, "b": layer.shortcut}
            inputs = [_write(way, value, number + key, nodes, weights) for key, way in ways.items()]
            operator, attributes = "Add", dict[str, Any]()
        else:
            operator, attributes = _operator(layer)
            for part, tensor in layer.named_parameters():
                weights.append(_tensor(f"{part}_{number}", tensor))
                inputs.append(f"{part}_{number}")
        nodes.append(helper.make_node(operator, inputs, [target], name=target, **attributes))
        value = target
    return value


def _operator(layer: nn.Module) -> tuple[str, dict[str, Any]]:
    if isinstance(layer, nn.ReLU):
        return "Relu", {}
    if isinstance(layer, nn.Flatten):
        return "Flatten", {"axis": 1}
    if isinstance(layer, nn.Linear):
        return "Gemm", {"transB": 1}
    if isinstance(layer, nn.Conv2d):
        vertical, horizontal = (int(size) for size in layer.padding)
        return "Conv", {
            "kernel_shape": list(layer.kernel_size),
            "strides": list(layer.stride),
            "pads": [vertical, horizontal, vertical, horizontal],
        }
    raise TypeError(f"no ONNX operator for {type(layer).__name__}")


def _tensor(name: str, tensor: Tensor) -> onnx.TensorProto:
    return numpy_helper.from_array(tensor.detach().numpy().astype(np.float32), name)
