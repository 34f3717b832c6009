"""Comparisons and choices in terms of steps.

A condition becomes a number: 1 where it holds and 0 elsewhere. Nested choices between lines of the
tensor that is compared are one function of it: a line, a ReLU wherever its slope changes, and a
step wherever it jumps. Any other choice between a and b by a condition c is b + c (a - b).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from fgp_vnn.network.onnx.graph import Graph, attributes, make_node
from fgp_vnn.network.onnx.piecewise import Function, absolute, added, chosen, line, scaled, sign
from fgp_vnn.network.onnx.writer import Writer

# 1: the first operand minus the second, -1: the reverse; and whether equality counts.
_COMPARISONS: Mapping[str, tuple[int, bool]] = {
    "Greater": (1, False),
    "GreaterOrEqual": (1, True),
    "Less": (-1, False),
    "LessOrEqual": (-1, True),
}


def write_decisions(graph: Graph) -> None:
    """Replace conditions that depend on the input, and choices by them, in place."""
    variables, lines = graph.variables(), _Lines(graph, graph.makers)

    def rule(node: NodeProto) -> list[NodeProto] | None:
        if not variables & {*node.input[: 1 if node.op_type == "Where" else None]}:
            return None
        writer = Writer(graph)
        if node.op_type == "Where":
            result = _chosen(writer, node, lines)
        elif node.op_type == "Cast" and attributes(node)["to"] == TensorProto.BOOL:
            result = _holds(writer, node.input[0], lines)
        elif node.op_type in _RULES:
            result = _RULES[node.op_type](writer, node)
        else:
            return None
        return [*writer.nodes, make_node("Identity", [result], node.output[0])]

    graph.replace(rule)
    graph.skip_copies()
    graph.prune()


def _compared(w: Writer, node: NodeProto) -> str:
    sign, equal = _COMPARISONS[node.op_type]
    a, b = node.input[::sign]
    return w.curve("Step", w.add(a, b, "Sub"), equal=int(equal))


def _equal(w: Writer, node: NodeProto) -> str:
    """1 - [a > b] - [b > a]."""
    a, b = node.input
    above, below = (w.curve("Step", w.add(*pair, "Sub")) for pair in ((a, b), (b, a)))
    return w.add(1.0, w.add(above, below), "Sub")


def _not(w: Writer, node: NodeProto) -> str:
    return w.add(1.0, node.input[0], "Sub")


def _and(w: Writer, node: NodeProto) -> str:
    """relu(a + b - 1)."""
    both = w.add(w.add(_number(w, node.input[0]), _number(w, node.input[1])), 1.0, "Sub")
    return w.curve("Relu", both)


def _or(w: Writer, node: NodeProto) -> str:
    """1 - relu(1 - a - b)."""
    both = w.add(_number(w, node.input[0]), _number(w, node.input[1]))
    return w.add(1.0, w.curve("Relu", w.add(1.0, both, "Sub")), "Sub")


def _never(w: Writer, node: NodeProto) -> str:
    """What is asked of a real number, and never holds."""
    return w.graph.constant(np.zeros(w.shape(node.input[0]), dtype=bool), "never")


def _holds(w: Writer, name: str, lines: _Lines) -> str:
    """A condition, or whether a number is not 0."""
    if lines.is_condition(name):
        return name
    above, below = (w.curve("Step", w.add(name, sign, "Mul")) for sign in (1.0, -1.0))
    return w.add(above, below)


_RULES: dict[str, Callable[[Writer, NodeProto], str]] = {
    **dict.fromkeys(_COMPARISONS, _compared),
    "And": _and,
    "Equal": _equal,
    "IsInf": _never,
    "IsNaN": _never,
    "Not": _not,
    "Or": _or,
}
DECIDED = frozenset({*_RULES, "Where"})


def _number(w: Writer, name: str) -> str | Any:
    """A tensor, or a constant as floating-point numbers."""
    constant = w.graph.constants.get(name)
    return name if constant is None else constant.astype(np.float64)


def _chosen(w: Writer, node: NodeProto, lines: _Lines) -> str:
    condition, *names = map(str, node.input)
    if lines.never(condition) and w.shape(names[1]) == w.shape(node.output[0]):
        return names[1]
    written = lines.write(w, node)
    if written is not None:
        return written
    a, b = (_number(w, name) for name in names)
    if isinstance(a, str) or isinstance(b, str):
        moved = w.multiply(condition, w.add(a, b, "Sub"))
    else:
        moved = w.add(condition, a - b, "Mul")
    return w.reshape(w.add(moved, b), w.shape(node.output[0]))


class _Condition(NamedTuple):
    """A tensor that is compared with a number."""

    by: str
    level: Fraction
    above: bool  # whether the first operand of a choice is taken above it
    equal: bool  # whether what is taken above it is taken at it


class _Lines:
    """Finds the tensors that are functions of another one in pieces of lines."""

    def __init__(self, graph: Graph, makers: Mapping[str, NodeProto]) -> None:
        self._graph, self._makers = graph, makers

    def is_condition(self, name: str) -> bool:
        """Whether a tensor holds truth values."""
        made = self._makers.get(name)
        if made is not None and made.op_type == "Cast":
            return bool(attributes(made)["to"] == TensorProto.BOOL)
        return made is not None and made.op_type in _RULES

    def never(self, name: str) -> bool:
        """Whether a condition holds for no real number."""
        made = self._makers.get(name)
        if made is None:
            return False
        if made.op_type == "Cast":
            return self.never(made.input[0])
        if made.op_type == "And":
            return any(self.never(operand) for operand in made.input)
        return made.op_type in ("IsInf", "IsNaN")

    def write(self, w: Writer, node: NodeProto) -> str | None:
        """A choice as lines, ReLUs and steps; None where it is none between lines, or where a
        number of these would be rounded."""
        found = self._condition(node)
        for x in () if found is None else self._origins(found.by):
            pieces = self._pieces(node.output[0], x)
            if pieces is not None and self._graph.shape(x) == self._graph.shape(node.output[0]):
                return _written(w, x, pieces)
        return None

    def _condition(self, node: NodeProto) -> _Condition | None:
        """What decides a choice, where that is a tensor and a number."""
        made = self._makers.get(node.input[0])
        if made is None or made.op_type not in _COMPARISONS:
            return None
        order, equal = _COMPARISONS[made.op_type]
        for x, constant, above in (
            (made.input[0], made.input[1], order > 0),
            (made.input[1], made.input[0], order < 0),
        ):
            level = self._uniform(constant, x)
            if x not in self._graph.constants and level is not None:
                return _Condition(x, level, above, equal == above)
        return None

    def _origins(self, name: str) -> Iterator[str]:
        """A tensor, and those that it is made of without any other."""
        while name not in self._graph.constants:
            yield name
            made = self._makers.get(name)
            if made is None or made.op_type not in (*_SINGLE, *_WITH_NUMBERS):
                return
            varying = [str(n) for n in made.input if n not in self._graph.constants]
            if len(varying) != 1:
                return
            name = varying[0]

    def _uniform(self, name: str, other: str) -> Fraction | None:
        """The one finite number that a constant consists of, if it does not enlarge the other."""
        array, shape = self._graph.constants.get(name), self._graph.shape(other)
        if array is None or not array.size or (array != array.flat[0]).any():
            return None
        if not np.isfinite(array.flat[0]) or np.broadcast_shapes(array.shape, shape) != shape:
            return None
        return Fraction(float(array.flat[0]))

    def _pieces(self, name: str, x: str) -> Function | None:
        """A tensor as a function of x, entry by entry, if it is one."""
        if name == x:
            return line(1, 0)
        if name in self._graph.constants:
            number = self._uniform(name, x)
            return None if number is None else line(0, number)
        made = self._makers.get(name)
        if made is None or made.op_type not in (*_SINGLE, *_WITH_NUMBERS, "Where"):
            return None
        if made.op_type == "Where":
            return self._choice(made, x)
        parts = [self._pieces(operand, x) for operand in made.input]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        if made.op_type in _SINGLE:
            return _SINGLE[made.op_type](known[0])
        return _WITH_NUMBERS[made.op_type](*known)

    def _choice(self, made: NodeProto, x: str) -> Function | None:
        found = self._condition(made)
        if found is None:
            return None
        by, first, second = (self._pieces(n, x) for n in (found.by, *made.input[1:]))
        if by is None or first is None or second is None:
            return None
        above, below = (first, second) if found.above else (second, first)
        return chosen(by, found.level, above, below, found.equal)


def _number_of(function: Function) -> Fraction | None:
    """The number that a function is everywhere, if it is one."""
    return None if len(function) > 1 or function[0].slope else function[0].offset


def _product(first: Function, second: Function) -> Function | None:
    for function, other in ((first, second), (second, first)):
        factor = _number_of(other)
        if factor is not None:
            return scaled(function, factor)
    return None


def _quotient(first: Function, second: Function) -> Function | None:
    below = _number_of(second)
    return scaled(first, 1 / below) if below else None


_SINGLE: Mapping[str, Callable[[Function], Function]] = {
    "Abs": absolute,
    "Neg": lambda f: scaled(f, -1),
    "Sign": sign,
}
_WITH_NUMBERS: Mapping[str, Callable[[Function, Function], Function | None]] = {
    "Add": added,
    "Div": _quotient,
    "Mul": _product,
    "Sub": lambda f, g: added(f, scaled(g, -1)),
}


def _written(w: Writer, x: str, pieces: Function) -> str | None:
    """A function of a tensor as lines, ReLUs and steps; None where a number would be rounded, or
    where a single place has a value of its own."""
    terms: list[tuple[str | None, Fraction, Fraction]] = [(None, Fraction(0), pieces[0].slope)]
    equal: dict[Fraction, bool] = {}
    for before, after in pairwise(pieces):
        if after.start is None:
            raise AssertionError("pieces are in order")
        ends, value = (before.at(after.start), after.at(after.start)), after.value(after.start)
        if not min(ends) <= value <= max(ends):
            return None  # a value of one place alone, which no jump passes through
        equal[after.start] = value == ends[1]
        terms += [("Relu", after.start, after.slope - before.slope)]
        terms += [("Step", after.start, ends[1] - ends[0])]
    terms = [term for term in terms if term[2]]
    numbers = [pieces[0].offset, *(number for term in terms for number in term[1:])]
    if not terms or any(Fraction(float(number)) != number for number in numbers):
        return None
    result: str | None = None
    for kind, place, factor in terms:
        moved = w.add(x, float(place), "Sub") if place else x
        how = {"equal": int(equal[place])} if kind == "Step" else {}
        part = w.add(moved if kind is None else w.curve(kind, moved, **how), float(factor), "Mul")
        result = part if result is None else w.add(result, part)
    return w.add(str(result), float(pieces[0].offset)) if pieces[0].offset else result
