"""Certificates of networks with sigmoids, hyperbolic tangents and products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper
from torch import nn

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.check import check_files, digest
from fgp_vnn.certificate.checker.proof import read_certificate
from fgp_vnn.certificate.write import write_certificate
from tests.helpers.command_line import box

Parts = tuple[list[NodeProto], dict[str, NDArray[np.float64]]]
Make = Callable[[np.random.Generator], Parts]
RADIUS = 0.5


def gated(random: np.random.Generator) -> Parts:
    """sigmoid(A x) * tanh(B x), and a last layer."""
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"]),
        helper.make_node("MatMul", ["x", "b"], ["q"]),
        helper.make_node("Sigmoid", ["p"], ["s"]),
        helper.make_node("Tanh", ["q"], ["t"]),
        helper.make_node("Mul", ["s", "t"], ["h"]),
        helper.make_node("MatMul", ["h", "c"], ["y"]),
    ]
    shapes = {"a": (3, 6), "b": (3, 6), "c": (6, 2)}
    return nodes, {name: random.normal(size=shape) for name, shape in shapes.items()}


def layered(random: np.random.Generator) -> Parts:
    """Layers of tanh, ReLU and sigmoid, which have the same neurons in verifier and checker."""
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"]),
        helper.make_node("Tanh", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "b"], ["q"]),
        helper.make_node("Relu", ["q"], ["g"]),
        helper.make_node("Sigmoid", ["p"], ["s"]),
        helper.make_node("Add", ["g", "s"], ["h"]),
        helper.make_node("MatMul", ["h", "c"], ["y"]),
    ]
    shapes = {"a": (3, 6), "b": (6, 6), "c": (6, 2)}
    return nodes, {name: random.normal(size=shape) / 1.5 for name, shape in shapes.items()}


def network(make: Make, seed: int) -> bytes:
    nodes, weights = make(np.random.default_rng(seed))
    graph = helper.make_graph(
        nodes,
        "smooth",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
        [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()],
    )
    sets = [helper.make_opsetid("", 13)]
    made = helper.make_model(graph, opset_imports=sets, ir_version=8)
    return bytes(made.SerializeToString())


def highest(model: bytes) -> tuple[float, float]:
    """The greatest y_0 - y_1 and its spread over samples of the box."""
    session = onnxruntime.InferenceSession(model)
    points = np.random.default_rng(0).uniform(-RADIUS, RADIUS, (600, 1, 3)).astype(np.float32)
    found = [session.run(None, {"x": x})[0][0] for x in points]
    values = np.array([y[0] - y[1] for y in found])
    return float(values.max()), float(np.ptp(values))


def asking(limit: float) -> bytes:
    box = "".join(
        f"(declare-const X_{i} Real)(assert (<= X_{i} {RADIUS}))(assert (>= X_{i} {-RADIUS}))"
        for i in range(3)
    )
    outputs = "(declare-const Y_0 Real)(declare-const Y_1 Real)"
    return f"{box}{outputs}(assert (>= (- Y_0 Y_1) {limit!r}))".encode()


@pytest.mark.parametrize("make", [gated, layered])
@pytest.mark.parametrize("margin", [0.1, 2.0])
def test_a_proof_is_written_and_accepted_and_proves_nothing_else(
    tmp_path: Path, make: Make, margin: float
) -> None:
    model = network(make, 1)
    top, spread = highest(model)
    prop, forged = asking(top + margin * spread), asking(top - 0.01 * spread)
    files = tmp_path / "model.onnx", tmp_path / "prop.vnnlib"
    for path, content in zip(files, (model, prop), strict=True):
        path.write_bytes(content)
    proof = tmp_path / "proof.npz"
    verdict = fgp_vnn.verify(*files, timeout=60, certificate=proof)
    assert (verdict.status, verdict.certificate) == ("unsat", str(proof)), verdict.reason
    claimed = read_certificate(proof.read_bytes())
    assert check_files(proof.read_bytes(), model, prop).margin > 0
    with pytest.raises(InputError, match="not greater than 0"):
        check_files(write_certificate(replace(claimed, property=digest(forged))), model, forged)
    other = network(make, 2)
    assert highest(other)[0] > top + margin * spread or margin > 1
    if highest(other)[0] > top + margin * spread:
        with pytest.raises(InputError, match="not greater than 0"):
            check_files(write_certificate(replace(claimed, network=digest(other))), other, prop)


def test_what_the_checker_does_not_know_is_refused_by_name(tmp_path: Path) -> None:
    nodes, weights = layered(np.random.default_rng(1))
    nodes[1] = helper.make_node("Softplus", ["p"], ["f"])
    model = network(lambda random: (nodes, weights), 0)
    top, spread = highest(model)
    files = tmp_path / "model.onnx", tmp_path / "prop.vnnlib"
    for path, content in zip(files, (model, asking(top + spread)), strict=True):
        path.write_bytes(content)
    verdict = fgp_vnn.verify(*files, timeout=60, certificate=tmp_path / "proof.npz")
    assert verdict.status == "unsat" and not verdict.certificate
    assert "Softplus" in verdict.reason and not (tmp_path / "proof.npz").exists()


def test_a_network_of_many_inputs_is_proved_by_boxes_where_a_proof_is_asked_for(
    tmp_path: Path,
) -> None:
    """Splits of its smooth neurons would decide it as well, but have no form in a certificate."""
    torch.manual_seed(1)
    first, *rest = (nn.Linear(20, 4), nn.Linear(4, 4), nn.Linear(4, 1))
    module = nn.Sequential(first, nn.Tanh(), rest[0], nn.Tanh(), rest[1])
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(4)
        first.weight[:, 1:].mul_(0.01)
        x = torch.rand(20_000, 20, generator=torch.Generator().manual_seed(1)) * 2 - 1
        x[:10_000, 1:] = x[:10_000, 1:].sign()
        low, high = (float(end) for end in (module(x).min(), module(x).max()))
    limit = low - 0.03 * (high - low)
    model = fgp_vnn.load_model(module, x[0].numpy())
    prop = tmp_path / "prop.vnnlib"
    prop.write_text(box([(-1.0, 1.0)] * 20, 1, f"(<= Y_0 {limit:.6f})"))
    found = fgp_vnn.verify(model, prop, attack=False, certificate=tmp_path / "proof.npz")
    assert found.status == "unsat" and found.certificate is not None
