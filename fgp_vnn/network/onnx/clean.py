"""Reduce an ONNX graph to few operators, all with literal shapes.

Every operator that only rearranges entries becomes one Gather. Its indices are the result of
running the operator in onnxruntime on the numbers 0, 1, 2, ...
"""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, version_converter

from fgp_vnn.network.onnx.explicit import average_pool, convolution, padded, transposed_convolution
from fgp_vnn.network.onnx.fold import fold, prober
from fgp_vnn.network.onnx.graph import RESHAPES, Array, Graph, attributes, last_node
from fgp_vnn.network.onnx.interpolate import interpolated
from fgp_vnn.network.onnx.read import opset_of
from fgp_vnn.network.onnx.writer import Rule, Writer, write_by_rules

_OLDEST = 9  # below it onnx2torch has no converters for Flatten, Dropout, BatchNormalization
_NEWEST = 17  # above it some of the operators that stay take other operands

_REARRANGED = {
    "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND", "Resize", "Slice",
    "SpaceToDepth", "Split", "Tile", "Upsample",
}  # fmt: skip
CLEANED = frozenset({*RESHAPES, *_REARRANGED, "Cast", "Dropout"})


def raise_opset(model: ModelProto) -> ModelProto:
    """The model, converted to the oldest operator set that onnx2torch supports if it is older."""
    new = opset_of(model) >= _OLDEST
    return model if new else version_converter.convert_version(model, _OLDEST)


def clean_graph(graph: Graph, *, whole: bool = False) -> str | None:
    """Clean in place; returns the operator (Softmax or LogSoftmax) that was removed from the end,
    if any. None is removed with `whole`."""
    fold(graph)
    graph.prune()
    for node in graph.nodes:
        while node.input and not node.input[-1]:  # an omitted operand may have an empty name
            del node.input[-1]
    softmax = None if whole else _cut_softmax(graph)
    write_by_rules(graph, _RULES)
    graph.opset = min(graph.opset, _NEWEST)
    return softmax


def _reshaped(w: Writer) -> str:
    return w.put("Reshape", w.operands[0], w.result_shape, output=w.target)


def _same(w: Writer) -> str:
    return w.operands[0]


def _cast(w: Writer) -> str | None:
    floats = w.given["to"] in (TensorProto.FLOAT, TensorProto.DOUBLE)
    return w.operands[0] if floats else None


def _reduced(w: Writer) -> str:
    """A reduction with its axes in the form that onnx2torch reads up to opset 17."""
    keep = w.given.get("keepdims", 1)
    return w.reduced(w.node.op_type, w.operands[0], w.axes, keep=keep, output=w.target)


def _resized(w: Writer) -> str | None:
    nearest = w.given.get("mode", b"nearest") == b"nearest"
    return _rearranged(w) if nearest else interpolated(w)


def _pad(w: Writer) -> str | None:
    """Padding with zeros, then the sum with the values at the edges if these are not zero."""
    x = w.operands[0]
    if not w.graph.fixed_but_first(w.node):
        raise w.refused("has pads or a value that are not constant")
    if w.given.get("mode", b"constant") != b"constant":
        return _rearranged(w)
    (edges,) = prober(w.graph, w.node)(np.zeros(w.shape(x)))
    if not edges.any():
        return padded(w, x, _all_pads(w), w.target)
    return w.put("Add", padded(w, x, _all_pads(w)), edges.astype(np.float64), output=w.target)


def _all_pads(w: Writer) -> list[int]:
    """The pads of all axes: those before, then those after."""
    rank = len(w.shape(w.operands[0]))
    pads = w.given["pads"] if "pads" in w.given else w.constant(1).tolist()
    axes = [int(axis) % rank for axis in w.constant(3)] if w.has(3) else list(range(rank))
    result = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        result[axis] = int(pads[i])
        result[rank + axis] = int(pads[len(axes) + i])
    return result


def _rearranged(w: Writer) -> str | None:
    """A node that only moves entries of its first operand, as a Gather of the flat operand; None if
    other operands are not constant."""
    if not w.graph.fixed_but_first(w.node):
        return None
    flat = w.put("Reshape", w.operands[0], [-1])
    for index, output in _indices(w):
        w.put("Gather", flat, index, output=output, axis=0)
    return w.target


def _indices(w: Writer) -> list[tuple[Array, str]]:
    """For each output of a node that only moves entries, the indices of these entries in the flat
    first operand, and the output's name."""
    run, numbers = prober(w.graph, w.node), 1 + w.numbers(w.operands[0])
    # A crop that reads outside of the image inserts constants.
    if any(v.any() for v in run(0 * numbers)) or not all(v.all() for v in run(numbers)):
        raise w.refused("reads what is outside of its operand")
    names = [name for name in w.node.output if name]
    return [(v.astype(np.int64) - 1, name) for v, name in zip(run(numbers), names, strict=True)]


_RULES: dict[str, Rule] = {
    **dict.fromkeys(RESHAPES, _reshaped),
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"), _reduced),
    **dict.fromkeys(_REARRANGED, _rearranged),
    "AveragePool": average_pool,
    "Cast": _cast,
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "Dropout": _same,
    "Pad": _pad,
    "Resize": _resized,
    "Upsample": _resized,
}


def _cut_softmax(graph: Graph) -> str | None:
    """Remove a final softmax over all outputs: it preserves their order. A softmax with a mask
    stays: the mask adds minus infinity, which has no bounds without the softmax."""
    node = last_node(graph.nodes, graph.output)
    if node is None or node.op_type not in ("Softmax", "LogSoftmax"):
        return None
    before, _, behind = softmax_sizes(graph, node)
    if before * behind != 1 or _reads_infinity(graph, graph.makers.get(node.input[0])):
        return None
    graph.output = node.input[0]
    graph.prune()
    return str(node.op_type)


def softmax_sizes(graph: Graph, node: NodeProto) -> tuple[int, int, int]:
    """The number of entries before, along and after the axes of a softmax. These are one axis since
    opset 13, and that axis with all after it in older opsets."""
    shape, new = graph.shape(node.input[0]), graph.opset >= 13
    axis = attributes(node).get("axis", -1 if new else 1) % len(shape)
    end = axis + 1 if new else len(shape)
    return prod(shape[:axis]), prod(shape[axis:end]), prod(shape[end:])


def _reads_infinity(graph: Graph, node: NodeProto | None) -> bool:
    """Whether a node reads a constant with entries that are not finite."""
    read = [] if node is None else [graph.constants.get(name) for name in node.input]
    return any(c is not None and c.dtype.kind == "f" and not np.isfinite(c).all() for c in read)
