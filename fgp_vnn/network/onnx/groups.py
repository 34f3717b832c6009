"""The groups of entries over which a pooling or a reduction runs."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from fgp_vnn.network.onnx.graph import Array
from fgp_vnn.network.onnx.windows import check_pool, extents, image_of, padding
from fgp_vnn.network.onnx.writer import Writer

ABSENT = -1  # the index of a member outside of the image


def reduction_groups(w: Writer) -> Array:
    """Flat indices [members, results] of the entries that each result of a reduction reads."""
    shape, axes = w.shape(w.operands[0]), w.axes
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    numbers = w.numbers(w.operands[0]).transpose(*axes, *kept)
    groups: Array = numbers.reshape(prod(shape[a] for a in axes), -1)
    return groups


def pool_groups(w: Writer) -> Array:
    """Flat indices [members, results] of each window of a MaxPool; ABSENT outside of the image."""
    image = image_of(w)
    kernel: list[int] = w.given.get("kernel_shape", list(image))
    strides, dilations = extents(w)
    check_pool(w, kernel)
    starts, _ = padding(w, kernel)
    inside: list[Array] = []
    flat: list[Array] = []
    for offset in product(*(range(k) for k in kernel)):
        places = zip(w.result_shape[2:], strides, starts, offset, dilations, strict=True)
        place = [np.arange(n) * s - p + o * d for n, s, p, o, d in places]
        grid = np.meshgrid(*place, indexing="ij")
        valid = [(g >= 0) & (g < n) for g, n in zip(grid, image, strict=True)]
        inside.append(np.logical_and.reduce(valid).reshape(-1))
        flat.append(np.ravel_multi_index(grid, image, mode="clip").reshape(-1))
    member, within = np.stack(flat), np.stack(inside)  # [members, places]
    if not within.any(0).all():
        raise w.refused("has windows outside of the image")
    channels = np.arange(prod(w.shape(w.operands[0])[:2])) * prod(image)
    every = member[:, None, :] + channels[None, :, None]
    return np.where(within[:, None, :], every, ABSENT).reshape(len(member), -1)
