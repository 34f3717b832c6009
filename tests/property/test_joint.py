"""Properties of several networks, and of inputs and outputs together."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.property.load import parse_property
from fgp_vnn.property.model import Property

PAIR = """(vnnlib-version <2.0>)
(declare-network f (declare-input X real [2]) (declare-output Y real [1]))
(declare-network g (isomorphic-to f) (declare-input U real [2]) (declare-output V real [1]))
(assert (and (<= X[0] 1.0) (>= X[0] -1.0) (<= X[1] 1.0) (>= X[1] -1.0)))
"""
ONE = """(declare-const X_0 Real)(declare-const X_1 Real)(declare-const Y_0 Real)
(assert (<= X_0 1))(assert (>= X_0 0))(assert (<= X_1 2))(assert (>= X_1 0))
"""


def read(text: str) -> Property:
    return parse_property(text.encode(), joint=True)


def test_inputs_that_are_equal_are_one() -> None:
    prop = read(PAIR + "(assert (and (== X[0] U[0]) (== X[1] U[1])))(assert (> Y[0] V[0]))")
    assert prop.joint is not None
    assert prop.joint.places == (0, 1, 0, 1) and prop.joint.passed == ()
    assert (prop.inputs, prop.outputs, prop.declared) == (2, 2, (4, 2))
    (case,) = prop.cases
    assert case.unsafe_at(np.array([1.0, 0.5])) and not case.unsafe_at(np.array([0.5, 0.5]))


def test_equal_inputs_share_the_bounds_of_both() -> None:
    prop = read(PAIR + "(assert (== X[0] U[1]))(assert (== U[0] X[1]))(assert (<= U[1] 0.25))")
    assert prop.cases[0].upper.tolist() == [0.25, 1.0]


def test_an_equality_within_an_alternative_joins_no_inputs() -> None:
    bounds = "(assert (and (<= U[0] 1.0) (>= U[0] 0.0) (<= U[1] 1.0) (>= U[1] 0.0)))"
    prop = read(PAIR + bounds + "(assert (or (== X[0] U[0]) (> Y[0] 3.0)))")
    assert prop.inputs == 4
    apart = np.array([0.5, 0.0, 0.25, 0.0])
    assert not prop.broken_by(apart, np.array([0.0, 0.0, 0.5, 0.25]))
    assert prop.broken_by(apart, np.array([4.0, 0.0, 0.5, 0.25]))


def test_bounds_follow_from_constraints_between_inputs() -> None:
    text = PAIR + "(assert (== X[1] U[1]))(assert (and (<= U[0] X[0]) (>= U[0] -3.0)))"
    prop = read(text + "(assert (<= Y[0] V[0]))")
    assert prop.joint is not None and prop.joint.passed
    assert prop.cases[0].lower.tolist() == [-1.0, -1.0, -3.0]
    assert prop.cases[0].upper.tolist() == [1.0, 1.0, 1.0]


def test_what_is_implied_is_rounded_outwards() -> None:
    prop = read(ONE + "(assert (<= (* 3.0 X_1) X_0))(assert (<= Y_0 0))")
    upper = float(prop.cases[0].upper[1])
    assert 3 * Fraction(np.nextafter(upper, 0)) < 1 <= 3 * Fraction(upper)


def test_bounds_of_many_inputs_follow_from_constraints_between_them() -> None:
    count = 3200
    names = [f"X_{i}" for i in range(count)]
    text = "".join(f"(declare-const {name} Real)" for name in (*names, "Y_0"))
    text += "(assert (<= X_0 1))" + "".join(f"(assert (>= {name} 0))" for name in names)
    text += "".join(f"(assert (<= {name} X_0))" for name in names[1:])
    prop = read(text + f"(assert (<= (+ {' '.join(names)}) 0.5))(assert (<= Y_0 0))")
    assert prop.cases[0].upper.tolist() == [0.5] * count


@pytest.mark.parametrize(
    "text",
    [
        "(assert (>= X_1 (* 1e-320 X_0)))",  # X_0 <= 1e320 X_1
        "(assert (<= (* 1e-320 X_0) (- X_1 1)))",
    ],
)
def test_what_is_implied_and_no_float64_leaves_the_bounds_as_they_are(text: str) -> None:
    (case,) = read(ONE + text + "(assert (<= Y_0 0))").cases
    assert case.lower[0] == 0 and case.upper[1] == 2


@pytest.mark.parametrize("point, met", [((0.5, 0.5), True), ((0.5, 0.75), False)])
def test_a_constraint_between_inputs_counts_for_what_is_written(
    point: tuple[float, float], met: bool
) -> None:
    prop = read(ONE + "(assert (<= X_1 X_0))(assert (<= Y_0 0))")
    rounded = np.array([-1.0, 0.5, 0.5])  # what float32 might make of the inputs behind it
    assert prop.broken_by(np.array(point), rounded) == met


def test_inputs_and_outputs_may_be_added_up() -> None:
    prop = read(ONE + "(assert (>= (+ Y_0 (* 2.0 X_1)) 3.0))")
    assert prop.joint is not None and prop.joint.passed == (1,)
    for x, y in ((1.0, 0.5), (1.0, 1.0), (1.5, 0.0)):
        assert prop.broken_by(np.array([0.0, x]), np.array([y, x])) == (y + 2 * x >= 3)


def test_constraints_that_exclude_each_other_leave_no_case() -> None:
    shared = "(assert (== X[0] U[0]))(assert (== X[1] U[1]))"
    text = "(assert (and (> V[0] (+ Y[0] 0.05)) (< V[0] (- Y[0] {}))))"
    assert read(PAIR + shared + text.format("0.05")).cases == ()
    assert read(PAIR + shared + text.format("-0.05")).cases == ()
    assert len(read(PAIR + shared + text.format("-0.06")).cases) == 1


@pytest.mark.parametrize(
    "text, reason",
    [
        (PAIR + "(assert (> Y[0] V[0]))", "line 3: 2 networks: only verify takes several"),
        (ONE + "(assert (<= X_1 X_0))", "line 3: a constraint that relates inputs to each other"),
    ],
)
def test_who_does_not_ask_for_joint_networks_gets_none(text: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        parse_property(text.encode())
