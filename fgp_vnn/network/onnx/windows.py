"""The windows of convolutions and pools, whose padding ONNX writes in two ways."""

from __future__ import annotations

from collections.abc import Sequence

from fgp_vnn.network.onnx.writer import Writer


def image_of(w: Writer) -> tuple[int, ...]:
    """The sizes of the axes of a node's operand along which windows move."""
    return w.shape(w.operands[0])[2:]


def extents(w: Writer) -> tuple[list[int], list[int]]:
    """The strides and the dilations of each axis."""
    ones = [1] * len(image_of(w))
    return list(w.given.get("strides", ones)), list(w.given.get("dilations", ones))


def rule_of(w: Writer) -> bytes:
    """How a node is padded: NOTSET (by its pads), VALID (not at all), SAME_UPPER, SAME_LOWER."""
    return bytes(w.given.get("auto_pad", b"NOTSET"))


def automatic(w: Writer) -> bool:
    """Whether a node is padded automatically (SAME_UPPER or SAME_LOWER)."""
    return rule_of(w).startswith(b"SAME")


def check_pool(w: Writer, kernel: Sequence[int]) -> None:
    """Refuse pools for which onnxruntime computes automatic padding differently from ONNX."""
    if automatic(w) and any(
        d > 1 or (n - 1) % s >= k
        for n, s, d, k in zip(image_of(w), *extents(w), kernel, strict=True)
    ):
        raise w.refused("is padded as SAME, but dilated or with gaps")


def padding(w: Writer, kernel: Sequence[int]) -> tuple[list[int], list[int]]:
    """The padding before and after each axis, from a node's attributes and its shapes."""
    image = image_of(w)
    rank = len(image)
    if rule_of(w) == b"NOTSET":
        pads = list(w.given.get("pads", [0] * (2 * rank)))
        return pads[:rank], pads[rank:]
    if not automatic(w):  # VALID
        return [0] * rank, [0] * rank
    less, more = [], []
    for n, out, k, s, d in zip(image, w.result_shape[2:], kernel, *extents(w), strict=True):
        total = max(0, (out - 1) * s + (k - 1) * d + 1 - n)
        less.append(total // 2)
        more.append(total - total // 2)
    return (less, more) if rule_of(w) == b"SAME_UPPER" else (more, less)
