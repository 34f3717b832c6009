"""The first minutes of a user of PyTorch: what torch.onnx.export writes, and what certify takes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fgp_vnn
from fgp_vnn.base.model_file import read_model
from fgp_vnn.certificate.checker.check import check_files
from tests.helpers.command_line import box


def _cnn() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10)
    ).eval()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What today's torch writes where nothing is asked for."""
    path = tmp_path_factory.mktemp("exported") / "m.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(_cnn(), (torch.zeros(1, 1, 8, 8),), path)
    return path


@pytest.mark.slow
def test_default_export_has_its_weights_beside_it_and_is_certified(exported: Path) -> None:
    assert {p.name for p in exported.parent.iterdir()} == {"m.onnx", "m.onnx.data"}
    x = torch.rand(1, 8, 8)
    result = fgp_vnn.certify(exported, x, epsilon=1e-3)
    assert isinstance(result, fgp_vnn.Robustness)
    assert result.status == "robust"
    with torch.no_grad():
        assert result.label == int(_cnn()(x[None]).argmax())


def test_default_export_gets_a_certificate_that_is_checked(exported: Path, tmp_path: Path) -> None:
    prop, proof = tmp_path / "p.vnnlib", tmp_path / "proof.npz"
    prop.write_text(box([(0, 0.01)] * 64, 10, "(>= Y_0 1000.0)"))
    assert fgp_vnn.verify(exported, prop, certificate=proof).certificate == str(proof)
    contents = read_model(exported), prop.read_bytes()
    assert check_files(proof.read_bytes(), *contents).disjuncts == 1


def test_module_with_convolutions_needs_nothing_but_an_input() -> None:
    results = fgp_vnn.certify(_cnn(), np.random.default_rng(0).random((2, 1, 8, 8)), epsilon=1e-3)
    assert isinstance(results, list)
    assert [result.status for result in results] == ["robust", "robust"]


def test_export_of_a_batch_is_not_taken_for_one_input(tmp_path: Path) -> None:
    path = tmp_path / "batch.onnx"
    x = torch.zeros(2, 1, 8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(_cnn(), (x,), str(path), dynamo=False)
    with pytest.raises(fgp_vnn.UnsupportedError, match="takes 2 inputs at once"):
        fgp_vnn.certify(path, x, epsilon=1e-3)


@pytest.mark.parametrize("exporter", ["dynamo=False", "dynamo=True"])
def test_export_with_an_open_batch_takes_one_input_or_many(tmp_path: Path, exporter: str) -> None:
    path = tmp_path / "open.onnx"
    x = torch.rand(2, 1, 8, 8)
    options: dict[str, Any] = {"dynamic_axes": {"x": {0: "n"}}, "input_names": ["x"]}
    if exporter == "dynamo=True":
        options = {"dynamic_shapes": ({0: torch.export.Dim("n")},), "verbose": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(_cnn(), (x,), str(path), dynamo=exporter == "dynamo=True", **options)
    results = fgp_vnn.certify(path, x, epsilon=1e-3)
    assert isinstance(results, list)
    assert [result.status for result in results] == ["robust", "robust"]
    assert isinstance(fgp_vnn.certify(path, x[0], epsilon=1e-3), fgp_vnn.Robustness)
