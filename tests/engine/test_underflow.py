"""Networks whose values are ordinary and whose coefficients are not: underflow proves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fgp_vnn
from fgp_vnn.api.certify import Certifier
from fgp_vnn.network import load_network
from tests.helpers.command_line import box
from tests.helpers.network_models import Builder

FACTORS = (1e36, 1e-20, 1e-30)  # the product of the last two is no float32


def vanishing(path: Path, factors: tuple[float, ...] = FACTORS) -> Path:
    """A chain of one neuron per layer: 1e-14 max(x, 0), with coefficients that underflow."""
    builder, value = Builder([1, 1]), "x"
    for k, factor in enumerate(factors):
        value = builder.op("Gemm", value, builder.const([[factor]]), builder.const([0.0]))
        value = builder.op("Relu", value) if k < len(factors) - 1 else value
    return builder.save(path, value)


def spike(path: Path) -> Path:
    """The same behind relu(s x - s + 1): it is above 0 for x > 1 - 1/s only."""
    builder = Builder([1, 1])
    value = builder.op("Gemm", "x", builder.const([[4096.0]]), builder.const([-4095.0]))
    value = builder.op("Relu", value)
    for k, factor in enumerate(FACTORS):
        value = builder.op("Gemm", value, builder.const([[factor]]), builder.const([0.0]))
        value = builder.op("Relu", value) if k < len(FACTORS) - 1 else value
    return builder.save(path, value)


OPTIONS: dict[str, dict[str, Any]] = {
    "split": {"engine": "split"},
    "walk": {"engine": "walk"},
    "bounds": {"engine": "bounds"},
    "float32": {"precision": "float32"},
    "float32 split": {"precision": "float32", "engine": "split"},
    "deployed": {"float32_semantics": True},
    "deployed split": {"float32_semantics": True, "engine": "split"},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("make", [vanishing, spike])
def test_coefficients_that_vanish_prove_nothing(tmp_path: Path, name: str, make: object) -> None:
    assert callable(make)
    model, prop = make(tmp_path / "n.onnx"), tmp_path / "p.vnnlib"
    prop.write_text(box([(-1, 1)], 1, "(>= Y_0 5e-15)"))
    assert load_network(model).runtime.run(np.ones(1, np.float32))[0] > 5e-15
    verdict = fgp_vnn.verify(model, prop, attack=False, timeout=0.5, **OPTIONS[name])
    assert verdict.status in ("sat", "unknown", "timeout")


def test_what_holds_by_more_than_underflow_is_proved_in_float64(tmp_path: Path) -> None:
    model, prop = vanishing(tmp_path / "n.onnx"), tmp_path / "p.vnnlib"
    prop.write_text(box([(-1, 1)], 1, "(>= Y_0 2e-14)"))
    for engine in ("split", "bounds", "walk"):
        assert fgp_vnn.verify(model, prop, attack=False, engine=engine).status == "unsat"


def test_no_point_is_robust_by_underflow(tmp_path: Path) -> None:
    builder = Builder([1, 1])
    value = builder.op("Relu", builder.op("Gemm", "x", builder.const([[1e36]])))
    value = builder.op("Relu", builder.op("Gemm", value, builder.const([[1e-20]])))
    value = builder.op("Gemm", value, builder.const([[0.0, 1e-30]]), builder.const([5e-15, 0.0]))
    model = builder.save(tmp_path / "n.onnx", value)
    for engine in ("auto", "split", "walk", "bounds"):
        off = {"attack": False} if engine in ("auto", "split") else {}
        certifier = Certifier.of(model, engine=engine, **off)
        result = certifier.certify(np.zeros(1), epsilon=1.0, norm="linf", timeout=0.5)
        assert result.status != "robust"
