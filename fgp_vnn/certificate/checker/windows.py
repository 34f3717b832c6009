"""Convolutions and average pooling of affine forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.certificate.checker.call import Call
from fgp_vnn.certificate.checker.forms import Array, Constant, Form, as_form, linear, plus, times


def conv(call: Call) -> Form:
    """The convolution [batch, out channels, *positions] of an image [batch, channels, *size] with a
    constant kernel, plus the bias."""
    form, kernel, bias = call.form(), call.constant(1), call.constant(2)
    if kernel is None:
        raise UnsupportedError("a convolution without its kernel")
    window = window_of(call.attributes, kernel.shape[2:], form.shape[2:])
    result = times(form, kernel, window.convolve, prod(kernel.shape[1:]) + 1)
    if bias is None:
        return result
    return plus(result, as_form(np.reshape(bias, (1, -1, *(1,) * (kernel.ndim - 2)))))


def average_pool(call: Call) -> Form:
    """The sum of each window, divided by the number of its entries that count."""
    given, form = call.attributes, call.form()
    if given.get("ceil_mode", 0):
        raise UnsupportedError("its windows go beyond the padding")
    kernel, image = list(given["kernel_shape"]), form.shape[2:]
    window = pool_window(given, kernel, image)
    ones = np.ones((1, 1, *kernel))

    def total(block: Array) -> Array:
        each = block.reshape(-1, 1, 1, *image)  # an image of one channel each
        sums = window.convolve(each, ones)
        return sums.reshape(*block.shape[:3], *sums.shape[3:])

    count = np.asarray(float(prod(kernel)))
    if not given.get("count_include_pad", 0):
        count = total(np.ones((1, 1, 1, *image)))[0]
    if not count.all():
        raise UnsupportedError("a window lies outside of the image")
    sums = linear(form, lambda block, _: total(block), prod(kernel) + 1)
    return times(sums, count, np.divide, 1)


@dataclass(frozen=True)
class Window:
    """How a kernel moves over an image."""

    strides: list[int]
    dilations: list[int]
    pads: list[int]
    groups: int

    def convolve(self, block: Array, kernel: Array) -> Array:
        """Convolve images [n, 1, channels, *space] with kernels [out, channels / groups,
        *window]."""
        space, outputs = kernel.ndim - 2, len(kernel)
        channels = self.groups * kernel.shape[1]
        if block.ndim != space + 3 or block.shape[1:3] != (1, channels) or outputs % self.groups:
            raise UnsupportedError("a convolution of this shape")
        patches = self.patches(block[:, 0], kernel.shape[2:])
        results = []
        for group in range(self.groups):
            read = slice(group * kernel.shape[1], (group + 1) * kernel.shape[1])
            part = kernel[group * outputs // self.groups : (group + 1) * outputs // self.groups]
            axes = [1, *range(space + 2, 2 * space + 2)]
            moved = np.tensordot(patches[:, read], part, (axes, [1, *range(2, space + 2)]))
            results.append(np.moveaxis(moved, -1, 1))
        return np.concatenate(results, 1)[:, None]

    def patches(self, images: Constant, kernel: Sequence[int], fill: float = 0) -> Constant:
        """The entries of images [n, channels, *space] under the kernel at each place, [n, channels,
        *places, *kernel]; the padding has the value `fill`."""
        space = len(kernel)
        ends = list(zip(self.pads[:space], self.pads[space:], strict=True))
        padded = np.pad(images, [(0, 0), (0, 0), *ends], constant_values=fill)
        spans = [d * (k - 1) + 1 for d, k in zip(self.dilations, kernel, strict=True)]
        views = sliding_window_view(padded, spans, tuple(range(2, space + 2)))
        steps = [slice(None, None, s) for s in self.strides]
        inner = [slice(None, None, d) for d in self.dilations]
        index = (slice(None), slice(None), *steps, *inner)
        return views[index]


def pool_window(given: dict[str, Any], kernel: Sequence[int], image: Sequence[int]) -> Window:
    """The window of a pooling node; refuses SAME padding where onnxruntime deviates from ONNX."""
    window = window_of(given, kernel, image)
    steps = zip(image, kernel, window.strides, window.dilations, strict=True)
    if given.get("auto_pad", b"NOTSET").startswith(b"SAME") and any(
        d > 1 or (n - 1) % s >= k for n, k, s, d in steps
    ):
        raise UnsupportedError(
            "it is padded as SAME, but its windows are dilated or have gaps between them"
        )
    return window


def window_of(given: dict[str, Any], kernel: Sequence[int], image: Sequence[int]) -> Window:
    """The window that a node's attributes describe."""
    space = len(kernel)
    strides = list(given.get("strides", [1] * space))
    dilations = list(given.get("dilations", [1] * space))
    pads = list(given.get("pads", [0] * 2 * space))
    automatic = given.get("auto_pad", b"NOTSET")
    if automatic in (b"SAME_UPPER", b"SAME_LOWER"):
        # ceil(size / stride) places, with the padding divided evenly between both sides.
        missing = [
            max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
            for n, s, d, k in zip(image, strides, dilations, kernel, strict=True)
        ]
        half, rest = [m // 2 for m in missing], [m - m // 2 for m in missing]
        pads = half + rest if automatic == b"SAME_UPPER" else rest + half
    elif automatic == b"VALID":
        pads = [0] * 2 * space
    elif automatic != b"NOTSET":
        raise UnsupportedError(f"padding by the rule {automatic!r}")
    return Window(strides, dilations, pads, given.get("group", 1))
