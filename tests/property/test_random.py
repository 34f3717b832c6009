"""Random formulas against direct evaluation, random text against the readers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgp_vnn.base.errors import InputError
from fgp_vnn.property.load import parse_property
from tests.property.formulas import Comparison, Formula, Point, formulas, points, quarters

written = formulas(["<=", "<", ">=", ">", "=="], quarters, negated=False, leaves=12)
BOX = [
    Comparison(sign, 0, unit, limit)
    for unit in ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))
    for sign, limit in ((">=", Fraction(-3, 2)), ("<=", Fraction(3, 2)))
]
HEADS = {
    "1.0": "".join(f"(declare-const {v} Real)" for v in ("X_0", "X_1", "Y_0", "Y_1", "Y_2")),
    "2.0": "(vnnlib-version <2.0>)\n(declare-network N (declare-input X real [2])"
    " (declare-output Y real [3]))\n",
}
versions = st.sampled_from(list(HEADS))


def file_text(asserts: list[Formula], version: str) -> str:
    parts = [*BOX, *asserts]
    return HEADS[version] + "\n".join(f"(assert {part.text(version)})" for part in parts)


@pytest.mark.slow
@given(st.lists(written, max_size=4), st.lists(points(quarters), min_size=1, max_size=20))
@settings(deadline=None, max_examples=40)
def test_a_property_is_broken_exactly_where_all_asserts_hold(
    asserts: list[Formula], tried: list[Point]
) -> None:
    for version in HEADS:
        prop = parse_property(file_text(asserts, version).encode())
        for point in tried:
            x, y = (np.array(side, dtype=np.float64) for side in point)
            expected = all(part.holds(point) for part in [*BOX, *asserts])
            assert prop.broken_by(x, y) == expected


@given(st.lists(written, max_size=4))
@settings(deadline=None, max_examples=30)
def test_boxes_are_distinct_bounded_and_not_empty(asserts: list[Formula]) -> None:
    prop = parse_property(file_text(asserts, "1.0").encode())
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


@given(versions, st.lists(words, max_size=30), st.integers(0, 6))
@settings(deadline=None, max_examples=120)
def test_random_words_give_a_property_or_an_input_error(
    version: str, chosen: list[str], closing: int
) -> None:
    text = file_text([], version) + " ".join(chosen) + ")" * closing
    try:
        prop = parse_property(text.encode())
    except InputError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert (prop.inputs, prop.outputs) == (2, 3)


@given(versions, st.integers(0, 400), st.integers(0, 8), st.binary(max_size=6))
@settings(deadline=None, max_examples=120)
def test_damaged_files_give_a_property_or_an_input_error(
    version: str, position: int, removed: int, inserted: bytes
) -> None:
    row = (Fraction(1), Fraction(-1), Fraction(0))
    asserts: list[Formula] = [Comparison("<=", 1, row, Fraction(0))]
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
