"""Operators that sum or multiply over axes: Einsum, CumSum, norms, products, logs of sums."""

from __future__ import annotations

from math import prod

import numpy as np

from fgp_vnn.network.onnx.graph import Array
from fgp_vnn.network.onnx.groups import reduction_groups
from fgp_vnn.network.onnx.writer import MOST, Writer


def log_sum(w: Writer) -> str:
    """log sum x, or m + log sum exp(x - m) with the mean m, which is affine."""
    x, axes = w.operands[0], w.axes
    if w.node.op_type == "ReduceLogSum":
        return w.in_shape(w.curve("Log", w.reduced("ReduceSum", x, axes)))
    mean = w.reduced("ReduceMean", x, axes)
    terms = w.curve("Exp", w.binary("Sub", x, mean))
    return w.in_shape(w.add(w.curve("Log", w.reduced("ReduceSum", terms, axes)), mean))


def norm(w: Writer) -> str:
    """The sum of absolute values, the sum of squares, or its square root."""
    terms = w.curve("Abs" if w.node.op_type == "ReduceL1" else "Square", w.operands[0])
    found = w.reduced("ReduceSum", terms, w.axes)
    return w.in_shape(w.curve("Sqrt", found) if w.node.op_type == "ReduceL2" else found)


def reduced_product(w: Writer) -> str:
    """The product of the entries along some axes, multiplied in pairs."""
    current, groups = w.flat(w.operands[0]), reduction_groups(w)
    width = groups.shape[1]
    while len(groups) > 1:
        half = len(groups) // 2
        pairs = w.products(current, current, groups[:half], groups[half : 2 * half])
        made, over = w.flat(pairs), groups[2 * half :]
        numbers = np.arange(half * width).reshape(half, -1)
        if len(over):
            rest = w.taken(current, over[0], (width,))
            made = w.put("Concat", made, rest, shape=(numbers.size + over.size,), axis=0)
            numbers = np.concatenate([numbers, numbers.size + np.arange(over.size)[None]])
        current, groups = made, numbers
    return w.in_shape(w.taken(current, groups[0], (width,)))


def running_sum(w: Writer) -> str:
    """CumSum as a product with a triangular matrix of ones."""
    x, axis = w.operands
    if w.varies(axis):
        raise w.refused("has an axis that is not constant")
    shape = w.shape(x)
    along = int(w.constant(1).reshape(-1)[0]) % len(shape)
    before, size, behind = prod(shape[:along]), shape[along], prod(shape[along + 1 :])
    ones = np.tril(np.ones((size, size)), -1 if w.given.get("exclusive") else 0)
    matrix = ones.T if w.given.get("reverse") else ones
    flat = w.reshape(x, (before, size, behind))
    return w.reshape(w.put("MatMul", matrix, flat, shape=(before, size, behind)), shape)


def einsum(w: Writer) -> str:
    """All products of entries of one or two operands, then sums over axes the result lacks."""
    terms, result = _letters(w)
    sizes = {
        letter: size
        for term, name in zip(terms, w.operands, strict=True)
        for letter, size in zip(term, w.shape(name), strict=True)
        if size > 1 or letter not in "".join(terms).replace(letter, "", 1)
    }
    order = [*result, *sorted({*"".join(terms)} - {*result})]
    space = tuple(sizes.get(letter, 1) for letter in order)
    if prod(space) > MOST:
        raise w.refused(f"has {prod(space)} products")
    named = zip(terms, w.operands, strict=True)
    found = _multiplied(w, [_places(w, name, term, order, space) for term, name in named])
    summed = list(range(len(result), len(order)))
    return w.in_shape(w.reduced("ReduceSum", found, summed) if summed else found)


def _letters(w: Writer) -> tuple[list[str], str]:
    """The letters of the operands' axes, and those of the result's axes."""
    equation = w.given["equation"].decode()
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if "." in equation or len(terms) > 2 or len(terms) != len(w.operands):
        raise w.refused(f"with {equation!r} is not supported")
    if not arrow:
        result = "".join(sorted(c for c in {*left} - {","} if left.count(c) == 1))
    return terms, result


def _places(w: Writer, name: str, term: str, order: list[str], space: tuple[int, ...]) -> Array:
    """The flat index of an operand's entry for each combination of indices of all letters."""
    grid = dict(zip(order, np.indices(space, sparse=True), strict=True))
    shape = w.shape(name)
    places = [grid[c] if size > 1 else 0 for c, size in zip(term, shape, strict=True)]
    flat = np.ravel_multi_index(np.broadcast_arrays(*places), shape)
    return np.array(np.broadcast_to(flat, space))  # torch needs a copy


def _multiplied(w: Writer, taken: list[Array]) -> str:
    """The products of the operands' entries at these places."""
    moving = [i for i, name in enumerate(w.operands) if w.varies(name)]
    if len(moving) == 2:
        first, second = w.operands
        return w.products(first, second, *taken)
    (one,) = moving
    places = taken[one].reshape(-1)
    found = w.reshape(w.taken(w.flat(w.operands[one]), places, places.shape), taken[one].shape)
    if len(taken) == 1:
        return found
    return w.binary("Mul", found, w.constant(1 - one).reshape(-1)[taken[1 - one]])
