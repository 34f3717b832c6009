"""Which entries a pooling or a reduction takes the maximum of."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.errors import UnsupportedError
from fgp_vnn.network.clean import axes_of
from fgp_vnn.network.graph import Array, Graph, label


def reduction_groups(graph: Graph, node: NodeProto, given: dict[str, Any]) -> Array:
    """Flat indices [members, results] of what a ReduceMax or ReduceMin runs over."""
    shape = graph.shape(node.input[0])
    axes = axes_of(graph, node, given)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    numbers = np.arange(prod(shape)).reshape(shape).transpose(*axes, *kept)
    groups: Array = numbers.reshape(prod(shape[a] for a in axes), -1)
    return groups


def pool_groups(graph: Graph, node: NodeProto, given: dict[str, Any]) -> Array:
    """Flat indices [members, results] of each window of a MaxPool.

    A place outside of the image is given the index of one inside in the same window, which leaves
    the maximum as it is.
    """
    shape = graph.shape(node.input[0])
    image, result = shape[2:], graph.shape(node.output[0])[2:]
    kernel = given.get("kernel_shape", list(image))
    rank = len(kernel)
    strides = given.get("strides", [1] * rank)
    dilations = given.get("dilations", [1] * rank)
    starts = _starts(given, image, result, kernel, strides, dilations)
    inside: list[Array] = []
    flat: list[Array] = []
    for offset in product(*(range(k) for k in kernel)):
        place = [
            np.arange(n) * s - p + o * d
            for n, s, p, o, d in zip(result, strides, starts, offset, dilations, strict=True)
        ]
        grid = np.meshgrid(*place, indexing="ij")
        valid = [(g >= 0) & (g < n) for g, n in zip(grid, image, strict=True)]
        inside.append(np.logical_and.reduce(valid).reshape(-1))
        flat.append(np.ravel_multi_index(grid, image, mode="clip").reshape(-1))
    member, within = np.stack(flat), np.stack(inside)  # [members, places]
    if not within.any(0).all():
        raise UnsupportedError(f"{label(node)} has windows outside of the image")
    some = member[within.argmax(0), np.arange(member.shape[1])]  # [places]
    member = np.where(within, member, some)
    channels = np.arange(prod(shape[:2])) * prod(image)
    return (member[:, None, :] + channels[None, :, None]).reshape(len(member), -1)


def _starts(
    given: dict[str, Any],
    image: tuple[int, ...],
    result: tuple[int, ...],
    kernel: list[int],
    strides: list[int],
    dilations: list[int],
) -> list[int]:
    """The padding in front of each axis."""
    automatic = given.get("auto_pad", b"NOTSET")
    if automatic == b"NOTSET":
        return list(given.get("pads", [0] * len(image)))[: len(image)]
    if automatic == b"VALID":
        return [0] * len(image)
    starts = []
    for n, out, k, s, d in zip(image, result, kernel, strides, dilations, strict=True):
        total = max(0, (out - 1) * s + (k - 1) * d + 1 - n)
        starts.append(total // 2 if automatic == b"SAME_UPPER" else total - total // 2)
    return starts
