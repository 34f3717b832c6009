"""Formulas: and/or over bounds on one input and rows over the outputs.

`vnnlib1` and `vnnlib2` read them from files and `expressions` from Python; `normal` turns them into
the cases of a property.

Numbers. A literal stands for the float64 nearest to it, as the competition's scorer and every
tool read it. Rounding is monotone, so every float32 or float64 point that meets a bound as written
also meets the rounded bound: no counterexample that can be fed to a network is lost. Constant
expressions (sums, products) are folded exactly. If the result is not a float64, it is rounded
outwards, so that the set grows, and the comparison becomes strict: a proof then covers a superset.
For an input, which is a float64, the set stays the same. A sum of outputs may lie between the
written limit and the rounded one, so a row keeps the written limit for judging counterexamples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from fgp_vnn.base.errors import InputError, UnsupportedError, plain
from fgp_vnn.property.model import Declared, Limit, Variable

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MAX_BITS = 10_000  # per folded constant: a product of four float64 numbers has at most 8,400


class Bound(NamedTuple):
    """x[input] <= value (or >= where not upper), strict or not."""

    input: int
    upper: bool
    value: float
    strict: bool
    line: int


class Row(NamedTuple):
    """sum of coefficient * y[output] <= limit, or < if strict; inputs may follow the outputs."""

    terms: tuple[tuple[int, float], ...]
    limit: float
    strict: bool
    written: Limit | None = None  # the exact limit, if it is not a float64

    @property
    def as_written(self) -> Limit:
        """The exact limit, as written in the file."""
        return self.written or Limit(Fraction(self.limit), self.strict)


class And(NamedTuple):
    """Conjunction: true where all parts are true."""

    parts: tuple[Formula, ...]


class Or(NamedTuple):
    """Disjunction: true where at least one part is true."""

    parts: tuple[Formula, ...]


Formula = Bound | Row | And | Or
TRUE = And(())
FALSE = Or(())


@dataclass(frozen=True)
class Linear:
    """A linear expression; variables are numbered inputs first, then outputs."""

    terms: Mapping[int, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    @classmethod
    def sum(cls, parts: Iterable[tuple[Linear, int | Fraction]]) -> Linear:
        """The sum of expressions, each times its factor."""
        terms, constant = dict[int, Fraction](), Fraction(0)
        for part, factor in parts:
            constant = _checked(constant + factor * part.constant)
            for variable, value in part.terms.items():
                terms[variable] = _checked(terms.get(variable, 0) + factor * value)
        return cls(terms, constant)

    def times(self, factor: int | Fraction) -> Linear:
        return Linear.sum([(self, factor)])

    def without_zeros(self) -> dict[int, Fraction]:
        """The terms whose coefficient is not 0."""
        return {variable: value for variable, value in self.terms.items() if value}


@dataclass(frozen=True)
class Names:
    """The number of inputs and outputs, and the name of each in the file."""

    inputs: int
    outputs: int
    name: Callable[[int], str]
    # Inputs that occur in rows -> position after the outputs, from 0; None: no inputs in rows.
    passed: dict[int, int] | None = None

    @property
    def width(self) -> int:
        """Length of a row: the outputs, then the inputs that occur in rows."""
        return self.outputs + len(self.passed or ())

    def place(self, variable: int) -> int:
        """Index of a variable in a row; an input gets the next free index on first use."""
        if variable >= self.inputs or self.passed is None:
            return variable - self.inputs
        return self.outputs + self.passed.setdefault(variable, len(self.passed))


class Read(NamedTuple):
    """The content of a VNN-LIB file."""

    names: Names
    formulas: list[Formula]
    places: tuple[int, ...]  # index of each declared input among the distinct inputs
    networks: tuple[Declared, ...] = ()  # none in VNN-LIB 1.0
    inputs: tuple[Variable, ...] = ()  # of all networks
    outputs: tuple[Variable, ...] = ()


def number(literal: str) -> float | None:
    """The float64 nearest to a literal, or None if it is not a number."""
    return float(literal) if _NUMBER.fullmatch(literal) else None


def finite_literal(value: float, literal: str) -> float:
    """The value of a literal; raises InputError if it overflows."""
    if math.isinf(value):
        raise InputError(f"{plain(literal, 60)} is too large for a float64")
    return value


def product(factors: list[Linear]) -> Linear:
    """The product of expressions, at most one of which may contain variables."""
    scale, rest = Fraction(1), None
    for factor in factors:
        if not factor.without_zeros():
            scale = _checked(scale * factor.constant)
        elif rest is None:
            rest = factor
        else:
            raise UnsupportedError("a product of two variables is not linear")
    return (rest or Linear(constant=Fraction(1))).times(scale)


def compare_variable(
    operator: str, variable: int, value: float, names: Names, line: int
) -> Bound | Row:
    """variable OPERATOR value, for <=, <, >= and >: without fractions, hence fast."""
    upper, strict = operator[0] == "<", len(operator) == 1
    if variable < names.inputs:
        return Bound(variable, upper, value, strict, line)
    sign = 1.0 if upper else -1.0
    return Row(((variable - names.inputs, sign),), sign * value, strict)


def comparison(operator: str, left: Linear, right: Linear, names: Names, line: int) -> Formula:
    """left OPERATOR right, for <=, <, >=, >, ==, = and !=."""
    if operator in ("==", "="):
        both = (comparison(sign, left, right, names, line) for sign in ("<=", ">="))
        return And(tuple(both))
    if operator == "!=":
        either = (comparison(sign, left, right, names, line) for sign in ("<", ">"))
        return Or(tuple(either))
    if operator not in ("<=", "<", ">=", ">"):
        raise UnsupportedError(f"comparison '{operator}' is not supported")
    if operator.startswith(">"):
        left, right = right, left
    difference = Linear.sum([(left, 1), (right, -1)])
    strict = operator in ("<", ">")
    return _at_most(difference.without_zeros(), -difference.constant, strict, names, line)


def negated(formula: Formula, names: Names) -> Formula:
    if isinstance(formula, And | Or):
        other = Or if isinstance(formula, And) else And
        return other(tuple(negated(part, names) for part in formula.parts))
    if isinstance(formula, Bound):
        return formula._replace(upper=not formula.upper, strict=not formula.strict)
    limit, strict = formula.as_written
    terms = {names.inputs + output: -Fraction(c) for output, c in formula.terms}
    return _at_most(terms, -limit, not strict, names, 0)


def _at_most(
    terms: dict[int, Fraction], limit: Fraction, strict: bool, names: Names, line: int
) -> Formula:
    """terms <= limit (or < if strict) as a bound, a row, or TRUE or FALSE if there are no terms."""
    if not terms:
        return TRUE if limit > 0 or (limit == 0 and not strict) else FALSE
    inputs = [variable for variable in terms if variable < names.inputs]
    related = len(inputs) > 1 or 0 < len(inputs) < len(terms)
    if related and names.passed is None and len(inputs) < len(terms):
        output = next(variable for variable in terms if variable >= names.inputs)
        both = f"{names.name(inputs[0])} and {names.name(output)}"
        raise UnsupportedError(f"a constraint that relates inputs to outputs ({both})")
    if related and names.passed is None:
        both = f"{names.name(inputs[0])} and {names.name(inputs[1])}"
        raise UnsupportedError(f"a constraint that relates inputs to each other ({both})")
    if inputs and not related:
        coefficient = terms[inputs[0]]
        upper = coefficient > 0
        value, exact = outward(limit / coefficient, up=upper)
        return Bound(inputs[0], upper, value, strict or not exact, line)
    if not all(outward(coefficient, up=True)[1] for coefficient in terms.values()):
        scale = math.lcm(*(coefficient.denominator for coefficient in terms.values()))
        terms = {variable: coefficient * scale for variable, coefficient in terms.items()}
        limit *= scale
    row = []
    for variable, coefficient in terms.items():
        value, exact = outward(coefficient, up=True)
        if not exact:
            raise UnsupportedError(f"the coefficient of {names.name(variable)} is not a float64")
        row.append((names.place(variable), value))
    value, exact = outward(limit, up=True)
    return Row(tuple(row), value, strict or not exact, None if exact else Limit(limit, strict))


def outward(value: Fraction, *, up: bool) -> tuple[float, bool]:
    """A fraction rounded to float64, up or down, and whether the result is exact."""
    try:
        nearest = float(value)
    except OverflowError:
        raise UnsupportedError("a constant is too large for a float64") from None
    exact = Fraction(nearest)
    if exact == value:
        return nearest, True
    if (exact > value) != up:
        nearest = math.nextafter(nearest, math.inf if up else -math.inf)
    return finite_literal(nearest, "a constant"), False


def _checked(value: Fraction) -> Fraction:
    """Refuse constants whose exact value needs too many bits."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise UnsupportedError("a constant is too large or too fine for a float64")
    return value
