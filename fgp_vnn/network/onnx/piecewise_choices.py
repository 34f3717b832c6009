"""Nested choices between linear functions of one tensor, as one piecewise-linear function of it.

Such a function is the sum of a line, a ReLU wherever its slope changes, and a step wherever it
jumps. This takes fewer neurons than a step and a product for every choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

from onnx import NodeProto

from fgp_vnn.network.onnx.graph import Graph
from fgp_vnn.network.onnx.piecewise import Function, absolute, added, chosen, line, scaled, sign
from fgp_vnn.network.onnx.writer import Writer

# 1: the first operand minus the second, -1: the reverse; and whether equality counts.
COMPARISONS: Mapping[str, tuple[int, bool]] = {
    "Greater": (1, False),
    "GreaterOrEqual": (1, True),
    "Less": (-1, False),
    "LessOrEqual": (-1, True),
}


class _Condition(NamedTuple):
    """A comparison of a tensor with a number."""

    by: str
    level: Fraction
    above: bool  # whether the choice takes its first operand above the level
    equal: bool  # whether the operand taken above the level is also taken at it


class PiecewiseChoices:
    """Finds the choices of a graph that are piecewise-linear functions of one tensor."""

    def __init__(self, graph: Graph, makers: Mapping[str, NodeProto]) -> None:
        self._graph, self._makers = graph, makers

    def write(self, w: Writer) -> str | None:
        """The output of a choice, written as a line, ReLUs and steps; None if it is not piecewise
        linear in one tensor, or if `_written` cannot write it exactly."""
        found = self._condition(w.node)
        for x in () if found is None else self._origins(found.by):
            pieces = self._pieces(w.target, x)
            if pieces is not None and w.shape(x) == w.result_shape:
                return _written(w, x, pieces)
        return None

    def _condition(self, node: NodeProto) -> _Condition | None:
        """The condition of a choice, if it compares a tensor with a number; else None."""
        made = self._makers.get(node.input[0])
        if made is None or made.op_type not in COMPARISONS:
            return None
        order, equal = COMPARISONS[made.op_type]
        for x, constant, above in (
            (made.input[0], made.input[1], order > 0),
            (made.input[1], made.input[0], order < 0),
        ):
            level = self._uniform(constant, x)
            if x not in self._graph.constants and level is not None:
                return _Condition(x, level, above, equal == above)
        return None

    def _origins(self, name: str) -> Iterator[str]:
        """A tensor, then the one that it is computed from, and so on, while there is only one."""
        while name not in self._graph.constants:
            yield name
            made = self._makers.get(name)
            if made is None or made.op_type not in _OPERATORS:
                return
            varying = [str(n) for n in made.input if n not in self._graph.constants]
            if len(varying) != 1:
                return
            name = varying[0]

    def _uniform(self, name: str, other: str) -> Fraction | None:
        """The value of all entries of a constant; None if they differ or are not finite."""
        number = self._graph.uniform(name, other)
        return None if number is None or not isfinite(number) else Fraction(number)

    def _pieces(self, name: str, x: str) -> Function | None:
        """A tensor as a piecewise-linear function of x, entry by entry; None if it is not one."""
        if name == x:
            return line(1, 0)
        if name in self._graph.constants:
            number = self._uniform(name, x)
            return None if number is None else line(0, number)
        made = self._makers.get(name)
        if made is not None and made.op_type == "Where":
            return self._choice(made, x)
        if made is None or made.op_type not in _OPERATORS:
            return None
        parts = [self._pieces(operand, x) for operand in made.input]
        return None if None in parts else _OPERATORS[made.op_type](*parts)

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
    """The value of a constant function; None for other functions."""
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


_OPERATORS: Mapping[str, Callable[..., Function | None]] = {
    "Abs": absolute,
    "Add": added,
    "Div": _quotient,
    "Mul": _product,
    "Neg": lambda f: scaled(f, -1),
    "Sign": sign,
    "Sub": lambda f, g: added(f, scaled(g, -1)),
}


def _written(w: Writer, x: str, pieces: Function) -> str | None:
    """A function of a tensor, written as a line, ReLUs and steps; None if a number would be
    rounded, or if the value at a jump does not lie between those on both sides."""
    terms: list[tuple[str | None, Fraction, Fraction]] = [(None, Fraction(0), pieces[0].slope)]
    equal: dict[Fraction, bool] = {}
    for before, after in pairwise(pieces):
        if after.start is None:
            raise AssertionError("pieces are in order")
        ends, value = (before.at(after.start), after.at(after.start)), after.value(after.start)
        if not min(ends) <= value <= max(ends):
            return None
        equal[after.start] = value == ends[1]
        terms += [("Relu", after.start, after.slope - before.slope)]
        terms += [("Step", after.start, ends[1] - ends[0])]
    terms = [term for term in terms if term[2]]
    numbers = [pieces[0].offset, *(number for term in terms for number in term[1:])]
    if not terms or any(Fraction(float(number)) != number for number in numbers):
        return None
    result: str | None = None
    for kind, place, factor in terms:
        moved = w.binary("Sub", x, float(place)) if place else x
        how = {"equal": int(equal[place])} if kind == "Step" else {}
        part = w.binary(
            "Mul", moved if kind is None else w.curve(kind, moved, **how), float(factor)
        )
        result = part if result is None else w.add(result, part)
    return w.add(str(result), float(pieces[0].offset)) if pieces[0].offset else result
