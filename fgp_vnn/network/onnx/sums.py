"""Sums over axes that other operators are made of: Einsum, CumSum, products, logarithms of sums."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.clean import axes_of
from fgp_vnn.network.onnx.graph import Array, label
from fgp_vnn.network.onnx.groups import reduction_groups
from fgp_vnn.network.onnx.writer import MOST, Writer


def log_sum(w: Writer, node: NodeProto, given: dict[str, Any]) -> str:
    """log sum x, or m + log sum exp(x - m) with the mean m, which is affine."""
    x, axes = node.input[0], axes_of(w.graph, node, given)
    mean = None
    if node.op_type == "ReduceLogSumExp":
        mean = w.mean(x, axes)
        x = w.curve("Exp", w.add(x, mean, "Sub"))
    found = w.curve("Log", w.mean(x, axes, "ReduceSum"))
    found = found if mean is None else w.add(found, mean)
    return w.reshape(found, w.graph.shape(node.output[0]))


def norm(w: Writer, node: NodeProto, given: dict[str, Any]) -> str:
    """The sum of absolute values, that of squares, or the root of it."""
    terms = w.curve("Abs" if node.op_type == "ReduceL1" else "Square", node.input[0])
    found = w.mean(terms, axes_of(w.graph, node, given), "ReduceSum")
    found = w.curve("Sqrt", found) if node.op_type == "ReduceL2" else found
    return w.reshape(found, w.graph.shape(node.output[0]))


def reduced_product(w: Writer, node: NodeProto, given: dict[str, Any]) -> str:
    """The product of the entries along some axes, in pairs."""
    x, groups = node.input[0], reduction_groups(w.graph, node, given)
    current = w.reshape(x, (prod(w.shape(x)),))
    while len(groups) > 1:
        half = len(groups) // 2
        pairs = w.products(current, current, groups[:half], groups[half : 2 * half])
        made, over = w.reshape(pairs, (half * groups.shape[1],)), groups[2 * half :]
        numbers = np.arange(half * groups.shape[1]).reshape(half, -1)
        if len(over):
            rest = w.put("Gather", current, over[0], shape=(groups.shape[1],), axis=0)
            made = w.put("Concat", made, rest, shape=(numbers.size + over.size,), axis=0)
            numbers = np.concatenate([numbers, numbers.size + np.arange(over.size)[None]])
        current, groups = made, numbers
    taken = w.put("Gather", current, groups[0], shape=(groups.shape[1],), axis=0)
    return w.reshape(taken, w.graph.shape(node.output[0]))


def running_sum(w: Writer, node: NodeProto, given: dict[str, Any]) -> str:
    """A product with a triangle of ones."""
    x, axis = node.input
    if axis not in w.graph.constants:
        raise UnsupportedError(f"{label(node)} has an axis that is not constant")
    shape = w.shape(x)
    along = int(w.graph.constants[axis].reshape(-1)[0]) % len(shape)
    before, size, behind = prod(shape[:along]), shape[along], prod(shape[along + 1 :])
    ones = np.tril(np.ones((size, size)), -1 if given.get("exclusive") else 0)
    matrix = ones.T if given.get("reverse") else ones
    flat = w.reshape(x, (before, size, behind))
    return w.reshape(w.put("MatMul", matrix, flat, shape=(before, size, behind)), shape)


def einsum(w: Writer, node: NodeProto, given: dict[str, Any]) -> str:
    """All products of entries of one or two operands, then sums over what the result lacks."""
    terms, result = _letters(node, given["equation"].decode())
    sizes = {
        letter: size
        for term, name in zip(terms, node.input, strict=True)
        for letter, size in zip(term, w.shape(name), strict=True)
        if size > 1 or letter not in "".join(terms).replace(letter, "", 1)
    }
    order = [*result, *sorted({*"".join(terms)} - {*result})]
    space = tuple(sizes.get(letter, 1) for letter in order)
    if prod(space) > MOST:
        raise UnsupportedError(f"{label(node)} has {prod(space)} products")
    taken = [
        _places(w, name, term, order, space) for term, name in zip(terms, node.input, strict=True)
    ]
    found = _multiplied(w, list(node.input), taken, space)
    summed = list(range(len(result), len(order)))
    if summed:
        found = w.mean(found, summed, "ReduceSum")
    return w.reshape(found, w.graph.shape(node.output[0]))


def _letters(node: NodeProto, equation: str) -> tuple[list[str], str]:
    """The axes of the operands and of the result, each by a letter."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if "." in equation or len(terms) > 2 or len(terms) != len(node.input):
        raise UnsupportedError(f"{label(node)} with {equation!r} is not supported")
    if not arrow:
        result = "".join(sorted(c for c in {*left} - {","} if left.count(c) == 1))
    return terms, result


def _places(w: Writer, name: str, term: str, order: list[str], space: tuple[int, ...]) -> Array:
    """The flat index of an operand's entry at each place of the space of all letters."""
    grid = dict(zip(order, np.indices(space, sparse=True), strict=True))
    shape = w.shape(name)
    places = [grid[c] if size > 1 else 0 for c, size in zip(term, shape, strict=True)]
    flat = np.ravel_multi_index(np.broadcast_arrays(*places), shape)
    return np.array(np.broadcast_to(flat, space))  # torch reads no shared memory


def _multiplied(w: Writer, names: list[str], taken: list[Array], space: tuple[int, ...]) -> str:
    constant = [w.graph.constants.get(name) for name in names]
    if len(names) == 2 and constant[0] is None and constant[1] is None:
        return w.products(names[0], names[1], taken[0], taken[1])
    moving = next(i for i, array in enumerate(constant) if array is None)
    flat = w.reshape(names[moving], (prod(w.shape(names[moving])),))
    found = w.put("Gather", flat, taken[moving].reshape(-1), shape=(prod(space),), axis=0)
    found = w.reshape(found, space)
    other = constant[1 - moving] if len(names) == 2 else None
    return found if other is None else w.add(found, other.reshape(-1)[taken[1 - moving]], "Mul")
