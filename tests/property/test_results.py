"""The results file: what is written is what was found, and it is never half there."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.verdict import Counterexample, Status, Verdict
from fgp_vnn.property import Property, Variable
from fgp_vnn.property.results import format_results, read_results, write_results

OLD = Property((), 2, 1)
NEW = Property(
    (),
    3,
    2,
    "2.0",
    (Variable("A", "float32", (1, 2)), Variable("B", "Real", ())),
    (Variable("Out", "float32", (2,)),),
)
STATUSES: tuple[Status, ...] = ("unsat", "unknown", "timeout", "error")
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


def sat(x: list[float], y: list[float]) -> Verdict:
    example = Counterexample(np.array(x, np.float32), np.array(y, np.float32))
    return Verdict("sat", "attack", example)


def same_bits(values: NDArray[np.float64] | None, expected: NDArray[np.float32]) -> bool:
    assert values is not None
    return values.astype(np.float32).tobytes() == expected.tobytes()


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_but_sat_is_one_line(tmp_path: Path, status: Status) -> None:
    write_results(tmp_path / "out.txt", Verdict(status))
    assert (tmp_path / "out.txt").read_bytes() == f"{status}\n".encode()
    results = read_results(tmp_path / "out.txt")
    assert (results.status, results.x, results.y) == (status, None, None)


def test_a_counterexample_is_written_in_the_competition_form() -> None:
    text = format_results(sat([0.5, 0.1], [-1.5]), OLD)
    assert text == "sat\n((X_0 0.5)\n(X_1 0.10000000149011612)\n(Y_0 -1.5))\n"


def test_a_2_0_counterexample_names_every_variable_in_order_without_exponents() -> None:
    lines = format_results(sat([0.1, 1e-30, 3.0], [0.0, -2e30]), NEW).splitlines()
    assert lines[:3] == ["sat", "A float32 [1,2]", "0.10000000149011612"]
    assert lines[4:8] == ["B Real []", "3.0", "Out float32 [2]", "0.0"] and len(lines) == 9
    assert "e" not in lines[3] + lines[8] and float(lines[3]) == np.float32(1e-30)


@pytest.mark.parametrize("prop", [OLD, NEW], ids=["1.0", "2.0"])
@given(st.data())
@settings(deadline=None)
def test_the_digits_read_back_as_the_same_float32(
    tmp_path_factory: pytest.TempPathFactory, prop: Property, data: st.DataObject
) -> None:
    sizes = prop.inputs, prop.outputs
    x, y = (data.draw(st.lists(floats, min_size=n, max_size=n)) for n in sizes)
    path = tmp_path_factory.mktemp("results") / "out.txt"
    write_results(path, sat(x, y), prop)
    results = read_results(path, prop)
    assert same_bits(results.x, np.array(x, np.float32))
    assert same_bits(results.y, np.array(y, np.float32))


@pytest.mark.parametrize(
    "verdict",
    [Verdict("sat"), sat([0.0], [0.0]), sat([0.0, np.nan], [0.0]), sat([0.0, 0.0], [np.inf])],
    ids=["no counterexample", "wrong size", "nan", "inf"],
)
def test_sat_without_a_sound_counterexample_is_never_written(
    tmp_path: Path, verdict: Verdict
) -> None:
    path = tmp_path / "out.txt"
    path.write_text("timeout\n")
    with pytest.raises(ValueError):
        write_results(path, verdict, OLD)
    assert path.read_text() == "timeout\n"


def test_writing_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    for verdict in (Verdict("timeout"), sat([0.0, 1.0], [2.0]), Verdict("unsat")):
        write_results(path, verdict, OLD)
    assert path.read_text() == "unsat\n"
    assert [file.name for file in tmp_path.iterdir()] == ["out.txt"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_failure_in_the_last_step_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.txt"
    path.write_text("timeout\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_results(path, Verdict("unsat"))
    assert path.read_text() == "timeout\n"
    assert [file.name for file in tmp_path.iterdir()] == ["out.txt"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / "out.txt")
    write_results(tmp_path / "link.txt", Verdict("unsat"))
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "out.txt").read_text() == "unsat\n"


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_results("/dev/null", Verdict("unsat"))
    assert Path("/dev/null").is_char_device()


def test_unwritable_paths_are_input_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    paths = (tmp_path, tmp_path / "no" / "out.txt", tmp_path / "file" / "out.txt")
    for path in (*paths, tmp_path / "loop", tmp_path / ("a" * 300), "a\0b"):
        with pytest.raises(InputError, match="cannot be written: ") as caught:
            write_results(path, Verdict("unsat"))
        assert "\n" not in str(caught.value)
    assert {file.name for file in tmp_path.iterdir()} == {"file", "loop"}


@pytest.mark.parametrize(
    "text",
    [
        "sat\n((X_0 0.5)\n (X_1 -1e-3)\n (Y_0 2))",
        "sat\r\n(\r\n(X_0 0.5)\r\n(X_1 -0.001)\r\n(Y_0 2)\r\n)\r\n",
        " sat \n\n(X_0 0.5) (X_1 -.001)\n\n(Y_0 2.)\n",
        "sat\nX_0 0.5\nX_1 -0.001\nY_0 +2.0",
        "sat\n( ( X_0 0.5 )( X_1 -0.001 )\t( Y_0 2 ) )",
        "sat\nX float32 [1,2]\n0.5\n-0.001\nY float32 [ 1 ]\n2.0\n",
    ],
)
def test_counterexamples_of_other_tools_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "out.txt").write_bytes(text.encode())
    results = read_results(tmp_path / "out.txt")
    assert results.x is not None and results.x.tolist() == [0.5, -0.001]
    assert results.y is not None and results.y.tolist() == [2.0]


def test_outputs_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("sat\n((X_0 1))")
    assert read_results(tmp_path / "out.txt").y is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "'' is none of sat, unsat"),
        ("holds\n", "'holds' is none of"),
        ("SAT\n", "'SAT' is none of"),
        ("unsat\n((X_0 1))", "text after unsat"),
        ("sat\n((X_0 1)", "parentheses do not match"),
        ("sat\n)X_0 1(", "parentheses do not match"),
        ("sat\n((X_0 1) (X_2 1))", "X_2 stands where X_1 should"),
        ("sat\n((X_0 1) (X_0 1))", "X_0 stands where X_1 should"),
        ("sat\n((Y_0 1))", "without X_0"),
        ("sat\n((X_0 1) (Z_0 1))", "'Z_0' is neither X_i nor Y_i"),
        ("sat\n((X_0 1) (X_1))", "'X_1' is without its value"),
        ("sat\n((X_0 nan))", "'nan' is not a finite number"),
        ("sat\n((X_0 1e999))", "'1e999' is not a finite number"),
        ("sat\n((X_0 \u0661))", "is not a finite number"),
        ("sat\nX real [2]\n1.0\n", "X [2] has 1 value"),
        ("sat\nX real [1]\n1.0\nX real [1]\n1.0", "a variable has two values"),
        ("sat\nA real [1]\n1.0\n", "A may be an input or an output"),
        ("sat\nY real [1]\n1.0\n", "without an input"),
        ("sat\nX real [1]\n1.0 2.0\n", "'1.0 2.0' is not a finite number"),
        (f"sat\nX real [{'9' * 5000}]\n1.0\n", "X is too large"),
    ],
)
def test_a_bad_results_file_is_an_input_error(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "out.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_results(tmp_path / "out.txt")
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_a_counterexample_for_another_property_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("sat\nA float32 [2]\n1.0\n2.0\n")
    with pytest.raises(InputError, match="differ from the property's: A \\[1, 2\\], B \\[\\]"):
        read_results(tmp_path / "out.txt", NEW)


def test_a_missing_results_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_results(tmp_path / "none.txt")


@given(st.text(alphabet="satXY_019.e-+() \n[]aun\u0661", max_size=60))
@settings(deadline=None)
def test_random_text_gives_results_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("results") / "out.txt"
    for content in (text, "sat\n" + text, "sat\nX a [1]\n" + text):
        path.write_text(content, encoding="utf-8")
        try:
            results = read_results(path)
        except InputError as error:
            assert str(error)
        else:
            assert results.x is None or np.isfinite(results.x).all()
