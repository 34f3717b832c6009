"""Conditions on a network's variables, and the property made of an input and an output one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from fgp_vnn.base.errors import InputError
from fgp_vnn.property.formula import And, Formula, Names, Or, negated
from fgp_vnn.property.model import Property, Variable
from fgp_vnn.property.normal import to_cases
from fgp_vnn.property.shown import show_formula


@dataclass(frozen=True)
class Space:
    """The variables of one network: its inputs X and its outputs Y."""

    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]

    @property
    def names(self) -> Names:
        """The number of inputs and outputs, and the name of each in messages."""
        inputs, outputs = math.prod(self.input_shape), math.prod(self.output_shape)

        def name(variable: int) -> str:
            return f"x[{variable}]" if variable < inputs else f"y[{variable - inputs}]"

        return Names(inputs, outputs, name)

    def declared(self) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
        """The variables as VNN-LIB 2.0 declares them."""
        inputs, outputs = self.input_shape, self.output_shape
        return (Variable("X", "Real", inputs),), (Variable("Y", "Real", outputs),)


class Condition:
    """A conjunction of comparisons; `.any()` makes it a disjunction."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, space: Space, parts: tuple[Formula, ...]) -> None:
        self.space, self.parts = space, parts

    @property
    def formula(self) -> Formula:
        return self.parts[0] if len(self.parts) == 1 else And(self.parts)

    def any(self) -> Condition:
        """The condition that at least one of the comparisons holds."""
        return Condition(self.space, (Or(self.parts),))

    def all(self) -> Condition:
        """The conjunction of the comparisons, which is the default."""
        return self

    def __and__(self, other: Condition) -> Condition:
        return Condition(self._checked(other), (And((self.formula, other.formula)),))

    def __or__(self, other: Condition) -> Condition:
        return Condition(self._checked(other), (Or((self.formula, other.formula)),))

    def __invert__(self) -> Condition:
        return Condition(self.space, (negated(self.formula, self.space.names),))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a condition has no truth value: write (low <= x) & (x <= high) for "
            "low <= x <= high, and &, |, ~ for and, or, not"
        )

    def __repr__(self) -> str:
        return f"<condition: {show_formula(self.formula, self.space.names)}>"

    def _checked(self, other: Condition) -> Space:
        if not isinstance(other, Condition):
            raise InputError(f"a condition is combined with another one, not {type(other)}")
        if other.space != self.space:
            raise InputError("the two conditions are about different networks")
        return self.space


def property_of(inputs: Condition, unsafe: Condition) -> Property:
    """The property that an input breaks if it meets `inputs` and its output meets `unsafe`."""
    for what, given in (("unsafe", unsafe), ("inputs", inputs)):
        if not isinstance(given, Condition):
            pair = ", a pair (lower, upper) or a Ball" if what == "inputs" else ""
            name = type(given).__name__
            raise InputError(f"{what} is a condition on variables{pair}, not {name}")
    if inputs.space != unsafe.space:
        raise InputError("inputs and unsafe are about different networks")
    names = inputs.space.names
    cases, warnings = to_cases(names, [inputs.formula, unsafe.formula])
    declared = inputs.space.declared()
    return Property(cases, names.inputs, names.outputs, "1.0", *declared, tuple(warnings))


def any_of(conditions: Iterable[Condition]) -> Condition:
    """The condition that at least one of the conditions holds."""
    given = list(conditions)
    if not given:
        raise InputError("any_of needs at least one condition")
    if not isinstance(given[0], Condition):
        raise InputError(f"any_of takes conditions on variables, not {type(given[0]).__name__}")
    for other in given[1:]:
        given[0]._checked(other)
    return Condition(given[0].space, (Or(tuple(c.formula for c in given)),))
