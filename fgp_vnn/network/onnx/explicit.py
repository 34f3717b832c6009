"""Convolutions and pools whose padding torch does not have, in terms of those that it has."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.fold import prober
from fgp_vnn.network.onnx.graph import Graph, label, make_node
from fgp_vnn.network.onnx.windows import check_pool, extents, padding


def explicit(graph: Graph, node: NodeProto, given: dict[str, Any]) -> list[NodeProto] | None:
    """The nodes that take the place of a convolution or an average pool; None: it may stay."""
    pads = given.get("pads", [])
    uneven = pads[: len(pads) // 2] != pads[len(pads) // 2 :]
    dilated = max(given.get("dilations", [1])) > 1
    automatic = given.get("auto_pad", b"NOTSET").startswith(b"SAME")
    if node.op_type == "Conv" and automatic:
        return [_convolution(graph, node, given)]
    if node.op_type == "AveragePool" and (automatic or uneven or dilated):
        return _average(graph, node, given)
    if node.op_type == "ConvTranspose" and (automatic or uneven or "output_shape" in given):
        return _transposed(graph, node, given)
    return None


def pad_with_zeros(graph: Graph, source: str, pads: list[int], target: str) -> NodeProto:
    """A Pad node; `pads` are those in front of all axes, then those behind, negative ones cut."""
    if graph.opset < 11:
        return make_node("Pad", [source], target, pads=pads)
    operand = graph.constant(np.asarray(pads, dtype=np.int64), "pads")
    return make_node("Pad", [source, operand], target)


def _convolution(graph: Graph, node: NodeProto, given: dict[str, Any]) -> NodeProto:
    kernel = list(graph.shape(node.input[1])[2:])
    image, result = graph.shape(node.input[0])[2:], graph.shape(node.output[0])[2:]
    starts, ends = padding(given, kernel, image, result)
    kept = {name: value for name, value in given.items() if name != "auto_pad"}
    return make_node("Conv", node.input, node.output[0], **kept | {"pads": [*starts, *ends]})


def _average(graph: Graph, node: NodeProto, given: dict[str, Any]) -> list[NodeProto]:
    """The sum of each window, divided by how many entries onnxruntime counts in it."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])[2:]
    image, kernel = shape[2:], given["kernel_shape"]
    check_pool(node, given, kernel, image)
    starts, _ = padding(given, kernel, image, result)
    strides, dilations = extents(given, len(image))
    ends = [
        max(0, (out - 1) * s + (k - 1) * d + 1 - n - start)
        for out, s, k, d, n, start in zip(
            result, strides, kernel, dilations, image, starts, strict=True
        )
    ]
    ones = graph.constant(np.ones((shape[1], 1, *kernel)), "ones")
    total = make_node(
        "Conv",
        [node.input[0], ones],
        graph.fresh("total"),
        group=shape[1],
        pads=[*starts, *ends],
        strides=strides,
        dilations=dilations,
    )
    (inside,), (share,) = (prober(graph, n)(np.ones(shape)) for n in (total, node))
    if not (inside > 0).all():
        raise UnsupportedError(f"{label(node)} has windows outside of the image")
    counted = graph.constant(np.rint(inside / share).astype(np.float64), "counted")
    return [total, make_node("Div", [total.output[0], counted], node.output[0])]


def _transposed(graph: Graph, node: NodeProto, given: dict[str, Any]) -> list[NodeProto]:
    """The convolution without padding, then its edges cut off: that is what padding means here."""
    image, result = graph.shape(node.input[0])[2:], graph.shape(node.output[0])[2:]
    kernel = graph.shape(node.input[1])[2:]
    strides, dilations = extents(given, len(image))
    extra = given.get("output_padding", [0] * len(image))
    cut = [
        (n - 1) * s + o + (k - 1) * d + 1 - out
        for n, s, o, k, d, out in zip(image, strides, extra, kernel, dilations, result, strict=True)
    ]
    if any(extra) and given.get("auto_pad", b"NOTSET").startswith(b"SAME"):
        raise UnsupportedError(f"{label(node)} has both auto_pad and output_padding")
    if given.get("auto_pad", b"NOTSET") == b"NOTSET" and "output_shape" not in given:
        starts = given["pads"][: len(image)]
    elif given.get("auto_pad") == b"SAME_UPPER":
        starts = [total // 2 for total in cut]
    else:
        starts = [total - total // 2 for total in cut]
    if min(cut) < 0:
        raise UnsupportedError(f"{label(node)} has an output larger than what it computes")
    dropped = ("auto_pad", "output_shape", "pads")
    kept = {name: value for name, value in given.items() if name not in dropped}
    whole = make_node("ConvTranspose", node.input, graph.fresh("whole"), **kept)
    ends = [total - start for total, start in zip(cut, starts, strict=True)]
    pads = [0, 0, *(-start for start in starts), 0, 0, *(-end for end in ends)]
    return [whole, pad_with_zeros(graph, whole.output[0], pads, node.output[0])]
