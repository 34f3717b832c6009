"""VNN-LIB 1.0: declarations of X_i and Y_i, and asserts in prefix form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from fgp_vnn.base.errors import InputError, UnsupportedError
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
    number,
    product,
)
from fgp_vnn.property.sexpr import Expression, ListExpression, located, quoted

_VARIABLE = re.compile(r"([XY])_(0|[1-9][0-9]{0,9})")
_COMPARISONS = frozenset(("<=", "<", ">=", ">", "=", "=="))


class Vnnlib1Reader:
    """Turns S-expressions into formulas, given the declared variables."""

    def __init__(
        self, variables: dict[str, int], inputs: int, passed: dict[int, int] | None = None
    ) -> None:
        self.variables = variables
        spelled = {index: name for name, index in variables.items()}
        self.names = Names(inputs, len(variables) - inputs, spelled.__getitem__, passed)

    def formula(self, expression: Expression, line: int) -> Formula:
        """The formula of an expression; `line` is the line of the list around it."""
        if not isinstance(expression, list):
            raise InputError(f"line {line}: expected a formula, found {quoted(expression)}")
        line, head, arguments = _parts(expression)
        if head in _COMPARISONS:
            return self._comparison(line, head, arguments)
        if head not in ("and", "or"):
            raise UnsupportedError(f"line {line}: {quoted(head)} is not supported in a formula")
        if not arguments:
            raise InputError(f"line {line}: '{head}' without arguments")
        parts = tuple(self.formula(argument, line) for argument in arguments)
        return And(parts) if head == "and" else Or(parts)

    def _comparison(self, line: int, operator: str, arguments: Sequence[Expression]) -> Formula:
        if len(arguments) != 2:
            raise InputError(f"line {line}: '{operator}' compares two terms, not {len(arguments)}")
        try:
            left, right = arguments
            if isinstance(left, str) and isinstance(right, str):
                simple = self._simple(line, operator, left, right)
                if simple is not None:
                    return simple
            return comparison(operator, self._linear(left), self._linear(right), self.names, line)
        except InputError as error:
            raise located(error, line) from None

    def _simple(self, line: int, operator: str, left: str, right: str) -> Formula | None:
        """Fast path for `variable <= literal` and the like, the usual case, without fractions."""
        variable, value = self.variables.get(left), number(right)
        if variable is None or value is None or operator in ("=", "=="):
            return None
        finite_literal(value, right)
        return compare_variable(operator, variable, value, self.names, line)

    def _linear(self, expression: Expression) -> Linear:
        if isinstance(expression, str):
            return self._symbol(expression)
        _, head, arguments = _parts(expression)
        terms = [self._linear(argument) for argument in arguments]
        if not terms:
            raise InputError(f"{quoted(head)} without arguments")
        if head == "*":
            return product(terms)
        if head == "/" and len(terms) == 2:
            divisor = terms[1]
            if divisor.without_zeros() or not divisor.constant:
                raise UnsupportedError("division by a term that is not a constant other than 0")
            return product([terms[0], Linear(constant=1 / divisor.constant)])
        if head not in ("+", "-"):
            raise UnsupportedError(f"{quoted(head)} is not supported in a term")
        sign = 1 if head == "+" else -1
        first = sign if len(terms) == 1 else 1
        return Linear.sum([(terms[0], first), *((term, sign) for term in terms[1:])])

    def _symbol(self, symbol: str) -> Linear:
        variable = self.variables.get(symbol)
        if variable is not None:
            return Linear({variable: Fraction(1)})
        value = number(symbol)
        if value is not None:
            return Linear(constant=Fraction(finite_literal(value, symbol)))
        if _VARIABLE.fullmatch(symbol):
            raise InputError(f"variable {symbol} is not declared")
        raise InputError(f"{quoted(symbol)} is neither a declared variable nor a number")


def read_vnnlib1(expressions: list[ListExpression], passed: dict[int, int] | None = None) -> Read:
    """Read the variables and asserts of a file. `passed` collects the inputs that constraints
    relate to other inputs or to outputs; if it is None, such constraints are refused."""
    asserts: list[tuple[Expression, int]] = []
    declared: dict[str, dict[int, int]] = {"X": {}, "Y": {}}  # index -> line
    for expression in expressions:
        line, head, arguments = _parts(expression)
        if head in ("declare-const", "declare-fun"):
            _declare(line, head, arguments, declared)
        elif head == "assert":
            if len(arguments) != 1:
                raise InputError(f"line {line}: assert takes one formula, not {len(arguments)}")
            asserts.append((arguments[0], line))
        else:
            raise UnsupportedError(f"line {line}: command {quoted(head)} is not supported")
    variables: dict[str, int] = {}
    for kind, role in (("X", "input"), ("Y", "output")):
        _check_numbering(kind, role, declared[kind])
        offset = len(variables)
        for index in range(len(declared[kind])):
            variables[f"{kind}_{index}"] = offset + index
    reader = Vnnlib1Reader(variables, len(declared["X"]), passed)
    formulas = [reader.formula(argument, line) for argument, line in asserts]
    return Read(reader.names, formulas, tuple(range(reader.names.inputs)))


def _parts(expression: ListExpression) -> tuple[int, str, Sequence[Expression]]:
    """Line, head and arguments of a list."""
    line = expression[0]
    assert isinstance(line, int)
    if len(expression) < 2:
        raise InputError(f"line {line}: '()' is empty")
    head = expression[1]
    if not isinstance(head, str):
        raise InputError(f"line {line}: expected an operator, found {quoted(head)}")
    return line, head, expression[2:]  # type: ignore[return-value]  # only the line is an int


def _declare(
    line: int, head: str, arguments: Sequence[Expression], declared: dict[str, dict[int, int]]
) -> None:
    """Record one (declare-const X_0 Real) or (declare-fun X_0 () Real)."""
    arguments = list(arguments)
    if head == "declare-fun" and len(arguments) == 3 and isinstance(arguments[1], list):
        if len(arguments[1]) > 1:
            raise UnsupportedError(f"line {line}: functions are not supported")
        del arguments[1]
    if len(arguments) != 2 or not isinstance(arguments[0], str):
        form = "NAME Real" if head == "declare-const" else "NAME () Real"
        raise InputError(f"line {line}: expected ({head} {form})")
    name, kind = arguments
    match = _VARIABLE.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise UnsupportedError(f"line {line}: variable {quoted(name)} is neither X_i nor Y_i")
    if kind != "Real":
        raise UnsupportedError(f"line {line}: {name} has type {quoted(kind)}, not Real")
    letter, index = match[1], int(match[2])
    if index in declared[letter]:
        first = declared[letter][index]
        raise InputError(f"line {line}: {name} is already declared in line {first}")
    declared[letter][index] = line


def _check_numbering(kind: str, role: str, declared: dict[int, int]) -> None:
    if not declared:
        raise InputError(f"no {role} ({kind}_0, ...) is declared")
    largest = max(declared)
    if largest >= len(declared):
        gap = next(index for index in range(largest) if index not in declared)
        line = declared[largest]
        raise InputError(f"line {line}: {kind}_{largest} is declared, but {kind}_{gap} is not")
