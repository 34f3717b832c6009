"""Formulas: and/or over bounds on one input and rows over the outputs.

Numbers. A literal stands for the float64 nearest to it, as the competition's scorer and every
tool read it. Rounding is monotone, so each float32 or float64 point that meets a bound as written
meets it as read: no counterexample that a network can be given is lost. Constants that a file
computes (sums, products) are folded exactly; where the result is no float64 it is rounded away
from the feasible side and made strict, which is a superset for a proof. For an input, which is a
float64, it is the same set. A sum of outputs may lie between what is written and what it is rounded
to, so a row keeps the limit as written for judging counterexamples.
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
_MAX_BITS = 10_000  # of a folded constant: the widest float64 product of four has 8,400


class Bound(NamedTuple):
    """x[input] <= value (or >= where not upper), strict or not."""

    input: int
    upper: bool
    value: float
    strict: bool
    line: int


class Row(NamedTuple):
    """sum of coefficient * y[output] <= limit, or < where strict; inputs may follow the outputs."""

    terms: tuple[tuple[int, float], ...]
    limit: float
    strict: bool
    written: Limit | None = None  # where the limit is no float64

    @property
    def as_written(self) -> Limit:
        """What the sum is compared with, exactly."""
        return self.written or Limit(Fraction(self.limit), self.strict)


class And(NamedTuple):
    """True where all of the formulas are."""

    parts: tuple[Formula, ...]


class Or(NamedTuple):
    """True where one of the formulas is."""

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
    """How many variables there are, and what the file calls each."""

    inputs: int
    outputs: int
    name: Callable[[int], str]
    # Inputs that rows speak of, each with its place behind the outputs; None: rows may not.
    passed: dict[int, int] | None = None

    @property
    def width(self) -> int:
        """How many numbers a row speaks of: the outputs, and the inputs behind them."""
        return self.outputs + len(self.passed or ())

    def place(self, variable: int) -> int:
        """The place of a variable in a row; an input is given one when it is first asked for."""
        if variable >= self.inputs or self.passed is None:
            return variable - self.inputs
        return self.outputs + self.passed.setdefault(variable, len(self.passed))


class Read(NamedTuple):
    """What a file of VNN-LIB says."""

    names: Names
    formulas: list[Formula]
    places: tuple[int, ...]  # of each declared input among those that differ
    networks: tuple[Declared, ...] = ()  # none in VNN-LIB 1.0
    inputs: tuple[Variable, ...] = ()  # of all networks
    outputs: tuple[Variable, ...] = ()


def number(literal: str) -> float | None:
    """The float64 nearest to a literal, or None for what is not one."""
    return float(literal) if _NUMBER.fullmatch(literal) else None


def finite_literal(value: float, literal: str) -> float:
    """The value of a literal; raises InputError if it overflows."""
    if math.isinf(value):
        raise InputError(f"{plain(literal, 60)} is too large for a float64")
    return value


def product(factors: list[Linear]) -> Linear:
    """The product of expressions of which at most one has a variable."""
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
    """What holds exactly where the formula does not."""
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
    """terms <= limit (or < where strict) as a bound, a row, or its truth value."""
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
    """The float64 next to a fraction on one side, and whether it is the fraction itself."""
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
    """Refuse constants whose exact value grows without end."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise UnsupportedError("a constant is too large or too fine for a float64")
    return value
