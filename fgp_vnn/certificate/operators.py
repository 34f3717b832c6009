"""ONNX operators on affine forms: one short rule each, for what an affine map can be made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fgp_vnn.certificate.forms import (
    Array,
    Blocks,
    Constant,
    Form,
    as_form,
    linear,
    plus,
    times,
    wide,
)
from fgp_vnn.errors import UnsupportedError


@dataclass(frozen=True, eq=False)
class Call:
    """A node on its way through: what it reads, and its attributes."""

    inputs: list[Form | Constant | None]
    attributes: dict[str, Any]

    def form(self, index: int = 0) -> Form:
        value = self.inputs[index]
        if not isinstance(value, Form):
            raise UnsupportedError("it reads a constant where it should read the network's input")
        return value

    def constant(self, index: int) -> Constant | None:
        value = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(value, Form):
            raise UnsupportedError("a product of two tensors that depend on the input")
        return value

    def ints(self, name: str, index: int) -> list[int] | None:
        """Whole numbers that older files hold as an attribute and newer ones as an input."""
        value = self.attributes.get(name, self.constant(index))
        return None if value is None else [int(v) for v in np.ravel(np.asarray(value))]


def _matmul(call: Call) -> Form:
    left, right = call.inputs
    if isinstance(left, Form):
        return _right_product(left, call.constant(1))
    matrix = call.constant(0)
    if matrix is None or not isinstance(right, Form) or matrix.ndim != 2 or len(right.shape) < 2:
        raise UnsupportedError("a product with what is not a matrix")
    return times(right, matrix, lambda block, m: m @ block, matrix.shape[-1] + 1)


def _right_product(form: Form, matrix: Constant | None) -> Form:
    if matrix is None or matrix.ndim != 2:
        raise UnsupportedError("a product with what is not a matrix")

    def product(block: Array, right: Array) -> Array:
        rows = block.reshape(-1, block.shape[-1]) @ right
        return rows.reshape(*block.shape[:-1], right.shape[1])

    return times(form, matrix, product, len(matrix) + 1)


def _gemm(call: Call) -> Form:
    given = call.attributes
    matrix = call.constant(1)
    if given.get("transA", 0) or matrix is None:
        raise UnsupportedError("a product with the input transposed")
    matrix = np.asarray(matrix, dtype=np.float64)
    result = _right_product(call.form(), matrix.T if given.get("transB", 0) else matrix)
    result = _scaled(result, given.get("alpha", 1.0))
    if len(call.inputs) > 2 and call.inputs[2] is not None:
        result = plus(result, _scaled(as_form(call.inputs[2]), given.get("beta", 1.0)))
    return result


def _scaled(form: Form, factor: float) -> Form:
    return form if factor == 1 else times(form, np.asarray(factor), np.multiply, 1)


def _multiply(call: Call) -> Form:
    left, right = call.inputs
    form, factor = (left, right) if isinstance(left, Form) else (right, left)
    if not isinstance(form, Form) or isinstance(factor, Form) or factor is None:
        raise UnsupportedError("a product of two tensors that depend on the input")
    return times(form, factor, lambda block, by: wide(block, by.shape) * by, 1)


def _divide(call: Call) -> Form:
    factor = call.constant(1)
    if factor is None or not np.all(factor):
        raise UnsupportedError("a division by zero")
    return times(call.form(), factor, lambda block, by: wide(block, by.shape) / by, 1)


def _reshaped(form: Form, shape: Sequence[int]) -> Form:
    return linear(form, lambda block, _: block.reshape(len(block), *shape))


def _reshape(call: Call) -> Form:
    wanted = call.ints("shape", 1)
    if wanted is None or call.attributes.get("allowzero", 0):
        raise UnsupportedError("a shape that is not a constant")
    form = call.form()
    return _reshaped(form, [form.shape[i] if size == 0 else size for i, size in enumerate(wanted)])


def _flatten(call: Call) -> Form:
    shape = call.form().shape
    axis = call.attributes.get("axis", 1)
    return _reshaped(call.form(), (prod(shape[:axis]), prod(shape[axis:])))


def _squeeze(call: Call) -> Form:
    shape, axes = call.form().shape, call.ints("axes", 1)
    gone = (
        {i for i, n in enumerate(shape) if n == 1}
        if axes is None
        else {axis % len(shape) for axis in axes}
    )
    if any(shape[i] != 1 for i in gone):
        raise UnsupportedError("a dimension that is not 1")
    return _reshaped(call.form(), [n for i, n in enumerate(shape) if i not in gone])


def _unsqueeze(call: Call) -> Form:
    form, axes = call.form(), call.ints("axes", 1) or []
    return _reshaped(form, np.expand_dims(np.empty(form.shape), tuple(axes)).shape)


def _transpose(call: Call) -> Form:
    form = call.form()
    order = call.attributes.get("perm", range(len(form.shape))[::-1])
    axes = (0, *(int(axis) + 1 for axis in order))
    return linear(form, lambda block, _: np.transpose(block, axes))


def _concat(call: Call) -> Form:
    forms = [as_form(value) for value in call.inputs]
    axis = call.attributes["axis"] % len(forms[0].shape)

    def join(parts: list[Blocks]) -> Blocks:
        names = sorted({s for part in parts for s in part})
        result = {}
        for s in names:
            count = next(len(part[s]) for part in parts if s in part)
            shapes = [next(iter(part.values())).shape[1:] for part in parts]
            filled = [p.get(s, np.zeros((count, *n))) for p, n in zip(parts, shapes, strict=True)]
            result[s] = np.concatenate(filled, axis + 1)
        return result

    blocks, sizes = join([form.blocks for form in forms]), join([form.sizes for form in forms])
    return Form(blocks, sizes, max(form.steps for form in forms))


def _slice(call: Call) -> Form:
    form = call.form()
    starts, ends = call.ints("starts", 1), call.ints("ends", 2)
    if starts is None or ends is None:
        raise UnsupportedError("a slice without its limits")
    axes = call.ints("axes", 3) or list(range(len(starts)))
    steps = call.ints("steps", 4) or [1] * len(starts)
    if any(step < 1 for step in steps):
        raise UnsupportedError("a slice that goes backwards")
    index = [slice(None)] * (len(form.shape) + 1)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        index[axis % len(form.shape) + 1] = slice(start, end, step)
    return linear(form, lambda block, _: block[tuple(index)])


def _conv(call: Call) -> Form:
    given, form, kernel = call.attributes, call.form(), call.constant(1)
    if kernel is None or given.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise UnsupportedError("padding that the file does not spell out")
    space = kernel.ndim - 2
    window = _Window(
        list(given.get("strides", [1] * space)),
        list(given.get("dilations", [1] * space)),
        list(given.get("pads", [0] * 2 * space)),
        given.get("group", 1),
    )
    terms = prod(kernel.shape[1:])
    result = times(form, kernel, window.convolve, terms + 1)
    bias = call.constant(2)
    if bias is None:
        return result
    return plus(result, as_form(np.reshape(bias, (1, -1, *(1,) * space))))


@dataclass(frozen=True)
class _Window:
    """How a kernel is moved over an image."""

    strides: list[int]
    dilations: list[int]
    pads: list[int]
    groups: int

    def convolve(self, block: Array, kernel: Array) -> Array:
        """The images [n, 1, channels, *space] under kernels [out, channels / groups, *window]."""
        space, outputs = kernel.ndim - 2, len(kernel)
        channels = self.groups * kernel.shape[1]
        if block.ndim != space + 3 or block.shape[1:3] != (1, channels) or outputs % self.groups:
            raise UnsupportedError("a convolution of this shape")
        ends = list(zip(self.pads[:space], self.pads[space:], strict=True))
        images = np.pad(block[:, 0], [(0, 0), (0, 0), *ends])
        spans = [d * (k - 1) + 1 for d, k in zip(self.dilations, kernel.shape[2:], strict=True)]
        patches = sliding_window_view(images, spans, tuple(range(2, space + 2)))
        steps = [slice(None, None, s) for s in self.strides]
        inner = [slice(None, None, d) for d in self.dilations]
        everything = [slice(None), slice(None)]
        patches = patches[tuple(everything + steps + inner)]
        results = []
        for group in range(self.groups):
            read = slice(group * kernel.shape[1], (group + 1) * kernel.shape[1])
            part = kernel[group * outputs // self.groups : (group + 1) * outputs // self.groups]
            axes = [1, *range(space + 2, 2 * space + 2)]
            moved = np.tensordot(patches[:, read], part, (axes, [1, *range(2, space + 2)]))
            results.append(np.moveaxis(moved, -1, 1))
        return np.concatenate(results, 1)[:, None]


def _batch_normalization(call: Call) -> Form:
    if call.attributes.get("training_mode", 0) or not call.attributes.get("spatial", 1):
        raise UnsupportedError("normalisation as in training, or of each number apart")
    form = call.form()
    constants = [call.constant(i) for i in range(1, 5)]
    if any(value is None for value in constants):
        raise UnsupportedError("normalisation without its constants")
    along = (1, -1, *(1,) * (len(form.shape) - 2))
    scale, offset, mean, variance = (np.reshape(np.asarray(c, float), along) for c in constants)
    scale = scale / np.sqrt(variance + call.attributes.get("epsilon", 1e-5))
    if not np.isfinite(scale).all():
        raise UnsupportedError("normalisation by a variance that is not positive")
    centred = plus(form, as_form(mean), -1.0)
    # The scale itself is the result of three roundings.
    return plus(times(centred, scale, np.multiply, 5), as_form(offset))


def _same(call: Call) -> Form:
    return call.form()


def _dropout(call: Call) -> Form:
    training = call.constant(2)
    if training is not None and bool(np.any(training)):
        raise UnsupportedError("dropout as in training")
    return call.form()


RULES: dict[str, Callable[[Call], Form]] = {
    "Add": lambda call: plus(as_form(call.inputs[0]), as_form(call.inputs[1])),
    "BatchNormalization": _batch_normalization,
    "Concat": _concat,
    "Conv": _conv,
    "Div": _divide,
    "Dropout": _dropout,
    "Flatten": _flatten,
    "Gemm": _gemm,
    "Identity": _same,
    "MatMul": _matmul,
    "Mul": _multiply,
    "Neg": lambda call: _scaled(call.form(), -1.0),
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": lambda call: plus(as_form(call.inputs[0]), as_form(call.inputs[1]), -1.0),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}

# What each rule takes into account; a node with any other attribute is refused.
ATTRIBUTES: dict[str, set[str]] = {
    "BatchNormalization": {"epsilon", "momentum", "spatial", "training_mode"},
    "Concat": {"axis"},
    "Conv": {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"},
    "Dropout": {"ratio", "seed"},
    "Flatten": {"axis"},
    "Gemm": {"alpha", "beta", "transA", "transB"},
    "Reshape": {"allowzero", "shape"},
    "Slice": {"axes", "ends", "starts"},
    "Squeeze": {"axes"},
    "Transpose": {"perm"},
    "Unsqueeze": {"axes"},
}
