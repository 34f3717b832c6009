"""How far the float32 programs of an ONNX file can be from the network in real arithmetic.

A sum of products, in any order, blocked or not, with or without fused multiply-add, multiplies each
of its terms by at most T factors 1 + d with |d| <= u = 2^-24: T is the number of roundings on the
longest way from what a map reads to its result. Small results lose digits or are flushed to zero,
and so are small operands: an operation is off by up to 2^-126 more, an operand, be it a constant of
the file, an input or a result, by as much times what it is multiplied by, and products after that
scale it. So by `rounding`'s theorem the result is off by at most share(T) times the sum of its
terms' absolute values, and lost times what `Loss` counts. Where a runtime folds constants into
their neighbours, terms are rounded no more often than here, as long as the folded ones do not
underflow. A ReLU flushes too: what it gives is off by up to 2^-126, and that counts as an input's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import torch
from onnx import ModelProto, NodeProto, TensorProto
from torch import Tensor

from fgp_vnn.errors import UnsupportedError
from fgp_vnn.files import read_bytes
from fgp_vnn.network.clean import clean_graph, raise_opset
from fgp_vnn.network.graph import Graph, attributes, label, read_graph
from fgp_vnn.network.normal_form import Absolute, absolute_maps
from fgp_vnn.rounding import unit

LARGEST = 1e38  # below the greatest float32: no sum overflows
LEAST = 1e-30  # of a factor that does not underflow when it is multiplied by another

_EXACT = {
    "Concat", "Constant", "Dropout", "Flatten", "Gather", "Identity", "Pad", "Relu", "Reshape",
    "Slice", "Squeeze", "Transpose", "Unsqueeze",
}  # fmt: skip
_KINDS = {TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL}
_SUMS = {"Add", "Sub"}
_PRODUCTS = {"BatchNormalization", "Conv", "Div", "Gemm", "MatMul", "Mul"}
_NORMALIZATION = 8  # roundings of a batch normalization


class Loss(NamedTuple):
    """What a tensor may have lost since the input or the last ReLU."""

    roundings: int = 0  # that a term passed through
    underflows: float = 1.0  # of 2^-126 each, as they arrive here; one of the source itself


@dataclass(frozen=True, eq=False)
class Deployment:
    """For each map of a network, its terms, and what happens to each of them."""

    terms: tuple[Absolute, ...]
    losses: tuple[Loss, ...]

    def error(self, index: int, sizes: Sequence[Tensor]) -> Tensor:
        """At most |fl(z) - z| [outputs] of map number `index`, for sources of at most these sizes.

        Raises UnsupportedError where a sum may overflow.
        """
        roundings, underflows = self.losses[index]
        program, size_of = self.terms[index].terms, unit(torch.float32)
        terms, part = program.magnitude(sizes).reshape(-1), roundings * size_of.eps / 2
        if not (part < 0.1 and underflows < LARGEST and bool((terms < LARGEST).all())):
            raise UnsupportedError("float32 may overflow, or a sum is too long to bound its error")
        small = size_of.lost * (underflows + program.lost(sizes).forward)
        here = unit(terms.dtype)  # in which this is computed, with more digits
        return here.grow(program.operations + 8) * (part / (1 - part) * terms + small)

    @property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        return tuple(absolute.terms.sources for absolute in self.terms)


def read_deployment(path: Path | str) -> Deployment:
    """The roundings of an ONNX file; UnsupportedError names what the theorem does not cover."""
    model = raise_opset(onnx.ModelProto.FromString(read_bytes(Path(path), "network")))
    _check_written(model)
    graph = read_graph(model)
    if clean_graph(graph) is not None:
        raise UnsupportedError("float32 semantics do not cover a softmax, which can make ties")
    maps = absolute_maps(graph)
    losses = _losses(graph)
    return Deployment(tuple(maps), tuple(losses[m.end] for m in maps))


def _check_written(model: ModelProto) -> None:
    """Refuse operators and constants of the file that the theorem is not about."""
    constant = {tensor.name for tensor in model.graph.initializer}
    given_as = [value.type.tensor_type.elem_type for value in model.graph.input]
    given_as += [tensor.data_type for tensor in model.graph.initializer]
    given_as += [a.t.data_type for n in model.graph.node for a in n.attribute if a.HasField("t")]
    if not _KINDS.issuperset(given_as):
        raise UnsupportedError("float32 semantics do not cover numbers that are not float32")
    for node in model.graph.node:
        if node.op_type not in _EXACT | _SUMS | _PRODUCTS:
            raise UnsupportedError(f"float32 semantics do not cover {label(node)}")
        given = attributes(node)
        if node.op_type == "Gemm" and (given.get("alpha", 1), given.get("beta", 1)) != (1, 1):
            raise UnsupportedError(f"float32 semantics do not cover {label(node)} with factors")
        if constant.issuperset(name for name in node.input if name):
            if node.op_type not in _EXACT:
                raise UnsupportedError(f"float32 semantics do not cover {label(node)} of constants")
            constant.update(node.output)


def _losses(graph: Graph) -> dict[str, Loss]:
    """What each tensor that depends on the input may have lost."""
    losses = {graph.input: Loss()}
    for node in graph.nodes:
        read = [losses[name] for name in node.input if name in losses]
        if not read:
            continue
        steps, gain = _effect(graph, node)
        if node.op_type == "Relu":
            loss = Loss()
        else:
            lost = sum(loss.underflows for loss in read) + 2 * steps
            loss = Loss(max(loss.roundings for loss in read) + steps, max(gain, 1.0) * lost)
        losses.update(dict.fromkeys(node.output, loss))
    # A wider accumulator is rounded once more when it is stored.
    return {name: Loss(n + 2, lost) if n else Loss(0, lost) for name, (n, lost) in losses.items()}


def _effect(graph: Graph, node: NodeProto) -> tuple[int, float]:
    """The roundings that an operator adds to a term, and how much it can scale what was lost."""
    if node.op_type in _EXACT:
        return 0, 1.0
    if node.op_type in _SUMS:
        return 1, 1.0
    if node.op_type == "BatchNormalization":
        scale, _, _, variance = (graph.constants[name] for name in node.input[1:5])
        below = 1 / np.sqrt(variance + attributes(node).get("epsilon", 1e-5))
        factor = abs(scale) * below
        if not bool(((factor == 0) | (factor > LEAST)).all()):
            raise UnsupportedError(f"float32 semantics do not cover {label(node)}: it underflows")
        return _NORMALIZATION, float(max(factor.max(), abs(scale).max(), below.max()))
    constant = next(graph.constants[name] for name in node.input[:2] if name in graph.constants)
    size = np.abs(constant)
    if node.op_type == "Conv":
        return int(size[0].size) + 2, float(size.reshape(len(size), -1).sum(1).max())
    if node.op_type in ("Gemm", "MatMul"):
        return max(size.shape) + 2, max(float(size.sum(axis).max()) for axis in range(size.ndim))
    if node.op_type in ("Mul", "Div"):
        with np.errstate(divide="ignore"):
            return 1, float((size if node.op_type == "Mul" else 1 / size).max())
    raise UnsupportedError(f"float32 semantics do not cover {label(node)}")
