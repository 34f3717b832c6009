"""Sets of inputs that are not written as conditions."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import fgp_vnn
from fgp_vnn.base.errors import InputError
from tests.helpers.small_networks import random_network, save_onnx


def test_a_linf_ball_is_the_box_that_it_is_with_its_clip_and_its_mask(tmp_path: Path) -> None:
    model = save_onnx(random_network((3, 5, 2), 0), tmp_path / "net.onnx")
    _, y = fgp_vnn.variables(model)
    x, epsilon = np.array([0.1, 0.95, 0.5], np.float32), 0.1
    ball = fgp_vnn.Ball(x, epsilon, "linf", clip=(0, 1), mask=[True, True, False])
    (case,) = fgp_vnn.property_of(ball, y[0] >= y[1]).cases
    assert case.upper[1] == 1 and case.lower[2] == case.upper[2] == x[2]
    for point in (case.lower, case.upper):
        for value in (point, np.nextafter(point, -9.0), np.nextafter(point, 9.0)):
            near = all(
                abs(Fraction(float(a)) - Fraction(float(c))) <= Fraction(epsilon)
                for a, c in zip(value, x, strict=True)
            )
            inside = near and bool((value >= 0).all() and (value <= 1).all()) and value[2] == x[2]
            assert case.contains(value) == inside


def test_verify_takes_a_linf_ball_and_says_who_answers_about_others(tmp_path: Path) -> None:
    model = save_onnx(random_network((3, 5, 2), 0), tmp_path / "net.onnx")
    x, (_, y) = np.full(3, 0.5), fgp_vnn.variables(model)
    least = fgp_vnn.bounds(model, fgp_vnn.Ball(x, 0.1, "linf"))
    ball = fgp_vnn.Ball(x, 0.1, "linf")
    above, below = float(least.upper.max()) + 0.01, float(least.lower.max()) - 0.01
    assert fgp_vnn.verify(model, inputs=ball, unsafe=(y >= above).any()).status == "unsat"
    assert fgp_vnn.verify(model, inputs=ball, unsafe=(y >= below).any()).status == "sat"
    for norm in ("l2", "l1"):
        with pytest.raises(InputError, match=f"norm {norm} is none: certify and radius .*maximise"):
            fgp_vnn.verify(model, inputs=fgp_vnn.Ball(x, 0.1, norm), unsafe=y[0] >= 1)
