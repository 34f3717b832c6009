"""Clean-up of an ONNX graph: few operators, all of them with literal shapes.

Every operator that only rearranges entries becomes one Gather with the indices that onnxruntime
finds when it runs the operator on the numbers 0, 1, 2, ...
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, version_converter

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.explicit import explicit, pad_with_zeros
from fgp_vnn.network.onnx.fold import fold, prober
from fgp_vnn.network.onnx.graph import Array, Graph, attributes, label, make_node
from fgp_vnn.network.onnx.interpolate import interpolated

_OLDEST = 9  # below it onnx2torch has no converters for Flatten, Dropout, BatchNormalization
_NEWEST = 17  # above it some operators that we keep take other operands

_RESHAPES = {"Flatten", "Reshape", "Squeeze", "Unsqueeze"}
_REDUCTIONS = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"}
_REARRANGED = {
    "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "Resize", "Slice",
    "SpaceToDepth", "Split", "Tile", "Upsample",
}  # fmt: skip
CLEANED = frozenset({*_RESHAPES, *_REARRANGED, "Cast", "Dropout"})


def raise_opset(model: ModelProto) -> ModelProto:
    """The model in operators that onnx2torch knows."""
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if not versions or max(versions) >= _OLDEST:
        return model
    return version_converter.convert_version(model, _OLDEST)


def clean_graph(graph: Graph, *, whole: bool = False) -> str | None:
    """Clean in place; returns the operator (Softmax or LogSoftmax) that was cut off the end, unless
    the graph is to stay whole."""
    fold(graph)
    graph.prune()
    softmax = None if whole else _cut_softmax(graph)
    variables = graph.variables()
    graph.replace(lambda node: _simpler(graph, node) if variables & {*node.input} else None)
    graph.skip_copies()
    graph.opset = min(graph.opset, _NEWEST)
    return softmax


def _simpler(graph: Graph, node: NodeProto) -> list[NodeProto] | None:
    given = attributes(node)
    if node.op_type in _RESHAPES:
        shape = np.asarray(graph.shape(node.output[0]), dtype=np.int64)
        operands = [node.input[0], graph.constant(shape, "shape")]
        return [make_node("Reshape", operands, node.output[0])]
    if node.op_type == "Dropout":
        return [make_node("Identity", node.input[:1], node.output[0])]
    if node.op_type == "Cast" and given["to"] in (TensorProto.FLOAT, TensorProto.DOUBLE):
        return [make_node("Identity", node.input, node.output[0])]
    if node.op_type in _REDUCTIONS:
        return [_reduction(graph, node, given)]
    if node.op_type == "Pad":
        return _pad(graph, node, given)
    if node.op_type in ("Resize", "Upsample") and given.get("mode", b"nearest") != b"nearest":
        return interpolated(graph, node, given)
    if node.op_type in _REARRANGED and graph.fixed_but_first(node):
        return _rearranged(graph, node)
    return explicit(graph, node, given)


def axes_of(graph: Graph, node: NodeProto, given: dict[str, Any]) -> list[int]:
    """The axes that a reduction runs over, from an attribute or an operand, none negative."""
    rank = len(graph.shape(node.input[0]))
    axes = given.get("axes")
    if axes is None and len(node.input) > 1 and node.input[1]:
        if node.input[1] not in graph.constants:
            raise UnsupportedError(f"{label(node)} has axes that are not constant")
        axes = graph.constants[node.input[1]].tolist()
    if not axes:
        return [] if given.get("noop_with_empty_axes") else list(range(rank))
    return sorted(int(axis) % rank for axis in axes)


def _reduction(graph: Graph, node: NodeProto, given: dict[str, Any]) -> NodeProto:
    """A reduction with its axes in the form that onnx2torch reads up to opset 17."""
    axes = axes_of(graph, node, given)
    if not axes:
        return make_node("Identity", node.input[:1], node.output[0])
    keep = given.get("keepdims", 1)
    if node.op_type == "ReduceSum" and graph.opset >= 13:
        operands = [node.input[0], graph.constant(np.asarray(axes, dtype=np.int64), "axes")]
        return make_node("ReduceSum", operands, node.output[0], keepdims=keep)
    return make_node(node.op_type, node.input[:1], node.output[0], axes=axes, keepdims=keep)


def _pad(graph: Graph, node: NodeProto, given: dict[str, Any]) -> list[NodeProto]:
    """Padding with zeros, then the sum with what stands at the edges if that is not zero."""
    source, target = node.input[0], node.output[0]
    if given.get("mode", b"constant") != b"constant":
        return _rearranged(graph, node)
    if not graph.fixed_but_first(node):
        raise UnsupportedError(f"{label(node)} has pads or a value that are not constant")
    shape = graph.shape(source)
    (edges,) = prober(graph, node)(np.zeros(shape))
    padded = graph.fresh("padded") if edges.any() else target
    pads = _all_pads(graph, node, given, len(shape))
    result = [pad_with_zeros(graph, source, pads, padded)]
    if edges.any():
        offset = graph.constant(edges.astype(np.float64), "edges")
        result.append(make_node("Add", [padded, offset], target))
    return result


def _all_pads(graph: Graph, node: NodeProto, given: dict[str, Any], rank: int) -> list[int]:
    """The pads of all axes: those in front, then those behind."""
    pads = given["pads"] if "pads" in given else graph.constants[node.input[1]].tolist()
    axes = list(range(rank))
    if len(node.input) > 3 and node.input[3]:
        axes = [int(axis) % rank for axis in graph.constants[node.input[3]]]
    result = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        result[axis] = int(pads[i])
        result[rank + axis] = int(pads[len(axes) + i])
    return result


def _rearranged(graph: Graph, node: NodeProto) -> list[NodeProto]:
    """A node that only moves entries of its first operand, as a Gather of the flat operand."""
    flat = graph.fresh("flat")
    everything = graph.constant(np.asarray([-1], dtype=np.int64), "shape")
    result = [make_node("Reshape", [node.input[0], everything], flat)]
    for index, target in _indices(graph, node):
        operands = [flat, graph.constant(index, "indices")]
        result.append(make_node("Gather", operands, target, axis=0))
    return result


def _indices(graph: Graph, node: NodeProto) -> list[tuple[Array, str]]:
    """Where each entry of a moving node's outputs comes from in its flat first operand."""
    shape = graph.shape(node.input[0])
    run = prober(graph, node)
    numbers = np.arange(1, prod(shape) + 1).reshape(shape)
    # What a crop reads outside of the image is a constant.
    if any(v.any() for v in run(0 * numbers)) or not all(v.all() for v in run(numbers)):
        raise UnsupportedError(f"{label(node)} reads what is outside of its operand")
    names = [name for name in node.output if name]
    return [(v.astype(np.int64) - 1, name) for v, name in zip(run(numbers), names, strict=True)]


def _cut_softmax(graph: Graph) -> str | None:
    """Drop a softmax over all outputs at the end: it keeps their order. One that leaves entries out
    stays: minus infinity, which its mask gives them, has no bounds without it."""
    makers = graph.makers
    node = makers.get(graph.output)
    while node is not None and node.op_type in {"Identity", *_RESHAPES}:
        node = makers.get(node.input[0])
    if node is None or node.op_type not in ("Softmax", "LogSoftmax"):
        return None
    before, _, behind = softmax_sizes(graph, node)
    if before * behind != 1 or _reads_infinity(graph, makers.get(node.input[0])):
        return None
    graph.output = node.input[0]
    graph.prune()
    return str(node.op_type)


def softmax_sizes(graph: Graph, node: NodeProto) -> tuple[int, int, int]:
    """How many entries lie before, along and behind the axes that a softmax runs over: one axis
    since opset 13, all from one on before."""
    shape, new = graph.shape(node.input[0]), graph.opset >= 13
    axis = attributes(node).get("axis", -1 if new else 1) % len(shape)
    end = axis + 1 if new else len(shape)
    return prod(shape[:axis]), prod(shape[axis:end]), prod(shape[end:])


def _reads_infinity(graph: Graph, node: NodeProto | None) -> bool:
    """Whether a node reads a constant with entries that are not finite."""
    read = [] if node is None else [graph.constants.get(name) for name in node.input]
    return any(c is not None and c.dtype.kind == "f" and not np.isfinite(c).all() for c in read)
