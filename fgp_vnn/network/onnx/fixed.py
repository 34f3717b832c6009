"""Replace operands that have to be constant by their values at fixed inputs.

A product of two values that depend on the input is not piecewise linear, but a product with a mask
that a property fixes is. Only operands that need it are replaced, and only by values that are
computed from the fixed inputs without rounding: moved entries, and sums and products of small
integers. So the new graph computes the same real function on inputs with these values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.graph import Array, Graph, attributes, axes_of, label

_WHOLE = 1 << 20  # bound on integers and their sums and products: exact in float32 as well
# Operands of which one has to be constant, in order of preference.
_WANTED: Mapping[str, tuple[int, ...]] = {
    "Div": (1,),
    "Gemm": (1, 0),
    "MatMul": (1, 0),
    "Mul": (1, 0),
}
_EXACT: Mapping[str, Callable[..., Array]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Relu": lambda x: np.maximum(x, 0.0),
    "Sub": np.subtract,
}


class _Known(NamedTuple):
    """The known values of a tensor, and the fixed inputs that they depend on."""

    values: Array  # NaN where they are not known
    inputs: Array  # the numbers of the inputs that the values come from
    each: bool  # whether `inputs` has one number for each entry

    @property
    def whole(self) -> bool:
        """Whether all values are known."""
        return not np.isnan(self.values).any()

    def moved(self, how: Callable[[Array], Array]) -> _Known:
        """The same after `how` has moved the entries."""
        inputs = how(self.inputs) if self.each else self.inputs
        return _Known(how(self.values), inputs, self.each)


def bind_fixed(graph: Graph, fixed: Array) -> dict[int, float]:
    """Replace operands that have to be constant by their values at fixed inputs, in place.

    `fixed` [inputs] are the values of these inputs, NaN for an input that varies. Returns the
    inputs that were used, with their values.
    """
    if fixed.size != prod(graph.input_shape):
        return {}
    numbers = np.arange(fixed.size).reshape(graph.input_shape)
    known = {graph.input: _Known(fixed.reshape(graph.input_shape), numbers, True)}
    used: dict[int, float] = {}
    for node in graph.nodes:
        for operand in _WANTED.get(node.op_type, ()):
            found = known.get(node.input[operand])
            others = [name for i, name in enumerate(node.input) if i != operand]
            if found is None or not found.whole or set(others) <= graph.constants.keys():
                continue
            if node.op_type == "Div" and not found.values.all():
                raise UnsupportedError(f"{label(node)} divides by an input that is fixed at 0")
            node.input[operand] = graph.constant(found.values, "fixed")
            used |= {int(i): float(fixed[i]) for i in np.unique(found.inputs)}
            break
        result = _known(graph, node, known)
        if result is not None:
            known[node.output[0]] = result
    if used:
        graph.prune()
    return used


def _known(graph: Graph, node: NodeProto, known: Mapping[str, _Known]) -> _Known | None:
    """The known values of a node's result; None if nothing is known."""
    given = attributes(node)
    first = known.get(node.input[0]) if node.input else None
    how = _movement(graph, node, given)
    if first is not None and how is not None:
        return first.moved(how)
    operands = []
    for name in node.input:
        constant = graph.constants.get(name)
        found = known.get(name) if constant is None else _Known(constant, np.zeros(0, int), False)
        if found is None or not found.whole or not _small(found.values):
            return None
        operands.append(found)
    if node.op_type == "ReduceSum" and operands:
        axes, keep = tuple(axes_of(graph, node)), bool(given.get("keepdims", 1))
        values = operands[0].values.sum(axis=axes, keepdims=keep)
    elif node.op_type in _EXACT:
        values = _EXACT[node.op_type](*(part.values for part in operands))
    else:
        return None
    inputs = np.concatenate([part.inputs.reshape(-1) for part in operands])
    return _Known(np.asarray(values), np.unique(inputs), False) if _small(values) else None


def _small(values: Array) -> bool:
    """Whether all values are small integers."""
    return bool(((values == np.rint(values)) & (np.abs(values) <= _WHOLE)).all())


def _movement(
    graph: Graph, node: NodeProto, given: dict[str, Any]
) -> Callable[[Array], Array] | None:
    """The function that moves the entries of a node's first operand; None if it does more."""
    if node.op_type == "Identity":
        return lambda array: array
    if node.op_type == "Transpose":
        return lambda array: np.transpose(array, given.get("perm"))
    if node.op_type in ("Reshape", "Gather") and node.input[1] in graph.constants:
        operand = graph.constants[node.input[1]]
        if node.op_type == "Reshape":
            return lambda array: array.reshape(operand.tolist())
        return lambda array: np.take(array, operand, axis=given.get("axis", 0))
    return None
