"""Random formulas about two inputs and three outputs, with what they mean in rational numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import strategies as st

from fgp_vnn.property.conditions import Condition, Space
from fgp_vnn.property.expressions import space_variables

Point = tuple[list[Fraction], list[Fraction]]
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
X, Y = space_variables(Space((1, 2), (3,)))


class Comparison(NamedTuple):
    """coefficients . variables SIGN limit, of the inputs (side 0) or of the outputs (side 1)."""

    sign: str
    side: int
    coefficients: tuple[Fraction, ...]
    limit: Fraction

    def holds(self, point: Point) -> bool:
        values = zip(self.coefficients, point[self.side], strict=True)
        return bool(COMPARE[self.sign](sum((c * v for c, v in values), Fraction(0)), self.limit))

    def text(self, version: str) -> str:
        """The formula in VNN-LIB."""
        name = "XY"[self.side] + ("_%d" if version == "1.0" else "[%d]")
        factors = [(f"{float(c)}", name % i) for i, c in enumerate(self.coefficients) if c]
        terms = [x if c == "1.0" else f"(* {c} {x})" for c, x in factors]
        left = f"(+ {' '.join(terms)})" if len(terms) > 1 else "".join(terms) or "0.0"
        return f"({self.sign} {left} {float(self.limit)})"

    def made(self) -> Condition:
        """The formula in Python."""
        flat = (X, Y)[self.side].flatten()
        total = sum((c * flat[i] for i, c in enumerate(self.coefficients)), flat[0] * 0)
        return COMPARE[self.sign](total, self.limit)  # type: ignore[no-any-return]


class Connective(NamedTuple):
    word: str  # and, or, not
    parts: tuple[Any, ...]

    def holds(self, point: Point) -> bool:
        values = [part.holds(point) for part in self.parts]
        return {"and": all(values), "or": any(values), "not": not values[0]}[self.word]

    def text(self, version: str) -> str:
        return f"({self.word} {' '.join(part.text(version) for part in self.parts)})"

    def made(self) -> Condition:
        first, *rest = (part.made() for part in self.parts)
        if self.word == "not":
            return ~first  # type: ignore[no-any-return]
        for other in rest:
            first = first & other if self.word == "and" else first | other
        return first  # type: ignore[no-any-return]


Formula = Comparison | Connective
quarters = st.integers(-8, 8).map(lambda n: Fraction(n, 4))


def formulas(
    signs: list[str], limits: st.SearchStrategy[Fraction], *, negated: bool, leaves: int
) -> st.SearchStrategy[Formula]:
    """Comparisons by these signs, joined by and, or, and not where that is allowed."""
    sign = st.sampled_from(signs)
    factor = st.sampled_from([Fraction(n, 2) for n in (-3, -2, -1, 1, 2, 3)])
    one = st.tuples(factor, st.integers(0, 1)).map(lambda p: (p[0], Fraction(0))[:: 1 - 2 * p[1]])
    on_input = st.builds(Comparison, sign, st.just(0), one, limits)
    three = st.tuples(quarters, quarters, quarters)
    on_output = st.builds(Comparison, sign, st.just(1), three, limits)

    def joined(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        some = st.lists(inner, min_size=1, max_size=4).map(tuple)
        both = st.builds(Connective, st.sampled_from(["and", "or"]), some)
        return both | st.builds(Connective, st.just("not"), st.tuples(inner)) if negated else both

    return st.recursive(on_input | on_output, joined, max_leaves=leaves)


def points(values: st.SearchStrategy[Fraction]) -> st.SearchStrategy[Point]:
    """Inputs and outputs."""
    sides = (st.lists(values, min_size=n, max_size=n) for n in (2, 3))
    return st.tuples(*sides)
