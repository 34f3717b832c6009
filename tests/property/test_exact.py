"""Properties judged exactly: literals are float64, what is computed from them never rounds."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fgp_vnn.base.errors import MOST, InputError, UnsupportedError
from fgp_vnn.property import Conjunction, Property
from fgp_vnn.property.load import parse_property

COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
}
HEAD = (
    "(declare-const X_0 Real)(declare-const Y_0 Real)(declare-const Y_1 Real)"
    "(assert (>= X_0 0))(assert (<= X_0 1))"
)
Tree = str | tuple[str, tuple["Tree", ...]]  # a literal or a variable, or an operator's terms

literals = st.sampled_from(
    [
        "0.1",
        "0.2",
        "0.3",
        "-0.7",
        "1",
        "3",
        "1e16",
        "1e-30",
        "1e200",
        "5e-324",
        "0.30000000000000004",
    ]
) | st.floats(-1e3, 1e3, width=32).map(repr)
constants: st.SearchStrategy[Tree] = st.recursive(
    literals,
    lambda inner: st.tuples(st.sampled_from("+-*"), st.lists(inner, min_size=2, max_size=3)).map(
        lambda pair: (pair[0], tuple(pair[1]))
    ),
    max_leaves=4,
)
variables = st.sampled_from(["Y_0", "Y_1"])
products: st.SearchStrategy[Tree] = variables | st.builds(
    lambda factor, name: ("*", (factor, name)), constants, variables
)
terms: st.SearchStrategy[Tree] = st.builds(
    lambda sign, parts: (sign, tuple(parts)),
    st.sampled_from("+-"),
    st.lists(products | constants, min_size=2, max_size=4),
)
values = st.sampled_from([0.0, 0.1, 0.3, -1.0, 1e16, 1e-20, 3e38]) | st.floats(width=32).filter(
    np.isfinite
)


def text(tree: Tree) -> str:
    return tree if isinstance(tree, str) else f"({tree[0]} {' '.join(map(text, tree[1]))})"


def value(tree: Tree, point: dict[str, Fraction]) -> Fraction:
    if isinstance(tree, str):
        return point[tree] if tree in point else Fraction(float(tree))
    first, *rest = (value(part, point) for part in tree[1])
    for other in rest:
        first = {"+": operator.add, "-": operator.sub, "*": operator.mul}[tree[0]](first, other)
    return first


def read(asserted: str) -> Property:
    return parse_property(f"{HEAD}(assert {asserted})".encode())


@pytest.mark.slow
@given(
    st.sampled_from(list(COMPARE)),
    terms,
    terms | constants,
    st.lists(st.tuples(values, values), min_size=1, max_size=8),
)
@settings(deadline=None, max_examples=75)
def test_a_comparison_is_decided_as_by_rational_numbers(
    sign: str, left: Tree, right: Tree, points: list[tuple[float, float]]
) -> None:
    try:
        prop = read(f"({sign} {text(left)} {text(right)})")
    except UnsupportedError:
        return  # a coefficient that is no float64
    for y in points:
        named = {f"Y_{i}": Fraction(v) for i, v in enumerate(y)}
        expected = COMPARE[sign](value(left, named), value(right, named))
        assert prop.broken_by(np.array([0.5]), np.array(y)) == expected


def test_a_limit_that_is_no_float64_is_kept_as_written_for_the_judge() -> None:
    """0.1 + 0.2 lies below 0.30000000000000004, and y_0 - y_1 can be in between."""
    exact = Fraction(0.1) + Fraction(0.2)
    above = Fraction(0.1 + 0.2)
    assert exact < above
    between = (exact + above) / 2
    y = np.array([float(above), float(above - between)])
    assert Fraction(y[0]) - Fraction(y[1]) == between
    for sign, met in ((">=", True), (">", True), ("<=", False), ("<", False)):
        prop = read(f"({sign} (- Y_0 Y_1) (+ 0.1 0.2))")
        assert prop.broken_by(np.array([0.5]), y) == met
    y[1] = float(above - exact)
    for sign, met in ((">=", True), (">", False), ("<=", True), ("<", False)):
        prop = read(f"({sign} (- Y_0 Y_1) (+ 0.1 0.2))")
        assert prop.broken_by(np.array([0.5]), y) == met


def test_rows_are_evaluated_without_rounding() -> None:
    generator = np.random.default_rng(0)
    for _ in range(150):
        rows = generator.normal(size=(4, 5)) * 10.0 ** generator.integers(-12, 12, size=(4, 5))
        y = generator.normal(size=5).astype(np.float32).astype(np.float64)
        limits = rows @ y + np.spacing(rows @ y) * generator.integers(-1, 2, size=4)
        for row, limit in zip(rows, limits, strict=True):
            exact = sum(Fraction(a) * Fraction(b) for a, b in zip(row, y, strict=True))
            for strict in (False, True):
                flags = np.array([strict])
                met = Conjunction(row[None], np.array([limit]), flags).meets(y)
                assert met == (exact < Fraction(limit) if strict else exact <= Fraction(limit))


@pytest.mark.parametrize(
    ("row", "y", "limit", "met"),
    [
        ([1e308, 1e308], [10.0, -10.0], 0.0, True),  # products that overflow
        ([1e308, 1e308], [10.0, -9.0], 0.0, False),
        ([5e-324, -5e-324], [0.5, 0.25], 0.0, False),  # products that underflow
        ([5e-324, -5e-324], [0.25, 0.5], 0.0, True),
        ([1e16, 1.0, -1e16], [1.0, 1.0, 1.0], 0.5, False),
    ],
)
def test_neither_overflow_nor_underflow_decides(
    row: list[float], y: list[float], limit: float, met: bool
) -> None:
    conjunction = Conjunction(np.array([row]), np.array([limit]), np.array([False]))
    assert conjunction.meets(np.array(y)) == met


LINE_ENDS = ["\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_a_comment_that_may_end_before_its_line_does_is_refused(end: str) -> None:
    for rest in ("(assert (<= Y_0 0))\n", " more words"):
        with pytest.raises(UnsupportedError, match=r"line 2, column 10: a comment with text after"):
            parse_property(f"{HEAD}\n; comment{end}{rest}".encode())


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n", "\f\n", " \r\n"])
def test_what_ends_a_line_ends_its_comment(end: str) -> None:
    data = f"{HEAD}; caf\u00e9 \u2026 \u00c5{end}(assert (<= Y_0 0)){end}".encode()
    prop = parse_property(data)
    assert len(prop.cases[0].unsafe[0].limits) == 1
    assert len(parse_property(HEAD.encode() + b"\r(assert (<= Y_0 0))\r").cases[0].unsafe) == 1


@pytest.mark.parametrize("code", ["\x01", "\v", "\x1b", "\x1c", "\x7f"])
def test_control_characters_outside_of_comments_are_refused(code: str) -> None:
    with pytest.raises(ValueError, match=f"line 1, column 2: byte 0x{ord(code):02x} is not ASCII"):
        parse_property(f" {code}{HEAD}".encode())


HEAD_2 = (
    "(vnnlib-version <2.0>)(declare-network N (declare-input X real [1])"
    "(declare-output Y real [1]))"
)
LONG = ["1" * 20_000, "0." + "1" * 20_000 + "e999", "a" * 20_000, "1" * 1500 + "x"]


@pytest.mark.parametrize("long", LONG, ids=["digits", "exponent", "word", "number and letter"])
def test_no_message_repeats_a_long_word_whole(long: str) -> None:
    asserts = [f"(<= Y {long})", f"(<= {long} Y)", f"({long} Y 1)", f"(<= (* {long} Y) (+ Y 1))"]
    asserts += [f"(<= ({long} Y 1) 1)", long]
    refused = 0
    for body in asserts:
        for text in (
            f"{HEAD}(assert {body.replace('Y', 'Y_0')})",
            f"{HEAD_2}(assert {body.replace('Y', 'Y[0]')})",
            f"{HEAD_2}(assert (<= Y[{long}] 1))",
            f"{HEAD}(declare-const {long} Real)",
            f"{HEAD}(declare-const X_{long} Real)",
            f"{HEAD}({long} 1)",
            HEAD_2.replace("[1]", f"[{long}]"),
            HEAD_2.replace("X", long) + "(assert (<= Y 1))",
        ):
            try:
                parse_property(text.encode())
            except InputError as error:
                assert len(str(error)) <= MOST and "\n" not in str(error)
                refused += 1
    assert refused > 30


@pytest.mark.parametrize(
    ("bounds", "ends", "single"),
    [
        ("(>= X_0 0)(<= X_0 1)", (0.0, 1.0), True),
        ("(> X_0 0)(< X_0 1)", (5e-324, 1 - 2**-53), True),
        ("(> X_0 0.5)(<= X_0 0.50000001)", (0.5 + 2**-53, 0.50000001), False),
        ("(>= X_0 0.5)(< X_0 0.50000001)", (0.5, 0.5000000099999999), True),
        ("(> X_0 0)(< X_0 5e-324)", (5e-324, 0.0), False),  # nothing lies between
    ],
)
def test_the_ends_of_a_box_are_off_its_open_faces(
    bounds: str, ends: tuple[float, float], single: bool
) -> None:
    asserts = "".join(f"(assert ({part}))" for part in bounds[1:-1].split(")("))
    head = "(declare-const X_0 Real)(declare-const Y_0 Real)"
    (case,) = parse_property(f"{head}{asserts}(assert (>= Y_0 0))".encode()).cases
    assert tuple(float(end[0]) for end in case.ends()) == ends
    assert case.without_single().tolist() == [not single]
