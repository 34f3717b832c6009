"""Properties made in Python and written: the same set, by our readers and by the standard's."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
import torch
import vnnlib
from hypothesis import given, settings
from hypothesis import strategies as st

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.words import VERSIONS, Version
from fgp_vnn.property.conditions import Condition, Space, any_of, property_of
from fgp_vnn.property.expressions import Expression, space_variables
from fgp_vnn.property.load import parse_property
from fgp_vnn.property.model import Property
from fgp_vnn.property.write import format_property
from tests.property.formulas import COMPARE, Formula, Point, X, Y, formulas, points, quarters

odd = st.sampled_from(
    [Fraction(1, 3), Fraction(-2, 7), Fraction(1, 10), Fraction(2**60 + 1, 2**60)]
)
tiny = st.just(Fraction(5e-324))
limits = quarters | odd | st.floats(-4, 4).map(Fraction) | tiny
made = formulas(list(COMPARE), limits, negated=True, leaves=8)
places = points(quarters | st.floats(-2, 2).map(Fraction) | tiny)


def in_box() -> Condition:
    return (X >= -1.5) & (X <= 1.5)


def inside(point: Point) -> bool:
    return all(-1.5 <= value <= 1.5 for value in point[0])


def broken(prop: Property, point: Point) -> bool:
    x, y = (np.array(side, dtype=np.float64) for side in point)
    return prop.broken_by(x, y)


class Standard:
    """A file as the standard's own package reads it, evaluated on its syntax tree."""

    def __init__(self, text: str) -> None:
        query = vnnlib.parse_query_string(text.replace(" Real ", " real "))
        self.asserts = [assertion.expr for assertion in query.assertions]

    def holds(self, point: Point) -> bool:
        return all(self._truth(formula, point) for formula in self.asserts)

    def _truth(self, node: Any, point: Point) -> bool:
        kind = type(node).__name__
        if kind in ("And", "Or"):
            parts = [self._truth(part, point) for part in node.args]
            return all(parts) if kind == "And" else any(parts)
        signs = {"LessEqual": "<=", "LessThan": "<", "GreaterEqual": ">=", "GreaterThan": ">"}
        left, right = (self._value(side, point) for side in (node.lhs, node.rhs))
        return bool(COMPARE[signs[kind]](left, right))

    def _value(self, node: Any, point: Point) -> Fraction:
        kind = type(node).__name__
        if kind == "Var":
            side = point[0] if node.name == "X" else point[1]
            return side[int(np.ravel_multi_index(tuple(node.indices), tuple(node.shape)))]
        if kind in ("Float", "Int"):
            return Fraction(float(node.lexeme))
        values = [self._value(part, point) for part in node.args]
        if kind == "Plus":
            return sum(values, Fraction(0))
        assert kind == "Multiply"
        product = Fraction(1)
        for value in values:
            product *= value
        return product


@pytest.mark.slow
@given(made, st.lists(places, min_size=1, max_size=12))
@settings(deadline=None, max_examples=60)
def test_a_written_property_is_the_same_set_to_every_reader(
    formula: Formula, tried: list[Point]
) -> None:
    prop = property_of(in_box(), formula.made())
    texts = {version: format_property(prop, version=version) for version in VERSIONS}
    read = {version: parse_property(text.encode()) for version, text in texts.items()}
    standard = Standard(texts["2.0"])
    for point in tried:
        expected = inside(point) and formula.holds(point)
        assert broken(prop, point) == expected
        assert all(broken(again, point) == expected for again in read.values())
        assert standard.holds(point) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_property_that_was_read_is_written_with_the_names_and_numbers_it_had(
    version: Version,
) -> None:
    prop = property_of(in_box() & (X[0, 0] > 0.1), (Y[0] >= Y[1]) | (Y[2] * 3 > 0.7))
    text = format_property(prop, version=version)
    again = format_property(parse_property(text.encode()), version=version, title="a title")
    assert again.replace("; a title\n", "").split() == text.split()


def test_comparisons_of_arrays_are_about_all_entries_and_any_about_one() -> None:
    upper = np.array([[0.5, 1.0]], dtype=np.float32)
    prop = property_of((X >= -1) & (upper >= X), (Y[1:] >= Y[0]).any())
    (case,) = prop.cases
    assert case.lower.tolist() == [-1.0, -1.0] and case.upper.tolist() == [0.5, 1.0]
    assert len(case.unsafe) == 2
    same = property_of(
        (torch.full((1, 2), -1.0) <= X) & (torch.from_numpy(upper) >= X),
        any_of([Y[1] >= Y[0], Y[2] >= Y[0]]),
    )
    assert format_property(same) == format_property(prop)


def test_any_of_takes_what_can_be_read_only_once() -> None:
    listed = any_of([Y[i] >= Y[0] for i in (1, 2)])
    assert any_of(Y[i] >= Y[0] for i in (1, 2)).formula == listed.formula


def test_sums_and_matrix_products_are_exact() -> None:
    rows = np.array([[1.0, -2.0, 0.1], [0.0, 1.0, 0.0]])
    condition = rows @ Y - 0.2 <= np.array([0.1, 1.0])
    prop = property_of(in_box(), condition)
    (part,) = prop.cases[0].unsafe
    assert part.written[0].value == Fraction(0.1) + Fraction(0.2)
    one = (Y.sum() - Y[0] - Y[1]) / 3
    assert isinstance(one, Expression) and "0.333333 y[2]" in repr(one)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: -1 <= X <= 1, "a condition has no truth value"),
        (lambda: X[0, 0] * Y[0] <= 1, "not linear"),
        (lambda: property_of(X >= 0, Y[0] <= 0), "no upper bound"),
        (lambda: property_of(in_box(), X[0, 0] <= Y[0]), "relates inputs to outputs"),
        (lambda: np.zeros(3) >= X, "do not fit together"),
        (lambda: float("nan") >= X, "finite"),
        (lambda: space_variables(Space((2,), (1,)))[0][0] + Y[0], "different networks"),
        (lambda: property_of(in_box(), cast(Condition, True)), "unsafe is a condition"),
        (lambda: fgp_vnn.property_of(([0], [1]), cast(Condition, True)), "unsafe is a condition"),
        (lambda: any_of([]), "any_of needs at least one condition"),
        (lambda: any_of([cast(Condition, True)]), "any_of takes conditions"),
    ],
)
def test_what_is_no_property_is_refused_with_what_to_do(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises((InputError, TypeError), match=message):
        make()
