"""VNN-LIB 2.0, from the syntax tree of the standard's own parser."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from fgp_vnn.base.errors import InputError, UnsupportedError, one_line
from fgp_vnn.property.formula import (
    And,
    Formula,
    Linear,
    Names,
    Or,
    Read,
    compare_variable,
    comparison,
    finite_literal,
    product,
)
from fgp_vnn.property.model import Declared, Variable
from fgp_vnn.property.relations import shared
from fgp_vnn.property.sexpr import ListExpression, located, quoted

MAX_ELEMENTS = 10_000_000  # of all inputs together, or of all outputs
_TYPES = frozenset(("Real", "real", "float32", "float64"))
# The standard writes the type as Real, but its parser only knows real. Both have the same length,
# so positions in messages stay right.
_REAL = re.compile(r"(\(\s*declare-(?:input|output|hidden)\s+[^\s()]+\s+)Real(?=[\s\[])")
_OPERATORS = {
    "LessEqual": "<=",
    "LessThan": "<",
    "GreaterEqual": ">=",
    "GreaterThan": ">",
    "Equal": "==",
    "NotEqual": "!=",
}
# Brackets that hold anything but whole numbers: the parser accepts [-1] and [0.9] as indices.
_NO_INDICES = re.compile(r"\[(?!\s*(?:[0-9]+\s*(?:,\s*[0-9]+\s*)*)?\])[^\]\n]*\]?")
_SYNTAX_ERROR = re.compile(r"syntax error at line (\d+), column (\d+): '(.*)'", re.DOTALL)


class Vnnlib2Reader:
    """Turns syntax trees into formulas, given the declared variables. With `related`, the
    assertions of the file, inputs may be related to each other and to outputs."""

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        related: Sequence[Any] | None = None,
    ) -> None:
        self.offsets: dict[str, int] = {}
        position = 0
        for variable in (*inputs, *outputs):
            self.offsets[variable.name] = position
            position += math.prod(variable.shape)
        count = sum(math.prod(variable.shape) for variable in inputs)
        self._declared = {v.name: v for v in (*inputs, *outputs)}
        self._inputs = {v.name for v in inputs}
        equal = (pair for node in related or () for pair in self._equal(node))
        self.places = shared(count, equal)  # shared input of each declared input
        self._count, least = count, max(self.places, default=-1) + 1
        passed: dict[int, int] | None = None if related is None else {}
        self.names = Names(least, position - count, self._name, passed)

    def formula(self, node: Any) -> Formula:
        """The formula of a node of the syntax tree."""
        kind = type(node).__name__
        if kind in ("And", "Or"):
            parts = tuple(self.formula(part) for part in node.args)
            return And(parts) if kind == "And" else Or(parts)
        if kind not in _OPERATORS:
            raise UnsupportedError(f"{quoted(node)} is not supported in a formula")
        line = _line(node)
        try:
            left, right = node.lhs, node.rhs
            simple = self._simple(kind, left, right, line)
            if simple is not None:
                return simple
            left, right = self._linear(left), self._linear(right)
            return comparison(_OPERATORS[kind], left, right, self.names, line)
        except InputError as error:
            raise located(error, line) from None

    def _simple(self, kind: str, left: Any, right: Any, line: int) -> Formula | None:
        """Fast path for `variable <= literal` and the like, the usual case, without fractions."""
        if type(left).__name__ != "Var" or type(right).__name__ not in ("Float", "Int"):
            return None
        operator = _OPERATORS[kind]
        if operator in ("==", "!="):
            return None
        variable, value = self._index(left), finite_literal(float(right.lexeme), right.lexeme)
        return compare_variable(operator, variable, value, self.names, line)

    def _linear(self, node: Any) -> Linear:
        kind = type(node).__name__
        if kind == "Var":
            return Linear({self._index(node): Fraction(1)})
        if kind in ("Float", "Int"):
            return Linear(constant=Fraction(finite_literal(float(node.lexeme), node.lexeme)))
        if kind == "Multiply":
            return product([self._linear(factor) for factor in node.args])
        if kind == "Negate":
            return self._linear(node.expr).times(-1)
        if kind == "Plus":
            return Linear.sum((self._linear(term), 1) for term in node.args)
        if kind == "Minus":
            less = ((self._linear(term), -1) for term in node.rest)
            return Linear.sum([(self._linear(node.head), 1), *less])
        raise UnsupportedError(f"{quoted(node)} is not supported in a term")

    def _equal(self, node: Any) -> Iterator[tuple[int, int]]:
        """The pairs of inputs that a formula, or a part of its conjunction, sets equal."""
        if type(node).__name__ == "And":
            for part in node.args:
                yield from self._equal(part)
        elif type(node).__name__ == "Equal":
            sides = node.lhs, node.rhs
            if all(type(s).__name__ == "Var" and s.name in self._inputs for s in sides):
                yield self._declared_index(node.lhs), self._declared_index(node.rhs)

    def _index(self, node: Any) -> int:
        """Index of X[i,j,...]: the shared inputs come first, then the outputs."""
        index = self._declared_index(node)
        if index < self._count:
            return self.places[index]
        return index - self._count + self.names.inputs

    def _declared_index(self, node: Any) -> int:
        """Index of X[i,j,...] among all declared elements, in C order."""
        index = 0
        for position, size in zip(node.indices, node.shape, strict=True):
            index = index * size + position
        return self.offsets[node.name] + index

    def _name(self, variable: int) -> str:
        if variable < self.names.inputs:
            variable = self.places.index(variable)
        else:
            variable += self._count - self.names.inputs
        name = max((n for n in self.offsets if self.offsets[n] <= variable), key=self.offsets.get)  # type: ignore[arg-type]
        rest, indices = variable - self.offsets[name], []
        for size in reversed(self._declared[name].shape):
            rest, position = divmod(rest, size)
            indices.append(str(position))
        return f"{name}[{','.join(reversed(indices))}]" if indices else name


def read_vnnlib2(
    lines: list[str], expressions: list[ListExpression], *, joint: bool = False
) -> Read:
    """Read the variables and assertions of a file; `expressions` is the same text as
    S-expressions. Several networks, and constraints that relate inputs to other variables, are
    allowed only with `joint`."""
    _check_version(expressions)
    text = "\n".join(lines)
    _check_indices(text)
    query = _parse(text)
    _check_networks(query, expressions, joint=joint)
    written = _declarations(expressions)
    networks = tuple(
        Declared(
            network.name,
            tuple(_variable(definition, written) for definition in network.inputs),
            tuple(_variable(definition, written) for definition in network.outputs),
            network.equal_to or "",
        )
        for network in query.networks
    )
    inputs = tuple(variable for network in networks for variable in network.inputs)
    outputs = tuple(variable for network in networks for variable in network.outputs)
    for variables in (inputs, outputs):
        if sum(math.prod(variable.shape) for variable in variables) > MAX_ELEMENTS:
            name = variables[0].name
            raise UnsupportedError(f"{name} has more than {MAX_ELEMENTS:,} elements")
    said = [assertion.expr for assertion in query.assertions]
    reader = Vnnlib2Reader(inputs, outputs, said if joint else None)
    formulas = [reader.formula(node) for node in said]
    return Read(reader.names, formulas, reader.places, networks, inputs, outputs)


def _check_version(expressions: list[ListExpression]) -> None:
    line, *first = expressions[0]
    if len(first) != 2 or first[0] != "vnnlib-version":
        raise InputError(f"line {line}: VNN-LIB 2.0 starts with (vnnlib-version <2.0>)")
    if first[1] != "<2.0>":
        raise UnsupportedError(
            f"line {line}: version {quoted(first[1])} is not supported, only 2.0 is"
        )


def _check_indices(text: str) -> None:
    """Refuse indices and sizes that are not whole numbers, or are negative."""
    if found := _NO_INDICES.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(f"line {line}: {quoted(found[0])} must be whole numbers, none below 0")


def _check_networks(query: Any, expressions: list[ListExpression], *, joint: bool) -> None:
    """Refuse hidden layers, and several networks unless `joint`; the message names the line."""
    declared = _declarations(expressions)
    names = [network.name for network in query.networks]
    if twice := [name for number, name in enumerate(names) if name in names[:number]]:
        raise InputError(f"network {twice[0]} is declared twice")
    if len(query.networks) != 1 and not joint:
        second = [part for part in declared if part[1] == "declare-network"][1:]
        where = f"line {second[0][0]}: " if second else ""
        raise UnsupportedError(f"{where}{len(query.networks)} networks: only verify takes several")
    if hidden := [variable for network in query.networks for variable in network.hidden]:
        lines = [part[0] for part in declared if part[1] == "declare-hidden"]
        where = f"line {lines[0]}: " if lines else ""
        raise UnsupportedError(f"{where}hidden layers are not supported ({hidden[0].name})")


def _parse(text: str) -> Any:
    import vnnlib

    try:
        return vnnlib.parse_query_string(_REAL.sub(r"\1real", text))
    except vnnlib.VNNLibException as error:
        raise InputError(_explained(str(error))) from None
    except Exception as error:  # any third-party error; known: numbers that overflow
        what = one_line(error)
        raise InputError(f"a number or an index is out of range ({what})") from None


def _explained(message: str) -> str:
    """One line from the parser's message: a syntax error, or JSON with a list of errors."""
    if match := _SYNTAX_ERROR.search(message):
        line, column, token = match.groups()
        if not token:
            return f"line {line}: syntax error: the file ends too early"
        return f"line {line}, column {int(column) + 1}: syntax error at {quoted(token)}"
    try:
        first = json.loads(message)["errors"][0]
        what = f"{first['message']}: {first['offendingSymbol']} ({first['hint']})"
        return " ".join(f"line {first['line']}: {what}".split())
    except (ValueError, LookupError, TypeError):
        return one_line(message)


def _declarations(expressions: list[ListExpression]) -> list[ListExpression]:
    """The declarations of networks and of their variables, as written in the file."""
    networks = [part for part in expressions if len(part) > 1 and part[1] == "declare-network"]
    inner = [part for network in networks for part in network if isinstance(part, list)]
    return networks + [part for part in inner if len(part) > 1]


def _variable(definition: Any, declared: list[ListExpression]) -> Variable:
    """A declared variable, its type spelled as in the file: counterexamples repeat it."""
    kind = str(definition).split()[2].partition("[")[0]
    if kind == "real" and any(part[2:4] == [definition.name, "Real"] for part in declared):
        kind = "Real"
    if kind not in _TYPES:
        supported = ", ".join(sorted(_TYPES))
        raise UnsupportedError(f"{definition.name} has type {kind}; supported are {supported}")
    return Variable(definition.name, kind, tuple(definition.shape))


def _line(node: Any) -> int:
    """The line of the first variable or literal of a comparison."""
    while not hasattr(node, "line"):
        node = node.children()[0]
    return int(node.line)
