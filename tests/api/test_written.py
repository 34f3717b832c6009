"""Certificates and float32 semantics of what is given in Python: it is written beside the proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import fgp_vnn
from fgp_vnn.api.written import onnx_of
from fgp_vnn.base.errors import InputError
from fgp_vnn.cli.main import main
from fgp_vnn.property import Property


@pytest.fixture
def net() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))


def given_as(net: nn.Module, kind: str, folder: Path) -> Any:
    if kind == "module":
        return net
    proto = onnx_of(net)
    if kind == "loaded":
        return fgp_vnn.load_model(net)
    if "path" in kind:
        onnx.save(proto, folder / "net.onnx")
        path = folder / "net.onnx"
        return path if kind == "path" else fgp_vnn.load_model(path)
    return proto if kind == "proto" else proto.SerializeToString()


def safe(model: Any, limit: float = 100.0) -> Property:
    x, y = fgp_vnn.variables(model)
    return fgp_vnn.property_of((x >= 0.1) & (x <= 0.3), (y >= limit).any())


@pytest.mark.parametrize("kind", ["module", "path", "proto", "bytes", "loaded", "loaded path"])
def test_a_property_in_python_has_a_certificate(
    kind: str, net: nn.Module, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, proof = given_as(net, kind, tmp_path), tmp_path / "proof.npz"
    verdict = fgp_vnn.verify(model, safe(model), certificate=proof)
    assert verdict.status == "unsat" and verdict.certificate == str(proof)
    network = tmp_path / ("net.onnx" if "path" in kind else "proof.onnx")
    words = ["check-certificate", str(proof), str(network), str(tmp_path / "proof.vnnlib")]
    assert main(words) == 0
    assert "unsat is proved" in capsys.readouterr().out


def test_conditions_have_one_too_and_it_can_be_written_again(
    net: nn.Module, tmp_path: Path
) -> None:
    x, y = fgp_vnn.variables(net)
    for _ in range(2):
        verdict = fgp_vnn.verify(
            net, inputs=(x >= 0) & (x <= 1), unsafe=y[0] >= 100, certificate=tmp_path / "p.npz"
        )
        assert verdict.certificate
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.npz", "p.onnx", "p.vnnlib"]


def test_nothing_is_left_behind_where_there_is_no_proof(net: nn.Module, tmp_path: Path) -> None:
    verdict = fgp_vnn.verify(net, safe(net, -100.0), certificate=tmp_path / "p.npz")
    assert verdict.status == "sat" and not list(tmp_path.iterdir())


def test_a_file_with_other_content_is_not_overwritten(net: nn.Module, tmp_path: Path) -> None:
    (tmp_path / "p.onnx").write_bytes(b"something else")
    with pytest.raises(InputError, match="another network: choose another name"):
        fgp_vnn.verify(net, safe(net), certificate=tmp_path / "p.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["p.onnx"]


def test_a_property_file_stays_where_it_is(net: nn.Module, tmp_path: Path) -> None:
    fgp_vnn.write_property(tmp_path / "mine.vnnlib", safe(net))
    verdict = fgp_vnn.verify(net, tmp_path / "mine.vnnlib", certificate=tmp_path / "p.npz")
    assert verdict.certificate
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["mine.vnnlib", "p.npz", "p.onnx"]


def test_float32_semantics_are_decided_for_a_module_and_a_property(net: nn.Module) -> None:
    assert fgp_vnn.verify(net, safe(net), float32_semantics=True).status == "unsat"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_result_says_which_weights_were_verified(net: nn.Module, dtype: torch.dtype) -> None:
    other = net.to(dtype)
    box = np.zeros(3), np.ones(3)
    certifier = fgp_vnn.Certifier.of(other)
    notes = [
        fgp_vnn.verify(other, safe(other)).note,
        fgp_vnn.bounds(other, box).note,
        fgp_vnn.maximise(other, box, [1.0, 0.0]).note,
        certifier.certify(np.zeros(3), epsilon=0.1).note,
        certifier.radius(np.zeros(3), maximum=0.1).note,
    ]
    assert all(str(dtype).removeprefix("torch.") in note for note in notes)


@pytest.mark.parametrize("name", ["model.onnx", "prop.vnnlib", "link.npz"])
def test_a_certificate_is_not_written_over_what_it_is_about(
    net: nn.Module, tmp_path: Path, name: str
) -> None:
    model, prop = tmp_path / "model.onnx", tmp_path / "prop.vnnlib"
    model.write_bytes(onnx_of(net).SerializeToString())
    fgp_vnn.write_property(prop, safe(net))
    (tmp_path / "link.npz").symlink_to(model)
    before = model.read_bytes(), prop.read_bytes()
    for given in ((model, prop), (str(model), str(prop))):
        with pytest.raises(InputError, match="file that is read"):
            fgp_vnn.verify(*given, certificate=tmp_path / name)
    for option in ("--certificate", "--results"):
        assert main(["verify", str(model), str(prop), option, str(tmp_path / name)]) == 2
    both = str(tmp_path / "both.npz")
    assert main(["verify", str(model), str(prop), "--certificate", both, "--results", both]) == 2
    assert (model.read_bytes(), prop.read_bytes()) == before


@pytest.mark.parametrize("name", ["proof.onnx", "proof.vnnlib"])
def test_a_certificate_has_another_name_than_what_is_written_beside_it(
    net: nn.Module, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match="choose another name"):
        fgp_vnn.verify(net, safe(net), certificate=tmp_path / name)
    assert not list(tmp_path.iterdir())
