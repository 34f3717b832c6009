"""Networks that end in an increasing function: verdicts, certificates, and what float32 rounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fgp_vnn
from tests.helpers.network_models import Builder

BOX = (np.full(3, -1.0), np.full(3, 1.0))


def _ended(folder: Path, kind: str, scale: float = 1.0) -> Path:
    """Two layers of ReLUs, and a function of what follows these."""
    b = Builder([1, 3])
    hidden = b.op("Relu", b.op("MatMul", "x", b.random(3, 8)))
    hidden = b.op("Relu", b.op("MatMul", hidden, b.random(8, 6)))
    last = b.op("Mul", b.op("MatMul", hidden, b.random(6, 2)), b.const(scale))
    return b.save(folder / f"{kind}.onnx", b.op(kind, last))


@pytest.mark.parametrize("kind", ["Sigmoid", "Tanh"])
def test_limits_and_comparisons_of_outputs_are_decided_by_regions(
    kind: str, tmp_path: Path
) -> None:
    """The walk refuses smooth networks: it gets here what the function is applied to."""
    path = _ended(tmp_path, kind)
    y = fgp_vnn.variables(path)[1]
    highest = fgp_vnn.maximise(path, BOX, y[0], gap=1e-3)
    room = (1 - highest.upper) / 100
    for limit, status in ((highest.upper + room, "unsat"), (highest.value - room, "sat")):
        found = fgp_vnn.verify(path, inputs=BOX, unsafe=y[0] >= limit, engine="walk")
        assert found.status == status, found.reason
    compared = fgp_vnn.verify(path, inputs=BOX, unsafe=y[0] <= y[1], engine="walk")
    assert compared.status in ("sat", "unsat")


def test_certificates_are_about_the_whole_network(tmp_path: Path) -> None:
    path, proof = _ended(tmp_path, "Sigmoid"), tmp_path / "proof.npz"
    y = fgp_vnn.variables(path)[1]
    found = fgp_vnn.verify(path, inputs=BOX, unsafe=y[0] >= 0.9999, certificate=proof)
    assert found.status == "unsat"
    assert found.certificate and proof.is_file()


def test_a_value_that_only_float32_reaches_is_found(tmp_path: Path) -> None:
    path = _ended(tmp_path, "Sigmoid", scale=1000.0)
    y = fgp_vnn.variables(path)[1]
    assert fgp_vnn.verify(path, inputs=BOX, unsafe=y[0] >= 1.0).status == "sat"
