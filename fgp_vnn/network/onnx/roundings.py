"""How often a term of each tensor is rounded when a graph runs in float32, and how it underflows.

A sum of products, in any order, blocked or not, with or without fused multiply-add, multiplies each
of its terms by at most T factors 1 + d with |d| <= u = 2^-24: T is the number of roundings on the
longest path from a map's sources to its result. So the result is off by at most T u / (1 - T u)
times the sum of its terms' absolute values. Small results lose digits or are flushed to zero, and
so are small operands: each operation adds an error of up to 2^-126, and each operand (a constant of
the file, an input or a result) an error of up to 2^-126 times the number it is multiplied by. Later
products scale these errors. The constants are those of the theorem in `base.rounding`.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
import torch
from onnx import NodeProto
from torch import Tensor

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.base.rounding import unit
from fgp_vnn.network.onnx.graph import Array, Graph, attributes, label
from fgp_vnn.network.onnx.smooth import SMOOTH

SINGLE = unit(torch.float32)
UNIT = SINGLE.eps / 2
LARGEST = 1e38  # below the greatest float32: no sum overflows

SUMS = {"Add", "Sub"}
PRODUCTS = {"BatchNormalization", "Conv", "Div", "Gemm", "MatMul", "Mul"}
_AVERAGES = {"AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum"}
_EXACT = {"Concat", "Gather", "Identity", "Neg", "Pad", "Relu", "Reshape", "Transpose", "Where"}
_NORMALIZATION = 8  # roundings of a batch normalization


class Loss(NamedTuple):
    """The float32 error of a tensor since the input or the last activation."""

    roundings: int = 0  # of a term
    underflows: float = 1.0  # in units of 2^-126, as later products scale them; 1 of the source

    @property
    def bounded(self) -> bool:
        return self.roundings * UNIT < 0.1 and self.underflows < LARGEST

    def error(self, terms: Tensor, operations: int, gone: float) -> Tensor:
        """Upper bounds on the errors of results whose terms' absolute values add up to `terms`.

        The loss has to be `bounded`. `operations` bounds the roundings of `terms`, which is
        computed with more digits; `gone` counts the constants that may be flushed, times the values
        that they multiply.
        """
        share = self.roundings * UNIT / (1 - self.roundings * UNIT)
        small = SINGLE.underflow * (self.underflows + gone)
        return unit(terms.dtype).grow(operations + 8) * (share * terms + small)


def losses_of(graph: Graph) -> dict[str, Loss]:
    """The float32 error of each tensor that depends on the input."""
    found = {graph.input: Loss()}
    for node in graph.nodes:
        read = [found[name] for name in node.input if name in found]
        if not read:
            continue
        if node.op_type == "Relu" or node.op_type in SMOOTH:
            loss = Loss()
        else:
            steps, gain = _effect(graph, node)
            lost = sum(loss.underflows for loss in read) + 2 * steps
            loss = Loss(max(loss.roundings for loss in read) + steps, max(gain, 1.0) * lost)
        found.update(dict.fromkeys(node.output, loss))
    # A wider accumulator is rounded once more when it is stored.
    return {name: Loss(n + 2 if n else 0, lost) for name, (n, lost) in found.items()}


def _effect(graph: Graph, node: NodeProto) -> tuple[int, float]:
    """The roundings that an operator adds to a term, and its factor on earlier underflow errors."""
    if node.op_type in _EXACT:
        return 0, 1.0
    if node.op_type in SUMS:
        return 1, 1.0
    if node.op_type == "BatchNormalization":
        scale = np.abs(graph.constants[node.input[1]])
        below = 1 / deviations(graph, node)
        return _NORMALIZATION, float(max((scale * below).max(), scale.max(), below.max()))
    if node.op_type in _AVERAGES:
        count = prod(attributes(node).get("kernel_shape", graph.shape(node.input[0])))
        return count + 2, float(count)
    constant = next(graph.constants[name] for name in node.input[:2] if name in graph.constants)
    if node.op_type == "Div":
        with np.errstate(divide="ignore"):
            return 1, float((1 / np.abs(constant)).max())
    largest = float(max(constant.max(), -constant.min()))
    if node.op_type == "Mul":
        return 1, largest
    if node.op_type in ("Conv", "ConvTranspose"):
        count = constant[0].size if node.op_type == "Conv" else constant[:, 0].size
        return count + 2, count * largest
    if node.op_type in ("Gemm", "MatMul"):
        count = max(constant.shape)
        alpha, beta = (attributes(node).get(name, 1.0) for name in ("alpha", "beta"))
        return count + 2 + 2 * ((alpha, beta) != (1, 1)), max(1.0, abs(alpha)) * count * largest
    raise UnsupportedError(f"the rounding of {label(node)} is not known")


def deviations(graph: Graph, node: NodeProto) -> Array:
    """The standard deviations by which a batch normalization divides."""
    variance = graph.constants[node.input[4]]
    found: Array = np.sqrt(variance + attributes(node).get("epsilon", 1e-5))
    return found
