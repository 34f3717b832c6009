"""What a VNN-LIB file means as a property."""

from __future__ import annotations

import gc
import gzip
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.property import Case, Property, Variable, load_property, normal

UNIT_BOX = "(assert (>= X_0 0)) (assert (<= X_0 1))"


def declarations(inputs: int, outputs: int) -> str:
    names = [f"X_{i}" for i in range(inputs)] + [f"Y_{i}" for i in range(outputs)]
    return "".join(f"(declare-const {name} Real)\n" for name in names)


def load(folder: Path, text: str, inputs: int = 1, outputs: int = 2) -> Property:
    path = folder / "property.vnnlib"
    path.write_text(declarations(inputs, outputs) + text)
    return load_property(path)


def load2(folder: Path, asserts: str, declared: str | None = None) -> Property:
    declared = declared or "(declare-input X float32 [2]) (declare-output Y float32 [1,2])"
    path = folder / "property.vnnlib"
    path.write_text(f"(vnnlib-version <2.0>)\n(declare-network N {declared})\n{asserts}")
    return load_property(path)


def boxes(prop: Property) -> list[tuple[list[float], list[float]]]:
    return [(case.lower.tolist(), case.upper.tolist()) for case in prop.cases]


def rows(case: Case) -> list[list[tuple[list[float], float, bool]]]:
    """Conjunctions as lists of (row, limit, strict)."""
    return [
        list(zip(c.rows.tolist(), c.limits.tolist(), c.strict.tolist(), strict=True))
        for c in case.unsafe
    ]


def test_bounds_make_a_box_and_output_comparisons_rows(tmp_path: Path) -> None:
    prop = load(tmp_path, f"{UNIT_BOX} (assert (>= Y_0 Y_1)) (assert (<= Y_1 2.5))")
    assert (prop.inputs, prop.outputs, prop.version, prop.warnings) == (1, 2, "1.0", ())
    assert boxes(prop) == [([0.0], [1.0])]
    assert rows(prop.cases[0]) == [[([-1.0, 1.0], 0.0, False), ([0.0, 1.0], 2.5, False)]]


def test_integers_exponents_comments_and_line_breaks_are_read(tmp_path: Path) -> None:
    text = "; caf\xe9 (\n(assert\r\n (>= X_0 -1e-05)) ; )\n(assert (<= 2\tX_0))(assert (<= X_0 3.))"
    prop = load(tmp_path, text + "(assert (<= Y_0 .5))")
    assert boxes(prop) == [([2.0], [3.0])]


def test_gzip_is_read_whatever_the_name(tmp_path: Path) -> None:
    text = declarations(1, 1) + UNIT_BOX
    for name in ("a.vnnlib.gz", "a.vnnlib"):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
        assert boxes(load_property(str(tmp_path / name))) == [([0.0], [1.0])]


def test_the_tightest_of_several_bounds_counts(tmp_path: Path) -> None:
    prop = load(tmp_path, UNIT_BOX + "(assert (<= X_0 0.5)) (assert (>= X_0 -3))")
    assert boxes(prop) == [([0.0], [0.5])]


def test_equal_bounds_are_a_point_and_no_warning(tmp_path: Path) -> None:
    prop = load(tmp_path, "(assert (= X_0 0.1)) (assert (== Y_0 Y_1))")
    assert boxes(prop) == [([0.1], [0.1])] and prop.warnings == ()
    assert rows(prop.cases[0]) == [[([1.0, -1.0], 0.0, False), ([-1.0, 1.0], 0.0, False)]]


def test_or_over_inputs_and_or_over_outputs_multiply(tmp_path: Path) -> None:
    text = """(assert (or (and (>= X_0 0) (<= X_0 1)) (and (>= X_0 2) (<= X_0 3))))
              (assert (or (>= Y_0 1) (and (<= Y_0 0) (<= Y_1 0))))"""
    prop = load(tmp_path, text)
    assert boxes(prop) == [([0.0], [1.0]), ([2.0], [3.0])]
    assert [len(case.unsafe) for case in prop.cases] == [2, 2] and prop.warnings == ()


def test_mixed_alternatives_are_boxes_with_their_own_unsafe_sets(tmp_path: Path) -> None:
    text = """(assert (or (and (>= X_0 0) (<= X_0 1) (>= Y_0 5))
                          (and (>= X_0 2) (<= X_0 3) (<= Y_1 6))
                          (and (<= X_0 1) (>= Y_1 7) (>= X_0 0))))"""
    prop = load(tmp_path, text)
    assert boxes(prop) == [([0.0], [1.0]), ([2.0], [3.0])]
    assert rows(prop.cases[0]) == [[([-1.0, -0.0], -5.0, False)], [([-0.0, -1.0], -7.0, False)]]
    assert rows(prop.cases[1]) == [[([0.0, 1.0], 6.0, False)]]


def test_zero_and_minus_zero_bound_the_same_box(tmp_path: Path) -> None:
    text = """(assert (or (and (>= X_0 0.0) (<= X_0 1) (>= Y_0 5))
                          (and (>= X_0 -0.0) (<= X_0 1) (>= Y_1 5))))"""
    assert [len(case.unsafe) for case in load(tmp_path, text).cases] == [2]


def test_alternatives_nest(tmp_path: Path) -> None:
    text = """(assert (or (<= Y_0 -9) (and (or (<= Y_0 0) (<= Y_1 1))
                                           (or (>= Y_0 2) (>= Y_1 3)))))"""
    prop = load(tmp_path, UNIT_BOX + text)
    x = np.array([0.5])
    for y in ((-9.0, 9.0), (0.0, 3.0), (2.0, 1.0)):
        assert prop.broken_by(x, np.array(y))
    for y in ((0.0, 2.0), (1.0, 3.0), (1.0, 1.0)):
        assert not prop.broken_by(x, np.array(y))


def test_outputs_that_are_not_finite_break_nothing(tmp_path: Path) -> None:
    prop = load(tmp_path, UNIT_BOX + "(assert (>= Y_0 0))")
    for bad in (np.nan, np.inf):
        assert not prop.broken_by(np.array([0.5]), np.array([1.0, bad]))
    assert not prop.broken_by(np.array([np.nan]), np.array([1.0, 1.0]))


def test_two_input_alternatives_intersect(tmp_path: Path) -> None:
    text = (
        UNIT_BOX
        + """(assert (or (<= X_0 0.25) (>= X_0 0.75)))
                         (assert (or (<= X_0 0.5) (>= X_0 0.875)))(assert (<= Y_0 0))"""
    )
    prop = load(tmp_path, text)
    assert boxes(prop) == [([0.0], [0.25]), ([0.875], [1.0])] and prop.warnings == ()


@pytest.mark.parametrize(
    ("bounds", "inside", "outside"),
    [
        ("(> X_0 0) (<= X_0 1)", (5e-324, 1.0), (0.0,)),
        ("(>= X_0 0) (< X_0 1)", (0.0, math.nextafter(1, 0)), (1.0,)),
        ("(>= X_0 0) (> X_0 0) (<= X_0 1)", (0.5,), (0.0,)),
        ("(>= X_0 0) (<= X_0 1) (< X_0 1)", (0.5,), (1.0,)),
        ("(> X_0 -1) (>= X_0 0) (<= X_0 1)", (0.0,), (-0.5,)),
    ],
)
def test_strict_input_bounds_keep_the_closed_box_but_bar_the_face(
    tmp_path: Path, bounds: str, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    (case,) = load(tmp_path, f"(assert (and {bounds}))").cases
    assert (case.lower.tolist(), case.upper.tolist()) == ([0.0], [1.0])
    assert all(case.contains(np.array([x])) for x in inside)
    assert not any(case.contains(np.array([x])) for x in outside)


def test_strict_output_comparisons_stay_strict(tmp_path: Path) -> None:
    (case,) = load(tmp_path, UNIT_BOX + "(assert (> Y_0 Y_1))").cases
    assert not case.unsafe_at(np.array([1.0, 1.0]))
    assert case.unsafe_at(np.array([math.nextafter(1, 2), 1.0]))


def test_equality_meets_a_comparison_that_is_not_strict(tmp_path: Path) -> None:
    prop = load(tmp_path, UNIT_BOX + "(assert (>= Y_0 1.0)) (assert (<= Y_1 0.0))")
    assert prop.broken_by(np.array([0.0], np.float32), np.array([1.0, 0.0], np.float32))


def test_contradictory_bounds_leave_no_case_and_a_warning(tmp_path: Path) -> None:
    prop = load(tmp_path, UNIT_BOX + "\n(assert (>= X_0 1.5))")
    assert prop.cases == ()
    (warning,) = prop.warnings
    assert "line 5: X_0 >= 1.5 contradicts X_0 in [0.0, 1.0]" in warning


def test_bounds_that_touch_in_an_open_face_are_empty(tmp_path: Path) -> None:
    assert load(tmp_path, "(assert (> X_0 1)) (assert (<= X_0 1))").cases == ()
    assert len(load(tmp_path, "(assert (>= X_0 1)) (assert (<= X_0 1))").cases) == 1


def test_one_empty_box_of_several_is_dropped_with_a_warning(tmp_path: Path) -> None:
    text = "(assert (or (and (>= X_0 0) (<= X_0 1)) (and (>= X_0 3) (<= X_0 2))))"
    prop = load(tmp_path, text + "(assert (<= Y_0 0))")
    assert boxes(prop) == [([0.0], [1.0])]
    assert len(prop.warnings) == 1 and "empty input box" in prop.warnings[0]


def test_comparisons_of_constants_are_decided(tmp_path: Path) -> None:
    text = UNIT_BOX + "(assert (<= Y_0 0))"
    assert len(load(tmp_path, text + "(assert (<= (* 2 3) 6))").cases) == 1
    assert load(tmp_path, text + "(assert (< (* 2 3) (- X_0 (- X_0 6))))").cases == ()


def test_linear_terms_are_folded(tmp_path: Path) -> None:
    text = """(assert (<= (* -2 X_0) (- 1))) (assert (<= (+ X_0 X_0 1) 3))
              (assert (<= (- (* 2 (+ Y_0 1)) Y_1 (/ Y_1 2)) (* 0 Y_0)))"""
    (case,) = load(tmp_path, text).cases
    assert (case.lower.tolist(), case.upper.tolist()) == ([0.5], [1.0])
    assert rows(case) == [[([2.0, -1.5], -2.0, False)]]


def test_a_folded_bound_that_is_no_float64_is_rounded_outward_and_open(tmp_path: Path) -> None:
    (case,) = load(tmp_path, "(assert (<= (* 3 X_0) 1)) (assert (>= (* 3 X_0) -1))").cases
    low, high = float(case.lower[0]), float(case.upper[0])
    below = math.nextafter(high, 0)
    assert -low == high and Fraction(below) < Fraction(1, 3) < Fraction(high)
    assert case.contains(np.array([below])) and not case.contains(np.array([high]))


def test_a_folded_limit_that_is_no_float64_is_not_met_by_its_rounding(tmp_path: Path) -> None:
    (case,) = load(tmp_path, UNIT_BOX + "(assert (<= (+ Y_0 1e-30) 1))").cases
    assert rows(case) == [[([1.0, 0.0], 1.0, True)]]


def test_coefficients_that_are_no_float64_are_scaled_away(tmp_path: Path) -> None:
    (case,) = load(tmp_path, UNIT_BOX + "(assert (<= (/ Y_0 3) (+ Y_1 1)))").cases
    assert rows(case) == [[([1.0, -3.0], 3.0, False)]]


def test_no_output_constraint_makes_every_output_unsafe_and_warns(tmp_path: Path) -> None:
    prop = load(tmp_path, UNIT_BOX)
    assert prop.broken_by(np.array([0.5]), np.array([0.0, 0.0]))
    assert "no constraint on the output" in prop.warnings[0]


def test_repeated_alternatives_do_not_multiply(tmp_path: Path) -> None:
    prop = load(tmp_path, UNIT_BOX + "(assert (or (<= Y_0 0) (>= Y_0 1)))" * 60)
    assert len(prop.cases) == 1 and len(prop.cases[0].unsafe) == 2


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"(assert (or (<= Y_0 {i}) (>= Y_1 {i})))" for i in range(60)),
        "".join(f"(assert (or (<= X_0 0.{i}) (>= Y_1 {i})))" for i in range(1, 60)),
    ],
    ids=["outputs", "mixed"],
)
def test_exponential_disjunctions_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnsupportedError, match="alternatives"):
        load(tmp_path, UNIT_BOX + text)


def test_endless_combinations_of_empty_boxes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(normal, "MAX_STEPS", 100_000)
    many = ("(assert (or " + "".join(f"(<= {v} -{i})" for i in range(1, 999)) + "))" for v in "YX")
    text = "".join(many).replace("X", "X_0").replace("Y", "Y_0")
    with pytest.raises(UnsupportedError, match="combinations of alternatives"):
        load(tmp_path, UNIT_BOX + text)


def test_2_0_arrays_are_flattened_in_c_order_and_inputs_joined(tmp_path: Path) -> None:
    declared = """(declare-input A Real [2,3]) (declare-input B real [])
                  (declare-output C float32 [2,1]) (declare-output D float32 [1])"""
    bounds = "".join(
        f"(assert (and (>= A[{i},{j}] {i}.{j}) (<= A[{i},{j}] 9.0)))"
        for i in range(2)
        for j in range(3)
    )
    text = bounds + "(assert (== B 0.5)) (assert (< (+ C[1,0] (* 2.0 D[0])) 3.0))"
    prop = load2(tmp_path, text, declared)
    assert prop.cases[0].lower.tolist() == [0.0, 0.1, 0.2, 1.0, 1.1, 1.2, 0.5]
    assert rows(prop.cases[0]) == [[([0.0, 1.0, 2.0], 3.0, True)]]
    assert prop.version == "2.0"
    assert prop.input_variables == (Variable("A", "Real", (2, 3)), Variable("B", "real", ()))
    assert prop.output_variables[0] == Variable("C", "float32", (2, 1))


def test_2_0_strict_comparisons_stay_strict(tmp_path: Path) -> None:
    box = "(assert (and (> X[0] 0.0) (<= X[0] 1.0) (>= X[1] 0.0) (< X[1] 1.0)))"
    prop = load2(tmp_path, box + "(assert (< Y[0,0] 3.0)) (assert (<= Y[0,1] 3.0))")
    assert prop.broken_by(np.array([1.0, 0.0]), np.array([2.0, 3.0]))
    for x, y in (((0.0, 0.0), (2.0, 3.0)), ((1.0, 1.0), (2.0, 3.0)), ((1.0, 0.0), (3.0, 3.0))):
        assert not prop.broken_by(np.array(x), np.array(y))


def test_2_0_not_equal_is_either_side(tmp_path: Path) -> None:
    box = "(assert (and (>= X[0] 0.0) (<= X[0] 1.0) (== X[1] 0.0)))"
    prop = load2(tmp_path, box + "(assert (!= Y[0,0] Y[0,1])) (assert (!= X[0] 0.5))")
    y = np.array([1.0, 2.0])
    assert len(prop.cases) == 2
    assert prop.broken_by(np.array([0.25, 0.0]), y)
    assert prop.broken_by(np.array([1.0, 0.0]), y[::-1])
    assert not prop.broken_by(np.array([0.25, 0.0]), np.array([1.0, 1.0]))
    assert not prop.broken_by(np.array([0.5, 0.0]), y)


def test_reading_leaves_the_garbage_collector_as_it_was(tmp_path: Path) -> None:
    load(tmp_path, UNIT_BOX)
    with pytest.raises(InputError):
        load(tmp_path, "(")
    assert gc.isenabled()


def test_reading_a_property_imports_no_torch() -> None:
    modules = "fgp_vnn.property, fgp_vnn.property.results"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
