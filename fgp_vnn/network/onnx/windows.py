"""The windows of convolutions and pools, whose padding ONNX writes in two ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.graph import label


def extents(given: dict[str, Any], rank: int) -> tuple[list[int], list[int]]:
    """The strides and the dilations of each axis."""
    strides = given.get("strides", [1] * rank)
    return list(strides), list(given.get("dilations", [1] * rank))


def check_pool(
    node: NodeProto, given: dict[str, Any], kernel: Sequence[int], image: Sequence[int]
) -> None:
    """Refuse pools for which onnxruntime computes automatic padding differently from ONNX."""
    strides, dilations = extents(given, len(image))
    if given.get("auto_pad", b"NOTSET").startswith(b"SAME") and any(
        d > 1 or (n - 1) % s >= k
        for n, s, d, k in zip(image, strides, dilations, kernel, strict=True)
    ):
        raise UnsupportedError(f"{label(node)} is padded as SAME, but dilated or with gaps")


def padding(
    given: dict[str, Any], kernel: Sequence[int], image: Sequence[int], result: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The padding in front of and behind each axis, from a node's attributes and its shapes."""
    rank = len(image)
    automatic = given.get("auto_pad", b"NOTSET")
    if automatic == b"NOTSET":
        pads = list(given.get("pads", [0] * (2 * rank)))
        return pads[:rank], pads[rank:]
    if automatic == b"VALID":
        return [0] * rank, [0] * rank
    strides, dilations = extents(given, rank)
    less, more = [], []
    for n, out, k, s, d in zip(image, result, kernel, strides, dilations, strict=True):
        total = max(0, (out - 1) * s + (k - 1) * d + 1 - n)
        less.append(total // 2)
        more.append(total - total // 2)
    return (less, more) if automatic == b"SAME_UPPER" else (more, less)
