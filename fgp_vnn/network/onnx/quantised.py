"""Quantised tensors in terms of rounding: whole numbers between two ends, times a scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.graph import Array, Graph, label
from fgp_vnn.network.onnx.writer import Writer


def quantise(w: Writer, node: NodeProto, given: dict[str, Any]) -> str:
    """round(x / scale) + zero point, between the ends of the type of the zero point."""
    x = node.input[0]
    scale, zero = _numbers(w.graph, node, given)
    untold = given.get("output_dtype") and len(node.input) < 3
    if zero.dtype.kind not in "iu" or untold:
        raise UnsupportedError(f"{label(node)} has a type that is not told, or not whole")
    whole = w.curve("Round", w.add(x, scale, "Div"))
    ends = np.iinfo(zero.dtype)
    moved = w.add(whole, zero.astype(np.float64)) if zero.any() else whole
    return w.put("Clip", moved, float(ends.min), float(ends.max), shape=w.shape(x))


def dequantise(w: Writer, node: NodeProto, given: dict[str, Any]) -> str:
    """(x - zero point) scale."""
    scale, zero = _numbers(w.graph, node, given)
    x = node.input[0]
    moved = w.add(x, zero.astype(np.float64), "Sub") if zero.any() else x
    return w.add(moved, scale, "Mul")


def _numbers(graph: Graph, node: NodeProto, given: dict[str, Any]) -> tuple[Array, Array]:
    """The scale and the zero point, in shapes that fit the tensor."""
    names = [name for name in node.input[1:] if name]
    if given.get("block_size") or not all(name in graph.constants for name in names):
        raise UnsupportedError(f"{label(node)} has scales in blocks, or that are not constant")
    scale = graph.constants[names[0]]
    zero = graph.constants[names[1]] if len(names) > 1 else np.zeros(scale.shape, np.uint8)
    shape = graph.shape(node.input[0])
    if scale.size == 1:
        return scale.reshape(()), zero.reshape(())
    each = [1] * len(shape)
    axis = given.get("axis", 1) % len(shape)
    each[axis] = shape[axis]
    return scale.reshape(each), zero.reshape(each)
