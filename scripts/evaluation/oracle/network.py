"""Read a chain of dense matrices and ReLUs from an ONNX file, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Chain:
    """y = W_n relu(... relu(W_1 x + b_1) ...) + b_n; the weights are those of the file, exactly."""

    layers: tuple[tuple[Array, Array], ...]  # ([outputs, inputs], [outputs]) each

    def pre_activations(self, x: Array) -> list[Array]:
        """The inputs of each ReLU layer, then the output."""
        result = []
        for weight, bias in self.layers:
            result.append(weight @ x + bias)
            x = np.maximum(result[-1], 0.0)
        return result

    def gradient(self, x: Array, row: Array) -> Array:
        """The gradient of row . y at x."""
        values = self.pre_activations(x)
        for index in range(len(self.layers) - 1, 0, -1):
            row = (row @ self.layers[index][0]) * (values[index - 1] > 0)
        return row @ self.layers[0][0]


def read_chain(path: Path) -> Chain:
    """The network of the file: Gemm (transB), Conv (no groups, no dilation), Relu, Flatten."""
    graph = onnx.load(str(path)).graph
    weights = {
        tensor.name: numpy_helper.to_array(tensor).astype(np.float64)
        for tensor in graph.initializer
    }
    shape = [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim][1:]
    layers: list[tuple[Array, Array]] = []
    for node in graph.node:
        options = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Gemm" and options == {"transB": 1}:
            layers.append((weights[node.input[1]], weights[node.input[2]]))
        elif node.op_type == "Conv":
            kernel, bias = weights[node.input[1]], weights[node.input[2]]
            matrix, shape = _conv_matrix(kernel, shape, options["strides"], options["pads"])
            layers.append((matrix, np.repeat(bias, shape[1] * shape[2])))
        elif node.op_type not in ("Relu", "Flatten"):
            raise ValueError(f"{path}: the oracle does not know {node.op_type} {options}")
    relus = sum(node.op_type == "Relu" for node in graph.node)
    if relus != len(layers) - 1:
        raise ValueError(f"{path}: not a chain of affine layers with ReLUs between them")
    return Chain(tuple(layers))


def _conv_matrix(
    kernel: Array, shape: list[int], strides: list[int], pads: list[int]
) -> tuple[Array, list[int]]:
    """The dense matrix of a convolution, and the output's shape."""
    outputs, channels, height, width = kernel.shape
    rows = (shape[1] + pads[0] + pads[2] - height) // strides[0] + 1
    columns = (shape[2] + pads[1] + pads[3] - width) // strides[1] + 1
    matrix = np.zeros((outputs, rows, columns, channels, shape[1], shape[2]))
    for row, column, i, j in np.ndindex(rows, columns, height, width):
        y, x = row * strides[0] - pads[0] + i, column * strides[1] - pads[1] + j
        if 0 <= y < shape[1] and 0 <= x < shape[2]:
            matrix[:, row, column, :, y, x] = kernel[:, :, i, j]
    return matrix.reshape(outputs * rows * columns, -1), [outputs, rows, columns]
