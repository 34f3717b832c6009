"""Limits on outputs behind a final softmax, which comparisons of outputs do not need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fgp_vnn
from fgp_vnn.property import load_property
from tests.helpers.command_line import box
from tests.helpers.network_models import Builder


# Of two inputs in [-1, 1] the softmax is at most 1 / (1 + exp(-2)) = 0.8808.
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("given", ["file", "loaded"])
@pytest.mark.parametrize(
    ("constraints", "status"),
    [
        (("(>= Y_0 0.89)", "(>= Y_0 -0.12)"), "unsat"),
        (("(>= Y_0 0.87)", "(>= Y_0 -0.13)"), "sat"),
        (("(>= (- Y_0 Y_1) 0.77)", "(>= (- Y_0 Y_1) 2.01)"), "unsat"),
    ],
)
def test_a_limit_behind_a_softmax_is_decided(
    tmp_path: Path, operator: str, given: str, constraints: tuple[str, str], status: str
) -> None:
    builder = Builder([1, 2])
    below = builder.op("Relu", builder.op("Neg", "x"))
    same = builder.op("Sub", builder.op("Relu", "x"), below)  # the identity
    model: Any = builder.save(tmp_path / "a.onnx", builder.op(operator, same, axis=1))
    prop = tmp_path / "a.vnnlib"
    prop.write_text(box([(-1.0, 1.0)] * 2, 2, constraints[operator == "LogSoftmax"]))
    asked: Any = load_property(prop)
    if given == "file":
        verdict = fgp_vnn.verify(model, prop, timeout=20)
    else:
        verdict = fgp_vnn.verify(fgp_vnn.load_model(model), asked, timeout=20)
    assert verdict.status == status
    if status == "sat":
        assert verdict.counterexample is not None
        assert asked.broken_by(verdict.counterexample.x, verdict.counterexample.y.astype(float))
