"""Rewrite comparisons, Boolean operators and choices (Where) as step functions.

A condition becomes a number: 1 where it holds and 0 elsewhere. A choice between a and b by a
condition c becomes b + c (a - b), unless `piecewise_choices` can write it as a function of one
tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from fgp_vnn.network.onnx.graph import Graph, attributes
from fgp_vnn.network.onnx.piecewise_choices import COMPARISONS, PiecewiseChoices
from fgp_vnn.network.onnx.writer import Rule, Writer, write_by_rules

Makers = Mapping[str, NodeProto]  # the node that computes each tensor


def write_conditions(graph: Graph) -> None:
    """Replace conditions that depend on the input, and choices by them, in place."""
    variables, makers = graph.variables(), graph.makers
    choices = PiecewiseChoices(graph, makers)

    def where(w: Writer) -> str | None:
        return _chosen(w, makers, choices) if w.operands[0] in variables else None

    def cast(w: Writer) -> str | None:
        return _holds(w, makers) if w.given["to"] == TensorProto.BOOL else None

    write_by_rules(graph, {**_RULES, "Cast": cast, "Where": where})
    graph.prune()


def _compared(w: Writer) -> str:
    sign, equal = COMPARISONS[w.node.op_type]
    a, b = w.operands[::sign]
    return w.curve("Step", w.binary("Sub", a, b), equal=int(equal))


def _equal(w: Writer) -> str:
    """1 - [a > b] - [b > a]."""
    a, b = w.operands
    above, below = (w.curve("Step", w.binary("Sub", *pair)) for pair in ((a, b), (b, a)))
    return w.binary("Sub", 1.0, w.add(above, below))


def _not(w: Writer) -> str:
    return w.binary("Sub", 1.0, w.operands[0])


def _and(w: Writer) -> str:
    """relu(a + b - 1)."""
    return w.curve("Relu", w.binary("Sub", _both(w), 1.0))


def _or(w: Writer) -> str:
    """1 - relu(1 - a - b)."""
    return w.binary("Sub", 1.0, w.curve("Relu", w.binary("Sub", 1.0, _both(w))))


def _both(w: Writer) -> str:
    """The number of the two conditions that hold."""
    return w.add(*(_number(w, name) for name in w.operands))


def _never(w: Writer) -> str:
    """False, for IsInf and IsNaN: these hold for no real number."""
    return w.graph.constant(np.zeros(w.shape(w.operands[0]), dtype=bool), "never")


def _holds(w: Writer, makers: Makers) -> str:
    """A cast to bool: a condition stays as it is, and a number becomes whether it is not 0."""
    name = w.operands[0]
    if _is_condition(name, makers):
        return name
    above, below = (w.curve("Step", w.binary("Mul", name, sign)) for sign in (1.0, -1.0))
    return w.add(above, below)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(COMPARISONS, _compared),
    "And": _and,
    "Equal": _equal,
    "IsInf": _never,
    "IsNaN": _never,
    "Not": _not,
    "Or": _or,
}
CONDITIONAL = frozenset({*_RULES, "Where"})


def _number(w: Writer, name: str) -> str | Any:
    """The name of a tensor, or the values of a constant in float64."""
    constant = w.graph.constants.get(name)
    return name if constant is None else constant.astype(np.float64)


def _chosen(w: Writer, makers: Makers, choices: PiecewiseChoices) -> str:
    """The output of a Where whose condition depends on the input."""
    condition, *names = w.operands
    if _never_holds(condition, makers) and w.shape(names[1]) == w.result_shape:
        return names[1]
    written = choices.write(w)
    if written is not None:
        return written
    a, b = (_number(w, name) for name in names)
    if isinstance(a, str) or isinstance(b, str):
        moved = w.multiply(condition, w.binary("Sub", a, b))
    else:
        moved = w.binary("Mul", condition, a - b)
    return w.in_shape(w.add(moved, b))


def _is_condition(name: str, makers: Makers) -> bool:
    """Whether a tensor holds Boolean values."""
    made = makers.get(name)
    if made is not None and made.op_type == "Cast":
        return bool(attributes(made)["to"] == TensorProto.BOOL)
    return made is not None and made.op_type in _RULES


def _never_holds(name: str, makers: Makers) -> bool:
    """Whether a condition holds for no real number."""
    made = makers.get(name)
    if made is None:
        return False
    if made.op_type == "Cast":
        return _never_holds(made.input[0], makers)
    if made.op_type == "And":
        return any(_never_holds(operand, makers) for operand in made.input)
    return made.op_type in ("IsInf", "IsNaN")
