"""Random formulas against direct evaluation, random text against the readers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgp_vnn.base.errors import InputError
from fgp_vnn.property.load import parse_property

INPUTS, OUTPUTS = 2, 2
COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
}


class Comparison(NamedTuple):
    sign: str
    variables: str  # X or Y
    coefficients: tuple[Fraction, ...]
    limit: Fraction

    def holds(self, point: dict[str, list[Fraction]]) -> bool:
        values = zip(self.coefficients, point[self.variables], strict=True)
        return COMPARE[self.sign](sum((c * v for c, v in values), Fraction(0)), self.limit)

    def text(self, version: int) -> str:
        name = f"{self.variables}_%d" if version == 1 else f"{self.variables}[%d]"
        factors = [(f"{float(c)}", name % i) for i, c in enumerate(self.coefficients) if c]
        terms = [x if c == "1.0" else f"(* {c} {x})" for c, x in factors]
        left = f"(+ {' '.join(terms)})" if len(terms) > 1 else "".join(terms) or "0.0"
        return f"({self.sign} {left} {float(self.limit)})"


class Connective(NamedTuple):
    word: str
    parts: tuple[Formula, ...]

    def holds(self, point: dict[str, list[Fraction]]) -> bool:
        values = [part.holds(point) for part in self.parts]
        return all(values) if self.word == "and" else any(values)

    def text(self, version: int) -> str:
        return f"({self.word} {' '.join(part.text(version) for part in self.parts)})"


Formula = Comparison | Connective

quarters = st.integers(-8, 8).map(lambda n: Fraction(n, 4))
factors = st.sampled_from([Fraction(n, 2) for n in (-3, -2, -1, 1, 2, 3)])
signs = st.sampled_from(list(COMPARE))
on_input = st.builds(
    lambda sign, i, c, limit: Comparison(sign, "X", (c, Fraction(0))[:: 1 - 2 * i], limit),
    signs,
    st.integers(0, 1),
    factors,
    quarters,
)
on_output = st.builds(Comparison, signs, st.just("Y"), st.tuples(quarters, quarters), quarters)
formulas: st.SearchStrategy[Formula] = st.recursive(
    on_input | on_output,
    lambda inner: st.builds(
        Connective,
        st.sampled_from(["and", "or"]),
        st.lists(inner, min_size=1, max_size=4).map(tuple),
    ),
    max_leaves=12,
)
points = st.fixed_dictionaries(
    {
        "X": st.lists(quarters, min_size=INPUTS, max_size=INPUTS),
        "Y": st.lists(quarters, min_size=OUTPUTS, max_size=OUTPUTS),
    }
)
BOX = [
    Comparison(sign, "X", unit, limit)
    for unit in ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))
    for sign, limit in ((">=", Fraction(-3, 2)), ("<=", Fraction(3, 2)))
]
HEADS = {
    1: "".join(f"(declare-const {v}_{i} Real)" for v in "XY" for i in range(2)),
    2: "(vnnlib-version <2.0>)\n(declare-network N (declare-input X real [2])"
    " (declare-output Y real [2]))\n",
}


def file_text(asserts: list[Formula], version: int) -> str:
    parts = [*BOX, *asserts]
    return HEADS[version] + "\n".join(f"(assert {part.text(version)})" for part in parts)


@pytest.mark.slow
@given(st.lists(formulas, max_size=4), st.lists(points, min_size=1, max_size=20))
@settings(deadline=None, max_examples=80)
def test_a_property_is_broken_exactly_where_all_asserts_hold(
    asserts: list[Formula], tried: list[dict[str, list[Fraction]]]
) -> None:
    for version in (1, 2):
        prop = parse_property(file_text(asserts, version).encode())
        for point in tried:
            x, y = (np.array(point[side], dtype=np.float64) for side in "XY")
            expected = all(part.holds(point) for part in [*BOX, *asserts])
            assert prop.broken_by(x, y) == expected


@given(st.lists(formulas, max_size=4))
@settings(deadline=None, max_examples=30)
def test_boxes_are_distinct_bounded_and_not_empty(asserts: list[Formula]) -> None:
    prop = parse_property(file_text(asserts, 1).encode())
    keys = set()
    for case in prop.cases:
        assert np.isfinite(case.lower).all() and np.isfinite(case.upper).all()
        assert (case.lower <= case.upper).all()
        faces = [b"" if f is None else f.tobytes() for f in (case.open_lower, case.open_upper)]
        keys.add((case.lower.tobytes(), case.upper.tobytes(), *faces))
    assert len(keys) == len(prop.cases)


WORDS = """( ) (assert (or (and (<= (>= (< (== (= (!= (+ (- (* (/ X_0 Y_0 X_1 X[0] Y[0] X[9] 0.5
-1.0 1 1e400 nan ; (declare-const (declare-fun () Real real [2] X Y [] (declare-network N | ,
(declare-input (declare-output (declare-hidden (vnnlib-version <2.0> "s" 9999999999999999999999"""
words = st.sampled_from([*WORDS.split(), "\n"])


@given(st.integers(1, 2), st.lists(words, max_size=30), st.integers(0, 6))
@settings(deadline=None, max_examples=120)
def test_random_words_give_a_property_or_an_input_error(
    version: int, chosen: list[str], closing: int
) -> None:
    text = file_text([], version) + " ".join(chosen) + ")" * closing
    try:
        prop = parse_property(text.encode())
    except InputError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert (prop.inputs, prop.outputs) == (2, 2)


@given(st.integers(1, 2), st.integers(0, 400), st.integers(0, 8), st.binary(max_size=6))
@settings(deadline=None, max_examples=120)
def test_damaged_files_give_a_property_or_an_input_error(
    version: int, position: int, removed: int, inserted: bytes
) -> None:
    asserts: list[Formula] = [Comparison("<=", "Y", (Fraction(1), Fraction(-1)), Fraction(0))]
    data = file_text(asserts, version).encode()
    position %= len(data)
    damaged = data[:position] + inserted + data[position + removed :]
    try:
        prop = parse_property(damaged)
    except InputError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert prop.inputs > 0 and prop.outputs > 0


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_binary_junk_is_an_input_error(data: bytes) -> None:
    try:
        parse_property(data)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        raise AssertionError("junk was read as a property")
