"""Which operands of an operator it is affine in, and which constant operands are offsets.

The normal form needs only these two facts about an operator, and no rule for bounding it: which
operands may depend on the input, and which constant operands are only added, so that zeros in their
place leave the linear part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.graph import Graph, label, not_supported
from fgp_vnn.network.onnx.smooth import SMOOTH

_EVERY = frozenset(range(1 << 10))


@dataclass(frozen=True)
class _Rule:
    """The operands that may depend on the input, and those that are offsets if constant."""

    varying: frozenset[int] = frozenset({0})
    offsets: frozenset[int] = frozenset()
    factors: frozenset[int] = frozenset()  # constants that values are multiplied or padded with
    product: bool = False  # operands 0 and 1 are multiplied: only one of them may vary


_MOVE = _Rule()  # rearranges, repeats or sums entries of its first operand
_SUM = _Rule(varying=_EVERY, offsets=_EVERY)
_CONVOLUTION = _Rule(offsets=frozenset({2}), factors=frozenset({1}))

AFFINE: dict[str, _Rule] = {
    "Add": _SUM,
    "AveragePool": _MOVE,
    "BatchNormalization": _Rule(offsets=frozenset({2, 3}), factors=frozenset({1})),
    "Concat": _SUM,
    "Conv": _CONVOLUTION,
    "ConvTranspose": _CONVOLUTION,
    "Div": _Rule(factors=frozenset({1})),
    "Gather": _MOVE,
    "Gemm": _Rule(varying=frozenset({0, 1, 2}), offsets=frozenset({2}), product=True),
    "GlobalAveragePool": _MOVE,
    "Identity": _MOVE,
    "MatMul": _Rule(varying=frozenset({0, 1}), product=True),
    "Mul": _Rule(varying=frozenset({0, 1}), product=True),
    "Neg": _MOVE,
    "Pad": _Rule(factors=frozenset({2})),
    "ReduceMean": _MOVE,
    "ReduceSum": _MOVE,
    "Reshape": _MOVE,
    "Resize": _MOVE,
    "Sub": _SUM,
    "Transpose": _MOVE,
    "Where": _Rule(varying=frozenset({1, 2}), offsets=frozenset({1, 2})),
}


def check_affine(graph: Graph) -> None:
    """Refuse a graph in which anything but an activation is not affine in the input."""
    variables = graph.variables()
    if graph.output not in variables:
        raise UnsupportedError("the output does not depend on the input")
    for node in graph.nodes:
        varying = {i for i, name in enumerate(node.input) if name in variables}
        if not varying and node.op_type in SMOOTH:  # its stand-in has other values
            raise UnsupportedError(f"{label(node)} reads constants only, which is not supported")
        if not varying or node.op_type == "Relu" or (node.op_type in SMOOTH and varying == {0}):
            continue
        rule = AFFINE.get(node.op_type)
        if rule is None:
            raise UnsupportedError(not_supported(node))
        if rule.product and {0, 1} <= varying:
            raise UnsupportedError(
                f"{label(node)} multiplies two values that both depend on the input, in a way that "
                "is not supported"
            )
        if rule.product and not {0, 1} & varying:
            raise UnsupportedError(f"{label(node)} multiplies constants, which is not supported")
        if not varying <= rule.varying:
            raise UnsupportedError(
                f"{label(node)} is supported only where nothing but its data depends on the input "
                f"(operand {min(varying - rule.varying)} does)"
            )


def linear_part(graph: Graph) -> Graph:
    """A copy of the graph with every offset set to 0, so that affine operators become linear."""
    variables = graph.variables()

    def edit(result: Graph, node: NodeProto, rule: _Rule) -> None:
        for i, name in enumerate(node.input):
            if i in rule.offsets and name and name not in variables:
                node.input[i] = result.constant(np.zeros(graph.shape(name)), "zero")

    return _edited(graph, edit)


def absolute_part(graph: Graph) -> Graph:
    """A copy of the graph with the absolute value of every constant, and no subtraction.

    On values >= 0 it sums the absolute values of all terms that the graph sums.
    """

    def edit(result: Graph, node: NodeProto, rule: _Rule) -> None:
        values = rule.varying | rule.offsets | rule.factors
        for i, name in enumerate(node.input):
            if i in values and name in graph.constants:
                # BatchNormalization subtracts its mean, operand 3.
                sign = -1 if (node.op_type, i) == ("BatchNormalization", 3) else 1
                node.input[i] = result.constant(sign * np.abs(graph.constants[name]), "absolute")
        for attribute in node.attribute:
            if node.op_type == "Gemm" and attribute.name in ("alpha", "beta"):
                attribute.f = abs(attribute.f)
        node.op_type = _UNSIGNED.get(node.op_type, node.op_type)

    return _edited(graph, edit)


def _edited(graph: Graph, edit: Callable[[Graph, NodeProto, _Rule], None]) -> Graph:
    """A copy of the graph with `edit` applied to its affine nodes."""
    variables = graph.variables()
    result = replace(graph, nodes=[], constants=dict(graph.constants))
    for node in graph.nodes:
        copy = NodeProto.FromString(node.SerializeToString())
        rule = AFFINE.get(node.op_type)
        if rule is not None and any(name in variables for name in node.input):
            edit(result, copy, rule)
        result.nodes.append(copy)
    return result


_UNSIGNED = {"Sub": "Add", "Neg": "Identity"}
