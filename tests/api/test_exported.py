"""The first minutes of a user of PyTorch: what torch.onnx.export writes, and what certify takes."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fgp_vnn
from tests.helpers.command_line import box, run


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
    assert run("check-certificate", proof, exported, prop).returncode == 0


def test_module_with_convolutions_needs_nothing_but_an_input() -> None:
    results = fgp_vnn.certify(_cnn(), np.random.default_rng(0).random((2, 1, 8, 8)), epsilon=1e-3)
    assert isinstance(results, list)
    assert [result.status for result in results] == ["robust", "robust"]
