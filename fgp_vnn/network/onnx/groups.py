"""Which entries a pooling or a reduction takes the maximum of."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.clean import axes_of
from fgp_vnn.network.onnx.graph import Array, Graph, label
from fgp_vnn.network.onnx.windows import check_pool, extents, padding

ABSENT = -1  # in place of an index


def reduction_groups(graph: Graph, node: NodeProto, given: dict[str, Any]) -> Array:
    """Flat indices [members, results] of what a reduction runs over."""
    shape = graph.shape(node.input[0])
    axes = axes_of(graph, node, given)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    numbers = np.arange(prod(shape)).reshape(shape).transpose(*axes, *kept)
    groups: Array = numbers.reshape(prod(shape[a] for a in axes), -1)
    return groups


def pool_groups(graph: Graph, node: NodeProto, given: dict[str, Any]) -> Array:
    """Flat indices [members, results] of each window of a MaxPool; ABSENT outside of the image."""
    shape = graph.shape(node.input[0])
    image, result = shape[2:], graph.shape(node.output[0])[2:]
    kernel: list[int] = given.get("kernel_shape", list(image))
    strides, dilations = extents(given, len(kernel))
    check_pool(node, given, kernel, image)
    starts, _ = padding(given, kernel, image, result)
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
    channels = np.arange(prod(shape[:2])) * prod(image)
    every = member[:, None, :] + channels[None, :, None]
    return np.where(within[:, None, :], every, ABSENT).reshape(len(member), -1)
