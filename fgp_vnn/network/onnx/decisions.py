"""Comparisons and choices in terms of steps.

A condition becomes a number: 1 where it holds and 0 elsewhere. A choice between lines of the tensor
that is compared, one number or choice inside the other, is one function of that tensor: a line, a
ReLU wherever its slope changes, and a step wherever it jumps. Of anything else that is chosen by a
condition c, a or b, what is left is b + c (a - b).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from fgp_vnn.network.onnx.graph import Graph, attributes, make_node
from fgp_vnn.network.onnx.writer import Writer

# Which operand is subtracted from which, and whether equality counts.
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


class _Piece(NamedTuple):
    """A line from a place on, up to the next one's."""

    start: Fraction | None  # None: from -infinity
    slope: Fraction
    offset: Fraction

    def at(self, place: Fraction) -> Fraction:
        return self.slope * place + self.offset


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
        if found is None or self._graph.shape(found[0]) != self._graph.shape(node.output[0]):
            return None
        x = found[0]
        pieces = self._pieces(node.output[0], x)
        if pieces is None:
            return None
        terms: list[str] = []
        total = pieces[0].offset
        if pieces[0].slope:
            terms.append(w.add(x, _exact(pieces[0].slope), "Mul"))
        for before, after in pairwise(pieces):
            assert after.start is not None
            turn, jump = after.slope - before.slope, after.at(after.start) - before.at(after.start)
            numbers = [_exact(number) for number in (after.start, turn, jump)]
            if None in numbers:
                return None
            beyond = w.add(x, numbers[0], "Sub") if turn or jump else x
            if turn:
                terms.append(w.add(w.curve("Relu", beyond), numbers[1], "Mul"))
            if jump:
                terms.append(w.add(w.curve("Step", beyond), numbers[2], "Mul"))
        offset = _exact(total)
        if offset is None or _exact(pieces[0].slope) is None or not terms:
            return None
        result = terms[0]
        for term in terms[1:]:
            result = w.add(result, term)
        return w.add(result, offset) if offset else result

    def _condition(self, node: NodeProto) -> tuple[str, Fraction, bool] | None:
        """The tensor that a choice is made by, the place where, and whether its first operand is
        taken above it."""
        made = self._makers.get(node.input[0])
        if made is None or made.op_type not in _COMPARISONS:
            return None
        first = _COMPARISONS[made.op_type][0] > 0
        for x, constant, above in (
            (made.input[0], made.input[1], first),
            (made.input[1], made.input[0], not first),
        ):
            place = self._uniform(constant, x)
            if x not in self._graph.constants and place is not None:
                return x, place, above
        return None

    def _uniform(self, name: str, other: str) -> Fraction | None:
        """The one finite number that a constant consists of, if it does not enlarge the other."""
        array, shape = self._graph.constants.get(name), self._graph.shape(other)
        if array is None or not array.size or (array != array.flat[0]).any():
            return None
        if not np.isfinite(array.flat[0]) or np.broadcast_shapes(array.shape, shape) != shape:
            return None
        return Fraction(float(array.flat[0]))

    def _pieces(self, name: str, x: str) -> list[_Piece] | None:
        """The pieces of a tensor as a function of x, if it is one."""
        if name == x:
            return [_Piece(None, Fraction(1), Fraction(0))]
        if name in self._graph.constants:
            number = self._uniform(name, x)
            return None if number is None else [_Piece(None, Fraction(0), number)]
        made = self._makers.get(name)
        if made is None:
            return None
        if made.op_type == "Where":
            found = self._condition(made)
            parts = [self._pieces(operand, x) for operand in made.input[1:]]
            if found is None or found[0] != x or parts[0] is None or parts[1] is None:
                return None
            above, below = parts if found[2] else parts[::-1]
            assert above is not None and below is not None
            return _joined(below, above, found[1])
        return self._moved(made, x)

    def _moved(self, made: NodeProto, x: str) -> list[_Piece] | None:
        """A tensor that is another one, times a number or with a number added."""
        if made.op_type == "Neg":
            return _scaled(self._pieces(made.input[0], x), Fraction(-1), Fraction(0))
        if made.op_type not in ("Add", "Div", "Mul", "Sub"):
            return None
        a, b = made.input
        if a in self._graph.constants and made.op_type != "Div":
            number, of, turned = (
                self._uniform(a, b),
                b,
                Fraction(-1 if made.op_type == "Sub" else 1),
            )
        else:
            number, of, turned = self._uniform(b, a), a, Fraction(1)
            if number is not None and made.op_type == "Sub":
                number = -number
        if number is None or (made.op_type == "Div" and not number):
            return None
        if made.op_type in ("Add", "Sub"):
            return _scaled(self._pieces(of, x), turned, number)
        factor = 1 / number if made.op_type == "Div" else number
        return _scaled(self._pieces(of, x), factor, Fraction(0))


def _scaled(pieces: list[_Piece] | None, factor: Fraction, offset: Fraction) -> list[_Piece] | None:
    if pieces is None:
        return None
    return [_Piece(p.start, factor * p.slope, factor * p.offset + offset) for p in pieces]


def _joined(below: list[_Piece], above: list[_Piece], place: Fraction) -> list[_Piece]:
    """The pieces of the first function up to a place, and of the second from there on."""
    first = [p for p in below if p.start is None or p.start < place]
    last = [p for p in above if p.start is None or p.start <= place][-1]
    after = [p for p in above if p.start is not None and p.start > place]
    return [*first, last._replace(start=place), *after]


def _exact(number: Fraction) -> float | None:
    """A fraction as a floating-point number, if it is one."""
    found = float(number)
    return found if Fraction(found) == number else None
