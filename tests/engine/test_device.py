"""Which device is used, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fgp_vnn.base.errors import InputError
from fgp_vnn.engine.device import pick_device, without_gradients
from fgp_vnn.network import load_network
from tests.helpers.small_networks import random_network, save_onnx


def test_a_device_that_is_not_there_is_refused() -> None:
    assert pick_device("cpu", "float64") == torch.device("cpu")
    if not torch.cuda.is_available():
        assert pick_device("auto", "float64") == torch.device("cpu")
        with pytest.raises(InputError, match="cuda"):
            pick_device("cuda", "float64")


def test_a_device_without_float64_is_refused_in_float64() -> None:
    with pytest.raises(InputError, match="mps has no float64"):
        pick_device("mps", "float64")


SHORTENED = {
    "by the old switches": """
backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = True""",
    "by one word": """
torch.set_float32_matmul_precision('medium')""",
    "everywhere": """
backends.fp32_precision = 'tf32'""",
    "each": """
for part in (cuda.matmul, cudnn.conv, cudnn.rnn):
    part.fp32_precision = 'tf32'
for part in (mkldnn.matmul, mkldnn.conv):
    part.fp32_precision = 'bf16'""",
}
BEGIN = """
import torch
from torch import backends
from torch.backends import cuda, cudnn, mkldnn
"""
END = """
from fgp_vnn.engine.device import pick_device
pick_device('cpu', 'float64')
print(torch.get_float32_matmul_precision(), cuda.matmul.allow_tf32, cudnn.allow_tf32)
for part in (cuda.matmul, cudnn.conv, mkldnn.matmul, mkldnn.conv):
    print(part.fp32_precision)
"""


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="since torch 2.9")
@pytest.mark.parametrize("how", SHORTENED)
def test_shortened_floats_are_switched_off(how: str) -> None:
    """In a process of its own, because the settings hold for all of it."""
    code = BEGIN + SHORTENED[how] + END
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["highest", "False", "False", *4 * ["ieee"]]


@pytest.mark.parametrize("mode", ["BF16", "any", "STRICT"])
def test_a_variable_that_shortens_floats_is_refused(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEDNN_DEFAULT_FPMATH_MODE", mode)
    if mode == "STRICT":
        pick_device("cpu", "float64")
        return
    with pytest.raises(InputError, match="unset ONEDNN_DEFAULT_FPMATH_MODE"):
        pick_device("cpu", "float64")


def test_only_matrices_are_bounded_in_inference_mode(tmp_path: Path) -> None:
    """Programs are pulled back by torch.autograd."""
    path = save_onnx(random_network((4, 5, 3), 0), tmp_path / "m.onnx")
    matrices, programs = load_network(path), load_network(path, dense_entries=0)
    for loaded, inference in ((matrices, True), (programs, False)):
        with without_gradients(loaded.network):
            assert torch.is_inference_mode_enabled() == inference
            assert not torch.is_grad_enabled()


def test_automatic_shorter_formats_are_refused() -> None:
    with torch.autocast("cpu"), pytest.raises(InputError, match="leave torch"):
        pick_device("cpu", "float64")
