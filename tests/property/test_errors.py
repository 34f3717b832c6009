"""Whatever is wrong with a property file is said in one line, with the place."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.property import load_property, normal, sexpr
from fgp_vnn.property.load import parse_property

HEAD = "(declare-const X_0 Real) (declare-const X_1 Real)\n(declare-const Y_0 Real)\n"
BOX = "(assert (and (>= X_0 0) (<= X_0 1) (>= X_1 0) (<= X_1 1)))\n"  # line 3
HEAD2 = """(vnnlib-version <2.0>)
(declare-network N (declare-input X real [2]) (declare-output Y real [1]))
"""


def message(path: Path, kind: type[InputError] = InputError) -> str:
    with pytest.raises(InputError) as caught:
        load_property(path)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    return str(caught.value)


def message_of(folder: Path, text: str | bytes, kind: type[InputError] = InputError) -> str:
    path = folder / "bad.vnnlib"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return message(path, kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        (" ; nothing\n", "empty"),
        (HEAD + "(assert (<= X_0 1)", "line 3: '(' is never closed"),
        (HEAD + "(assert (<= X_0 1))\n )", "line 4, column 2: unexpected ')'"),
        (HEAD + "assert (<= X_0 1)", "line 3, column 1: unexpected 'assert'"),
        (HEAD + "()", "line 3: '()' is empty"),
        (HEAD + "(assert ())", "line 3: '()' is empty"),
        (HEAD + "((assert) 1)", "line 3: expected an operator, found '(assert)'"),
        (HEAD + "(assert)", "line 3: assert takes one formula, not 0"),
        (HEAD + "(assert X_0)", "line 3: expected a formula, found 'X_0'"),
        (HEAD + "(assert (and\nX_0))", "line 3: expected a formula, found 'X_0'"),
        (HEAD + "(assert (or))", "line 3: 'or' without arguments"),
        (HEAD + "(assert (<= X_0))", "line 3: '<=' compares two terms, not 1"),
        (HEAD + "(assert (<= 0 X_0 1))", "line 3: '<=' compares two terms, not 3"),
        (HEAD + "(assert (and\n(<= X_0 (+))))", "line 4: '+' without arguments"),
        (HEAD + BOX + "(assert (<= X_2 1))", "line 4: variable X_2 is not declared"),
        (HEAD + BOX + "(assert (<= Y_0 Y_1))", "line 4: variable Y_1 is not declared"),
        (HEAD + "(assert (<= X_0 NaN))", "line 3: 'NaN' is neither"),
        (HEAD + "(assert (<= X_0 inf))", "line 3: 'inf' is neither"),
        (HEAD + "(assert (<= X_0 -Infinity))", "line 3: '-Infinity' is neither"),
        (HEAD + "(assert (<= X_0 1_000))", "line 3: '1_000' is neither"),
        (HEAD + "(assert (<= X_0 0x10))", "line 3: '0x10' is neither"),
        (HEAD + "(assert (<= X_0 1e999))", "line 3: 1e999 is too large for a float64"),
        (HEAD + "(assert (= Y_0 -1e999))", "line 3: -1e999 is too large for a float64"),
        ("(declare-const X_0 Real)(declare-const X_2 Real)", "line 1: X_2 is declared, but X_1"),
        ("(declare-const X_1 Real)", "line 1: X_1 is declared, but X_0 is not"),
        (HEAD + "(declare-const X_1 Real)", "line 3: X_1 is already declared in line 1"),
        ("(declare-const Y_0 Real)", "no input"),
        ("(declare-const X_0 Real)", "no output"),
        ("(declare-const X_0)", "line 1: expected (declare-const NAME Real)"),
        (HEAD.encode() + b"(assert \xe9)", "line 3, column 9: byte 0xe9 is not ASCII"),
        (HEAD.encode() + b"\0", "line 3: a zero byte"),
        (bytes(range(256)), "a zero byte"),
        ((HEAD + BOX).encode("utf-16"), "a zero byte"),
        (HEAD2 + "(assert (<= X[0] 1.0)", "line 3: '(' is never closed"),
        (HEAD2 + "(assert (X[0] < 1.0))", "line 3, column 10: syntax error at 'X'"),
        (HEAD2, "the file ends too early"),
        (HEAD2 + "(assert (<= X[2] 1.0))", "line 3: Index out of bounds for variable: X[2]"),
        (
            HEAD2
            + HEAD2.partition("\n")[2].replace("X", "A").replace("Y", "B")
            + "(assert (<= Y[0] 1.0))",
            "network N is declared twice",
        ),
        (HEAD2 + "(assert (<= X 1.0))", "line 3: Not enough indices"),
        (HEAD2 + "(assert (<= X[-1] 1.0))", "line 3: '[-1]' must be whole numbers, none below 0"),
        (HEAD2 + "(assert (<= X[0.9] 1.0))", "line 3: '[0.9]' must be whole numbers"),
        (HEAD2 + "(assert\n(<= Y[ -9, 1 ] 1.0))", "line 4: '[ -9, 1 ]' must be whole numbers"),
        (HEAD2 + "(assert (<= Y[0,\n-1] 1.0))", "line 3: '[0,' must be whole numbers"),
        (HEAD2 + "(assert (<= Z[0] 1.0))", "line 3: Undeclared variable: Z"),
        (HEAD2 + "(assert (<= X[0] NaN))", "line 3: Undeclared variable: NaN"),
        (HEAD2 + "(assert (<= X[0] 1e5))", "line 3, column 19: syntax error at 'e5'"),
        (HEAD2 + f"(assert (<= X[0] {'9' * 400}.0))", "out of range"),
        (HEAD2 + f"(assert (<= X[{'9' * 40}] 1.0))", "out of range"),
        (HEAD2 + "(assert (<= X[0] 1.0))\0 ignored by the parser", "line 3: a zero byte"),
        (HEAD2.partition("\n")[2] + "(assert (<= X[0] 1.0))", "line 1: VNN-LIB 2.0 starts with"),
        (HEAD2.replace("[2]", "[0]") + "(assert (<= Y[0] 1.0))", "line 2: Failed to parse dim"),
    ],
)
def test_bad_text_is_an_input_error_with_its_place(
    tmp_path: Path, text: str | bytes, expected: str
) -> None:
    assert expected in message_of(tmp_path, text)


UNDECIDED = [
    (BOX + "(assert (<= X_0 X_1))", "line 4: a constraint that relates inputs to each other"),
    (BOX + "(assert (<= Y_0\nX_1))", "line 4: a constraint that relates inputs to outputs"),
    (BOX + "(assert (<= (* Y_0 Y_0) 1))", "line 4: a product of two variables"),
    (BOX + "(assert (<= (/ 1 Y_0) 1))", "line 4: division"),
    (BOX + "(assert (<= (/ Y_0 0) 1))", "line 4: division"),
    (BOX + "(assert (<= (sin Y_0) 1))", "line 4: 'sin' is not supported"),
    (BOX + "(assert (not (<= Y_0 1)))", "line 4: 'not' is not supported"),
    (BOX + "(check-sat)", "line 4: command 'check-sat' is not supported"),
    (BOX + "(declare-const Z Real)", "line 4: variable 'Z' is neither X_i nor Y_i"),
    (BOX + "(declare-const X_02 Real)", "line 4: variable 'X_02' is neither"),
    (BOX + "(declare-const X_2 Int)", "line 4: X_2 has type 'Int', not Real"),
    (BOX + "(declare-fun X_2 (Real) Real)", "line 4: functions are not supported"),
    ("", "X_0 has no lower bound (inputs without one: 2)"),
    ("(assert (>= X_0 0))(assert (= X_1 0))", "X_0 has no upper bound"),
    ("(assert (or (and (= X_0 0) (= X_1 0)) (= X_0 1)))", "X_1 has no lower bound"),
    (f"(assert (<= (* {'1e300 ' * 100}Y_0) 1))", "line 3: a constant is too large"),
    (
        f"(assert (<= (* {'1e-300 ' * 100}Y_0) 1))",
        "line 3: a constant is too large or too fine",
    ),
    ("(assert (<= (* 1e-300 X_0) 1e300))", "line 3: a constant is too large"),
    ("(assert (<= (* 0.1 0.1 Y_0) 1))", "line 3: the coefficient of Y_0 is not a float64"),
    ("(assert " + "(and " * 5000 + ")" * 5001, "nested deeper than 100 levels"),
    ("(assert (<= " + "(- " * 5000 + "X_0" + ")" * 5000 + " 1))", "nested deeper than 100"),
    ("(" * 1_000_000, "line 3, column 101: nested deeper than 100 levels"),
]
UNDECIDED_2 = [
    (HEAD2.replace("2.0", "2.1"), "line 1: version '<2.1>'"),
    (HEAD2 + "(assert (<= X[0] X[1]))", "line 3: a constraint that relates inputs to each"),
    (HEAD2 + "(assert (<= X[0]\nY[0]))", "line 3: a constraint that relates inputs to out"),
    (HEAD2 + "(assert (<= (* Y[0] Y[0]) 1.0))", "line 3: a product of two variables"),
    (HEAD2 + "(assert (<= Y[0] 1.0))", "X[0] has no lower bound"),
    (HEAD2.replace("X real", "X int8") + "(assert (<= Y[0] 1.0))", "X has type int8"),
    (HEAD2.replace("X real", "X Foo") + "(assert (<= Y[0] 1.0))", "X has type Foo"),
    (HEAD2.replace("[2]", "[99999,99999]") + "(assert (<= Y[0] 1.0))", "10,000,000 elements"),
    (
        HEAD2 + "(declare-network M (equal-to N) (declare-input A real [2])"
        "(declare-output B real [1]))\n(assert (<= Y[0] 1.0))",
        "line 3: 2 networks: only verify takes several",
    ),
    (
        HEAD2.replace("(declare-out", '\n(declare-hidden H real [1] "h") (declare-out')
        + "(assert (<= Y[0] 1.0))",
        "line 3: hidden layers are not supported (H)",
    ),
    (HEAD2 + "(assert " + "(and " * 100_000 + ")" * 100_001, "nested deeper than 100 levels"),
]


@pytest.mark.parametrize(
    ("text", "expected"), [*((HEAD + text, place) for text, place in UNDECIDED), *UNDECIDED_2]
)
def test_what_cannot_be_decided_is_unsupported_with_its_place(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert expected in message_of(tmp_path, text, UnsupportedError)


@pytest.mark.parametrize("text", [b"()", b"(assert"], ids=["lists", "text"])
def test_what_takes_more_memory_than_there_is_is_refused_before_it_is_parsed(text: bytes) -> None:
    needed = sexpr.TEXT_BYTES * len(text) + sexpr.LIST_BYTES
    with pytest.raises(UnsupportedError, match=f"about {needed} bytes of memory"):
        parse_property(text, needed - 1)
    with pytest.raises(InputError) as caught:
        parse_property(text, needed)
    assert "memory" not in str(caught.value)


def test_alternatives_that_are_written_out_may_be_any_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(normal, "MAX_CLAUSES", 10)
    monkeypatch.setattr(normal, "MAX_STEPS", 10)
    declared = "".join(f"(declare-const {name} Real)" for name in ("X_0", "Y_0"))
    parts = "".join(f"(and (>= X_0 0) (<= X_0 {i}) (>= Y_0 {i}))" for i in range(1, 300))
    assert len(parse_property(f"{declared}(assert (or {parts}))".encode()).cases) == 299


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    assert "does not exist" in message(tmp_path / "absent.vnnlib")
    assert "is a directory" in message(tmp_path)
    with pytest.raises(InputError, match="is not a path"):
        load_property("a\0b")
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        load_property("a" * 5000)


def test_a_truncated_gzip_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.vnnlib.gz"
    path.write_bytes(gzip.compress((HEAD + BOX).encode())[:-9])
    assert "broken gzip file" in message(path)
