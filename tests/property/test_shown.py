"""Conditions and expressions as they show themselves."""

from __future__ import annotations

import numpy as np
import pytest

from fgp_vnn.property.conditions import Condition, Space
from fgp_vnn.property.expressions import space_variables

X, Y = space_variables(Space((100,), (3,)))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Y[0] >= Y[1], "y[1] <= y[0]"),
        (Y[2] > 3.5, "y[2] > 3.5"),
        (Y[0] < -1, "y[0] < -1"),
        (2 * Y[0] - Y[1] >= 1, "y[1] <= 2 y[0] - 1"),
        ((Y[0] >= Y[1]) | (Y[2] > 3.5), "y[1] <= y[0] or y[2] > 3.5"),
        ((X[0] <= 0.5) & ((Y[0] <= 0) | (Y[1] <= 0)), "x[0] <= 0.5 and (y[0] <= 0 or y[1] <= 0)"),
        (X[3] > 0.25, "x[3] > 0.25"),
        ((Y[:1] <= 1).any(), "y[0] <= 1"),
    ],
)
def test_a_condition_reads_as_it_is_written(condition: Condition, text: str) -> None:
    assert repr(condition) == f"<condition: {text}>"


def test_a_condition_on_many_entries_is_short_and_says_how_many() -> None:
    low, high = np.zeros(100), np.ones(100)
    inside = (low <= X) & (high >= X)
    assert len(repr(inside)) < 100 and "x[0] >= 0 and x[1] >= 0" in repr(inside)
    assert "... (200 in all)" in repr(inside)


def test_an_expression_reads_as_it_is_written() -> None:
    assert repr(Y[0] - 2 * Y[1] + 0.5) == "<expression: y[0] - 2 y[1] + 0.5>"
    assert repr(-Y[1]) == "<expression: -y[1]>" and repr(Y[0] - Y[0] - 1) == "<expression: -1>"
    assert repr(X.sum()) == "<expression: x[0] + x[1] + x[2] + x[3] + ...>"
