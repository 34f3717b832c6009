"""Rules that apply ONNX operators to affine forms: one short function each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

import numpy as np

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.certificate.checker.activations import absolute, clipped, leaky_relu, prelu, products
from fgp_vnn.certificate.checker.call import Call
from fgp_vnn.certificate.checker.forms import (
    Constant,
    Form,
    as_form,
    by_matrix,
    joined,
    linear,
    plus,
    taken,
    times,
    wide,
)
from fgp_vnn.certificate.checker.maxima import global_max_pool, max_pool
from fgp_vnn.certificate.checker.windows import average_pool, conv


def _matmul(call: Call) -> Form:
    left, right = call.inputs
    if isinstance(left, Form):
        return _right_product(left, call.constant(1))
    matrix = call.constant(0)
    if matrix is None or not isinstance(right, Form) or matrix.ndim != 2 or len(right.shape) < 2:
        raise UnsupportedError("one factor of the product is not a matrix")
    return times(right, matrix, lambda block, m: m @ block, matrix.shape[-1] + 1)


def _right_product(form: Form, matrix: Constant | None) -> Form:
    if matrix is None or matrix.ndim != 2:
        raise UnsupportedError("one factor of the product is not a matrix")

    return times(form, matrix, by_matrix, len(matrix) + 1)


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
    if isinstance(left, Form) and isinstance(right, Form):
        return products(call, left, right)
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
    if wanted is None:
        raise UnsupportedError("a shape that is not a constant")
    if call.attributes.get("allowzero", 0) and 0 in wanted:
        raise UnsupportedError("a shape with a size of 0")
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
    return joined(forms, call.attributes["axis"] % len(forms[0].shape))


def _slice(call: Call) -> Form:
    form = call.form()
    starts, ends = call.ints("starts", 1), call.ints("ends", 2)
    if starts is None or ends is None:
        raise UnsupportedError("a slice without its limits")
    axes = call.ints("axes", 3) or list(range(len(starts)))
    steps = call.ints("steps", 4) or [1] * len(starts)
    index = [slice(None)] * (len(form.shape) + 1)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        index[axis % len(form.shape) + 1] = slice(start, end, step)
    return linear(form, lambda block, _: block[tuple(index)])


def _split(call: Call) -> list[Form]:
    form, axis = call.form(), call.attributes.get("axis", 0) % len(call.form().shape)
    size = form.shape[axis]
    each = -(-size // call.outputs)
    even = [min(each, size - each * i) for i in range(call.outputs)]
    sizes = call.ints("split", 1) or even
    if len(sizes) != call.outputs or sum(sizes) != size or min(sizes) < 0:
        raise UnsupportedError("the sizes of its parts do not add up to the size of the axis")
    parts = np.split(np.arange(size), np.cumsum(sizes)[:-1])
    return [taken(form, part, axis) for part in parts]


def _gather(call: Call) -> Form:
    form, index = call.form(), call.constant(1)
    if index is None or index.dtype.kind != "i":
        raise UnsupportedError("indices that are not constant")
    return taken(form, index, call.attributes.get("axis", 0) % len(form.shape))


def _reduce_mean(call: Call) -> Form:
    total, count = _reduced(call)
    return total if count == 1 else times(total, np.asarray(float(count)), np.divide, 1)


def _reduced(call: Call) -> tuple[Form, int]:
    """The sums over some axes, and the number of entries in each sum."""
    form, axes = call.form(), call.ints("axes", 1)
    if not axes and call.attributes.get("noop_with_empty_axes", 0):
        return form, 1
    return _summed(form, axes or range(len(form.shape)), call.attributes.get("keepdims", 1))


def _summed(form: Form, axes: Sequence[int], keep: int) -> tuple[Form, int]:
    inner = tuple(axis % len(form.shape) + 1 for axis in axes)
    count = prod(form.shape[axis - 1] for axis in inner)
    return linear(form, lambda block, _: block.sum(inner, keepdims=bool(keep)), count), count


def _global_average_pool(call: Call) -> Form:
    total, count = _summed(call.form(), range(2, len(call.form().shape)), 1)
    return times(total, np.asarray(float(count)), np.divide, 1)


def _sum(call: Call) -> Form:
    return reduce(plus, map(as_form, call.inputs))


def _batch_normalization(call: Call) -> Form:
    if call.attributes.get("training_mode", 0) or not call.attributes.get("spatial", 1):
        raise UnsupportedError("it normalises as in training, or each number by itself")
    form = call.form()
    constants = [call.constant(i) for i in range(1, 5)]
    if any(value is None for value in constants):
        raise UnsupportedError("its constants are missing")
    along = (1, -1, *(1,) * (len(form.shape) - 2))
    scale, offset, mean, variance = (np.reshape(np.asarray(c, float), along) for c in constants)
    scale = scale / np.sqrt(variance + call.attributes.get("epsilon", 1e-5))
    if not np.isfinite(scale).all():
        raise UnsupportedError("it divides by a variance that is not positive")
    centred = plus(form, as_form(mean), -1.0)
    # The scale itself has three roundings.
    return plus(times(centred, scale, np.multiply, 5), as_form(offset))


def _dropout(call: Call) -> Form:
    training = call.constant(2)
    if training is not None and bool(np.any(training)):
        raise UnsupportedError("dropout as in training")
    return call.form()


# The function that applies an operator, and the attributes that it supports.
Rule = tuple[Callable[[Call], Form | list[Form]], frozenset[str]]


def _rule(result: Callable[[Call], Form | list[Form]], *attributes: str) -> Rule:
    return result, frozenset(attributes)


_MOVED = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")
_REDUCED = ("axes", "keepdims", "noop_with_empty_axes")
RULES: dict[str, Rule] = {
    "Abs": _rule(absolute),
    "Add": _rule(lambda call: plus(as_form(call.inputs[0]), as_form(call.inputs[1]))),
    "AveragePool": _rule(average_pool, *_MOVED, "ceil_mode", "count_include_pad"),
    "BatchNormalization": _rule(
        _batch_normalization, "epsilon", "momentum", "spatial", "training_mode"
    ),
    "Clip": _rule(clipped, "max", "min"),
    "Concat": _rule(_concat, "axis"),
    "Conv": _rule(conv, *_MOVED, "group"),
    "Div": _rule(_divide),
    "Dropout": _rule(_dropout, "ratio", "seed"),
    "Flatten": _rule(_flatten, "axis"),
    "Gather": _rule(_gather, "axis"),
    "Gemm": _rule(_gemm, "alpha", "beta", "transA", "transB"),
    "GlobalAveragePool": _rule(_global_average_pool),
    "GlobalMaxPool": _rule(global_max_pool),
    "Identity": _rule(lambda call: call.form()),
    "LeakyRelu": _rule(leaky_relu, "alpha"),
    "MatMul": _rule(_matmul),
    "MaxPool": _rule(max_pool, *_MOVED, "ceil_mode", "storage_order"),
    "Mul": _rule(_multiply),
    "Neg": _rule(lambda call: _scaled(call.form(), -1.0)),
    "PRelu": _rule(prelu),
    "ReduceMean": _rule(_reduce_mean, *_REDUCED),
    "ReduceSum": _rule(lambda call: _reduced(call)[0], *_REDUCED),
    "Relu": _rule(lambda call: call.relu(call.form())),
    "Reshape": _rule(_reshape, "allowzero", "shape"),
    "Sigmoid": _rule(lambda call: call.layer(call.form(), "Sigmoid", call.form().shape)),
    "Slice": _rule(_slice, "axes", "ends", "starts"),
    "Split": _rule(_split, "axis", "num_outputs", "split"),
    "Squeeze": _rule(_squeeze, "axes"),
    "Sub": _rule(lambda call: plus(as_form(call.inputs[0]), as_form(call.inputs[1]), -1.0)),
    "Sum": _rule(_sum),
    "Tanh": _rule(lambda call: call.layer(call.form(), "Tanh", call.form().shape)),
    "Transpose": _rule(_transpose, "perm"),
    "Unsqueeze": _rule(_unsqueeze, "axes"),
}
