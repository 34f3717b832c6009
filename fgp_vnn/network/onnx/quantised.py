"""Quantised tensors in terms of rounding: integers in a range, times a scale."""

from __future__ import annotations

import numpy as np

from fgp_vnn.network.onnx.graph import Array
from fgp_vnn.network.onnx.writer import Writer


def quantise(w: Writer) -> str:
    """round(x / scale) + zero point, clipped to the range of the zero point's integer type."""
    x = w.operands[0]
    scale, zero = _numbers(w)
    untold = w.given.get("output_dtype") and len(w.operands) < 3
    if zero.dtype.kind not in "iu" or untold:
        raise w.refused("has a type that is not given, or is not an integer type")
    whole = w.curve("Round", w.binary("Div", x, scale))
    ends = np.iinfo(zero.dtype)
    moved = w.add(whole, zero.astype(np.float64)) if zero.any() else whole
    return w.put("Clip", moved, float(ends.min), float(ends.max), shape=w.shape(x))


def dequantise(w: Writer) -> str:
    """(x - zero point) scale."""
    scale, zero = _numbers(w)
    x = w.operands[0]
    moved = w.binary("Sub", x, zero.astype(np.float64)) if zero.any() else x
    return w.binary("Mul", moved, scale)


def _numbers(w: Writer) -> tuple[Array, Array]:
    """The scale and the zero point, in shapes that broadcast to the tensor."""
    if w.given.get("block_size") or not w.graph.fixed_but_first(w.node):
        raise w.refused("has scales in blocks, or that are not constant")
    scale = w.constant(1)
    zero = w.constant(2) if w.has(2) else np.zeros(scale.shape, np.uint8)
    if scale.size == 1:
        return scale.reshape(()), zero.reshape(())
    shape = w.shape(w.operands[0])
    each = [1] * len(shape)
    axis = w.given.get("axis", 1) % len(shape)
    each[axis] = shape[axis]
    return scale.reshape(each), zero.reshape(each)
