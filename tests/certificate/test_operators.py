"""Networks with an operator each: proved, the proof accepted, and no proof of what is false."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.certificate.checker.bounds import Enclosure
from fgp_vnn.certificate.checker.check import check_files, digest
from fgp_vnn.certificate.checker.network import read_network
from fgp_vnn.certificate.checker.proof import read_certificate
from fgp_vnn.certificate.write import write_certificate
from tests.helpers.network_models import Builder
from tests.helpers.operator_cases import CASES

NAMES = [
    "abs",
    "average pool padded",
    "average pool padded the same",
    "clip",
    "conv padded the same",
    "gather",
    "global average pool",
    "leaky relu",
    "max pool padded",
    "prelu",
    "reduce mean",
    "reduce sum",
    "slice operand",
    "split",
]
REACH = 0.4  # of the box around 0


def run(content: bytes, x: NDArray[np.float32]) -> NDArray[np.float64]:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    shape = session.get_inputs()[0].shape
    name = session.get_inputs()[0].name
    results = [session.run(None, {name: row.reshape(shape)})[0].reshape(-1) for row in x]
    return np.array(results, dtype=np.float64)


def network(name: str) -> tuple[bytes, int]:
    """The operator, a dense layer with ReLUs, and one output; with its number of inputs."""
    ((_, shape, opsets, case),) = [row for row in CASES if row[0] == name]
    inputs = int(np.prod(shape))
    builder = Builder(shape, opsets[-1])
    end = case(builder)
    zero = np.zeros((1, inputs), dtype=np.float32)
    size = run(builder.model(end).SerializeToString(), zero).shape[1]
    flat = builder.op("Reshape", end, builder.ints(1, -1))
    hidden = builder.op("MatMul", flat, builder.random(size, 12))
    active = builder.op("Relu", builder.op("Add", hidden, builder.random(12)))
    output = builder.op("MatMul", active, builder.random(12, 1))
    return builder.model(output).SerializeToString(), inputs


def at_least(limit: float, inputs: int) -> bytes:
    lines = [f"(declare-const X_{i} Real)" for i in range(inputs)] + ["(declare-const Y_0 Real)"]
    for i in range(inputs):
        lines += [f"(assert (>= X_{i} -{REACH}))", f"(assert (<= X_{i} {REACH}))"]
    return "\n".join([*lines, f"(assert (>= Y_0 {limit}))", ""]).encode()


def narrowed(name: str, folder: Path) -> tuple[bytes, int, float, float]:
    """A network, the number of its inputs, an output that it reaches and one that it does not.

    The interval between them is halved until the second proof, which needs splits and is left in
    the folder.
    """
    content, inputs = network(name)
    model, prop = folder / "net.onnx", folder / "prop.vnnlib"
    model.write_bytes(content)
    box = np.full((1, inputs), REACH)
    read = read_network(content)
    least = Enclosure(read, -box, box).least(len(read.widths), -np.ones((1, 1, 1)))
    reached, above = float(run(content, np.zeros((1, inputs), np.float32)).item()), -least.item()
    proofs = 0
    while proofs < 2:
        middle = (reached + above) / 2
        prop.write_bytes(at_least(middle, inputs))
        verdict = fgp_vnn.verify(model, prop, timeout=60, certificate=folder / "proof.npz")
        if verdict.counterexample is not None:
            reached = float(verdict.counterexample.y[0])
            continue
        assert (verdict.status, verdict.reason) == ("unsat", "")
        above, proofs = middle, proofs + 1
    return content, inputs, reached, above


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_proof_is_accepted_and_none_of_what_is_false(name: str, tmp_path: Path) -> None:
    content, inputs, reached, above = narrowed(name, tmp_path)
    proof = (tmp_path / "proof.npz").read_bytes()
    assert check_files(proof, content, at_least(above, inputs)).margin > 0
    false = at_least(reached, inputs)
    forged = write_certificate(replace(read_certificate(proof), property=digest(false)))
    with pytest.raises(InputError, match="not greater than 0"):
        check_files(forged, content, false)


def test_a_clip_just_inside_of_float32_is_not_passed_over(tmp_path: Path) -> None:
    builder = Builder([1, 1])
    scaled = builder.op("Mul", "x", builder.const(3.3e36))
    model = builder.save(
        tmp_path / "net.onnx", builder.op("Clip", scaled, "", builder.const(3.1e38))
    )
    prop = tmp_path / "prop.vnnlib"
    prop.write_text(
        "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (>= X_0 99))"
        "(assert (<= X_0 100))(assert (<= Y_0 320000000000000000000000000000000000000))"
    )
    assert fgp_vnn.verify(model, prop, timeout=60).status == "sat"
