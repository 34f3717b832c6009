"""A network that is not understood is attacked: `sat` with a counterexample, never `unsat`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import fgp_vnn
from fgp_vnn.base.errors import InputError, OutOfMemoryError, UnsupportedError
from fgp_vnn.cli.main import main
from fgp_vnn.property import load_property
from tests.helpers.command_line import box, small_model
from tests.helpers.network_models import Builder

BOX = [(-1.0, 1.0)] * 3
# No rule of ours reads either: of the first torch has a module, with gradients, of the other none.
STRANGE = ("TopK", "Hardmax")


class Sorted(nn.Module):
    """The two largest entries of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.topk(x, 2)[0]


def strange(folder: Path, kind: str, *, softmax: bool = False) -> Path:
    """Two outputs of three inputs: the two largest of them, or the first two of their Hardmax."""
    builder = Builder([1, 3])
    if kind == "TopK":
        end, _ = builder.op("TopK", "x", builder.ints(2), outputs=2)
    else:
        end = builder.op("MatMul", builder.op("Hardmax", "x"), builder.const(np.eye(3)[:, :2]))
    return builder.save(folder / "a.onnx", builder.op("Softmax", end) if softmax else end)


def asked(folder: Path, constraint: str, outputs: int = 2) -> Path:
    path = folder / "a.vnnlib"
    path.write_text(box(BOX, outputs, constraint))
    return path


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("engine", ["auto", "walk", "split", "bounds", "attack"])
def test_a_counterexample_is_found_and_confirmed(tmp_path: Path, kind: str, engine: str) -> None:
    model, prop = strange(tmp_path, kind), asked(tmp_path, "(>= Y_0 0.9)")
    verdict = fgp_vnn.verify(model, prop, engine=engine, timeout=60)
    assert (verdict.status, verdict.decided_by) == ("sat", "attack")
    found = verdict.counterexample
    assert found is not None
    assert load_property(prop).broken_by(found.x, found.y.astype(np.float64))


@pytest.mark.slow
@pytest.mark.parametrize("kind", STRANGE)
def test_what_cannot_be_broken_stays_unknown_and_names_the_operator(
    tmp_path: Path, kind: str
) -> None:
    prop = asked(tmp_path, "(>= Y_0 1.5)")
    verdict = fgp_vnn.verify(strange(tmp_path, kind), prop, timeout=0.3)
    assert verdict.status == "unknown" and f"operator {kind}" in verdict.reason
    assert len(verdict.reason) < 200 + len(str(tmp_path))
    assert verdict.seconds["total"] > 0


@pytest.mark.parametrize("given", ["path", "proto", "module"])
def test_a_model_from_python_is_attacked_like_a_file(tmp_path: Path, given: str) -> None:
    path = strange(tmp_path, "TopK")
    model: Any = {"path": path, "proto": onnx.load(path)}.get(given)
    if given == "module":
        model = nn.Sequential(nn.Linear(3, 3), Sorted())
    x, y = fgp_vnn.variables(model)
    assert x.shape == (3,) and y.shape == (2,)
    inside = (x >= -1) & (x <= 1)
    verdict = fgp_vnn.verify(model, inputs=inside, unsafe=y[0] >= 0.1, timeout=60)
    assert (verdict.status, verdict.decided_by) == ("sat", "attack")
    verdict = fgp_vnn.verify(model, fgp_vnn.output_range(model, inside, upper=99), timeout=0.3)
    assert verdict.status == "unknown" and "operator TopK" in verdict.reason
    with pytest.raises(UnsupportedError, match="TopK"):
        fgp_vnn.verify(model, inputs=inside, unsafe=y[0] >= 0.9, attack=False)


@pytest.mark.slow
def test_a_second_case_is_attacked_as_well(tmp_path: Path) -> None:
    low, high = "(and (<= X_0 -0.5) (>= Y_0 1.5))", "(and (>= X_0 0.5) (>= Y_0 0.9))"
    verdict = fgp_vnn.verify(
        strange(tmp_path, "TopK"), asked(tmp_path, f"(or {low} {high})"), timeout=3
    )
    assert verdict.status == "sat" and verdict.counterexample is not None
    assert verdict.counterexample.x[0] >= 0.5


@pytest.mark.parametrize(
    ("limit", "status", "timeout"), [("0.85", "sat", 60), ("0.95", "unknown", 0.3)]
)
def test_limits_on_outputs_behind_a_softmax_are_met_behind_it(
    tmp_path: Path, limit: str, status: str, timeout: float
) -> None:
    # The softmax of two numbers that differ by at most 2 is at most 0.8808.
    model = strange(tmp_path, "TopK", softmax=True)
    verdict = fgp_vnn.verify(model, asked(tmp_path, f"(>= Y_0 {limit})"), timeout=timeout)
    assert verdict.status == status


def test_without_attacks_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="TopK"):
        fgp_vnn.verify(strange(tmp_path, "TopK"), asked(tmp_path, "(>= Y_0 0.9)"), attack=False)


def test_a_property_of_another_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="do not belong together"):
        fgp_vnn.verify(strange(tmp_path, "TopK"), asked(tmp_path, "(>= Y_0 0.9)", outputs=3))


def test_what_onnxruntime_does_not_run_is_refused_as_before(tmp_path: Path) -> None:
    builder = Builder([1, 3])
    path = builder.save(tmp_path / "a.onnx", builder.op("NoSuchOperator", "x"))
    with pytest.raises(UnsupportedError, match="NoSuchOperator"):
        fgp_vnn.verify(path, asked(tmp_path, "(>= Y_0 0.9)"))


@pytest.mark.parametrize(("limit", "found"), [(0.0, True), (-100.0, False)])
def test_a_network_that_does_not_fit_is_attacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: float, found: bool
) -> None:
    def too_large(*given: object, **more: object) -> None:
        raise MemoryError

    monkeypatch.setattr("fgp_vnn.api.cases.load_network", too_large)
    prop = tmp_path / "a.vnnlib"
    prop.write_text(box([(-1.0, 1.0)] * 4, 2, f"(<= Y_0 {limit})"))
    if found:
        assert fgp_vnn.verify(small_model(tmp_path), prop, timeout=60).status == "sat"
    else:
        with pytest.raises(OutOfMemoryError, match="--memory"):
            fgp_vnn.verify(small_model(tmp_path), prop, timeout=0.3)


def test_the_command_line_and_the_scripts_accept_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, prop = str(strange(tmp_path, "TopK")), str(asked(tmp_path, "(>= Y_0 0.9)"))
    assert main(["supports", model, prop]) == 0
    said = capsys.readouterr().out
    assert said.startswith("attacked only: ") and "operator TopK" in said
    results = tmp_path / "out.txt"
    assert main(["verify", model, prop, "--results", str(results), "--timeout", "60"]) == 0
    assert results.read_text().split()[0] == "sat"


@pytest.mark.parametrize(
    ("bounds", "limit", "status"),
    [
        ([(0.0, 0.5)] * 4, -1.0, "unknown"),
        ([(0.4, 0.5)] * 3 + [(0.0, 0.1)], -1.0, "unknown"),
        ([(0.0, 0.5)] * 4, 0.1, "sat"),
    ],
)
def test_an_input_with_fewer_outputs_breaks_nothing(
    tmp_path: Path, bounds: list[tuple[float, float]], limit: float, status: str
) -> None:
    builder = Builder([1, 4])  # keeps the inputs below 0.3
    low = builder.op("Reshape", builder.op("Less", "x", builder.const(0.3)), builder.ints(4))
    model = builder.save(tmp_path / "a.onnx", builder.op("Compress", "x", low, axis=1))
    prop = tmp_path / "a.vnnlib"
    prop.write_text(box(bounds, 4, f"(<= Y_0 {limit})"))
    verdict = fgp_vnn.verify(model, prop, timeout=0.5 if status == "unknown" else 60)
    assert verdict.status == status
    if verdict.counterexample is not None:
        assert (verdict.counterexample.x < 0.3).all()


def test_signs_of_a_network_are_attacked_by_gradients(tmp_path: Path) -> None:
    builder = Builder([1, 200])
    inside = builder.op("Sign", builder.op("MatMul", "x", builder.random(200, 60)))
    inside = builder.op("Sign", builder.op("MatMul", inside, builder.random(60, 60)))
    top, _ = builder.op("TopK", builder.op("MatMul", inside, builder.random(60, 2)),
                        builder.ints(2), outputs=2)  # fmt: skip
    model = builder.save(tmp_path / "a.onnx", top)
    prop = tmp_path / "a.vnnlib"
    prop.write_text(box([(-1.0, 1.0)] * 200, 2, "(>= Y_1 8.5)"))
    verdict = fgp_vnn.verify(model, prop, timeout=60)
    assert verdict.status == "sat"
