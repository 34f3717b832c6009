"""Rewrite convolutions and pools whose padding torch does not support in terms of others."""

from __future__ import annotations

import numpy as np

from fgp_vnn.network.onnx.fold import prober
from fgp_vnn.network.onnx.windows import automatic, check_pool, extents, image_of, padding, rule_of
from fgp_vnn.network.onnx.writer import Writer


def padded(w: Writer, x: str, pads: list[int], output: str = "") -> str:
    """Pad a tensor with zeros; `pads` are the widths before all axes, then those after; negative
    widths crop."""
    if w.graph.opset < 11:
        return w.put("Pad", x, output=output, pads=pads)
    return w.put("Pad", x, pads, output=output)


def _uneven(w: Writer) -> bool:
    """Whether the padding before and after an axis differs."""
    pads = w.given.get("pads", [])
    return bool(pads[: len(pads) // 2] != pads[len(pads) // 2 :])


def convolution(w: Writer) -> str | None:
    """A convolution with automatic padding, rewritten with explicit pads; None for others."""
    if not automatic(w):
        return None
    starts, ends = padding(w, w.shape(w.operands[1])[2:])
    kept = {name: value for name, value in w.given.items() if name != "auto_pad"}
    return w.put("Conv", *w.operands, output=w.target, **kept | {"pads": [*starts, *ends]})


def average_pool(w: Writer) -> str | None:
    """The sum of each window, divided by the number of entries that onnxruntime counts in it."""
    if not (automatic(w) or _uneven(w) or max(w.given.get("dilations", [1])) > 1):
        return None
    x, kernel = w.operands[0], w.given["kernel_shape"]
    shape, image, result = w.shape(x), image_of(w), w.result_shape[2:]
    check_pool(w, kernel)
    starts, _ = padding(w, kernel)
    strides, dilations = extents(w)
    ends = [
        max(0, (out - 1) * s + (k - 1) * d + 1 - n - start)
        for out, s, k, d, n, start in zip(
            result, strides, kernel, dilations, image, starts, strict=True
        )
    ]
    total = w.put(
        "Conv",
        x,
        np.ones((shape[1], 1, *kernel)),
        group=shape[1],
        pads=[*starts, *ends],
        strides=strides,
        dilations=dilations,
    )
    (inside,), (share,) = (prober(w.graph, n)(np.ones(shape)) for n in (w.nodes[-1], w.node))
    if not (inside > 0).all():
        raise w.refused("has windows outside of the image")
    return w.put("Div", total, np.rint(inside / share).astype(np.float64), output=w.target)


def transposed_convolution(w: Writer) -> str | None:
    """The convolution without padding, then its edges cropped: that is what padding means here."""
    if not (automatic(w) or _uneven(w) or "output_shape" in w.given):
        return None
    image, kernel = image_of(w), w.shape(w.operands[1])[2:]
    sizes = image, *extents(w), kernel, w.result_shape[2:]
    extra = w.given.get("output_padding", [0] * len(image))
    cut = [
        (n - 1) * s + o + (k - 1) * d + 1 - out
        for o, n, s, d, k, out in zip(extra, *sizes, strict=True)
    ]
    if any(extra) and automatic(w):
        raise w.refused("has both auto_pad and output_padding")
    if rule_of(w) == b"NOTSET" and "output_shape" not in w.given:
        starts = w.given["pads"][: len(image)]
    elif rule_of(w) == b"SAME_UPPER":
        starts = [total // 2 for total in cut]
    else:
        starts = [total - total // 2 for total in cut]
    if min(cut) < 0:
        raise w.refused("has an output larger than what it computes")
    dropped = ("auto_pad", "output_shape", "pads")
    kept = {name: value for name, value in w.given.items() if name not in dropped}
    whole = w.put("ConvTranspose", *w.operands, **kept)
    ends = [total - start for total, start in zip(cut, starts, strict=True)]
    pads = [0, 0, *(-start for start in starts), 0, 0, *(-end for end in ends)]
    return padded(w, whole, pads, w.target)
