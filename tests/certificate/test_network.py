"""The checker's own reader of networks, against onnxruntime."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.certificate.checker.network import read_network
from fgp_vnn.network import load_network
from tests.helpers.network_models import Builder
from tests.helpers.operator_agreement import values
from tests.helpers.operator_cases import CASES, Case, Row, one_per_operator
from tests.helpers.places import BENCHMARK

NETWORKS = BENCHMARK / "onnx"

# How the names begin of the cases that the checker does not read.
REFUSED = (
    "average pool padded on one side, rounded up",
    "average pool rounded up",
    "cast",
    "conv transpose",
    "depth to space",
    "expand",
    "gather elements",
    "gather nd",
    "gemm from the left",
    "hard sigmoid",
    "max of one",
    "max pool dilated, rounded up",
    "max pool padded, rounded up",
    "max with a number",
    "mean",
    "min",
    "pad",
    "reduce l1",
    "reduce max",
    "reduce min",
    "reduce sum of squares",
    "resize",
    "space to depth",
    "tile",
    "upsample",
    "where",
)


def assert_equal_to_runtime(content: bytes, seed: int = 0) -> None:
    network = read_network(content)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    shape = [n if isinstance(n, int) else 1 for n in given.shape]
    generator = np.random.default_rng(seed)
    for _ in range(5):
        x = generator.normal(size=shape).astype(np.float32)
        (expected,) = session.run(None, {given.name: x})
        actual = values(network, x.reshape(-1).astype(np.float64))[-1]
        np.testing.assert_allclose(actual, expected.reshape(-1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("path", sorted(NETWORKS.iterdir()), ids=lambda path: path.stem)
def test_bundled_networks_are_read_as_onnxruntime_runs_them(path: Path) -> None:
    assert_equal_to_runtime(path.read_bytes())


ROWS = [(name, shape, opset, case) for name, shape, opsets, case in CASES for opset in opsets]


def is_read(name: str) -> bool:
    return name != "max" and not name.startswith(REFUSED)


def content_of(shape: tuple[int, ...], opset: int, case: Case) -> bytes:
    builder = Builder(shape, opset)
    end = builder.op("Relu", builder.op("Sub", case(builder), builder.const(0.1)))
    content: bytes = builder.model(builder.op("Mul", end, builder.const(-1.5))).SerializeToString()
    return content


@pytest.mark.parametrize(
    ("name", "shape", "opset", "case"), ROWS, ids=[f"{r[0]} {r[2]}" for r in ROWS]
)
def test_an_operator_is_read_right_or_refused_by_name(
    name: str, shape: tuple[int, ...], opset: int, case: Case
) -> None:
    content = content_of(shape, opset, case)
    if is_read(name):
        assert_equal_to_runtime(content)
    else:
        with pytest.raises(UnsupportedError, match=r"^operator "):
            read_network(content)


@pytest.mark.parametrize(
    "row", [row for row in one_per_operator() if is_read(row[0])], ids=lambda row: row[0]
)
def test_layers_are_those_that_the_verifier_speaks_of(row: Row, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content_of(row[1], row[2][-1], row[3]))
    theirs = load_network(path).network
    x = np.random.default_rng(1).normal(size=theirs.inputs)
    expected = theirs.preactivations(torch.from_numpy(x)[None])
    actual = values(read_network(path.read_bytes()), x)
    assert len(actual) == len(expected)
    for ours, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, other[0], atol=1e-9)


@pytest.mark.parametrize("kind", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("side", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(
    "window", [{"dilations": [2, 1]}, {"strides": [4, 1]}], ids=["dilated", "with gaps"]
)
def test_pools_that_onnxruntime_pads_by_a_rule_of_its_own_are_refused(
    kind: str, side: str, window: dict[str, Any]
) -> None:
    builder = Builder([1, 1, 4, 4], 19)
    end = builder.op(kind, "x", kernel_shape=[2, 2], auto_pad=side, **window)
    with pytest.raises(UnsupportedError, match=f"^operator {kind} .*SAME"):
        read_network(builder.model(end).SerializeToString())


@pytest.mark.parametrize("opset", [9, 13])
def test_a_clip_just_inside_of_float32_is_one(opset: int) -> None:
    builder = Builder([1, 1], opset)
    if opset < 11:
        end = builder.op("Clip", "x", min=-3.1e38, max=3.1e38)
    else:
        end = builder.op("Clip", "x", builder.const(-3.1e38), builder.const(3.1e38))
    network = read_network(builder.model(end).SerializeToString())
    for x in (-3.3e38, 3.3e38):
        assert values(network, np.array([x]))[-1] == pytest.approx(np.sign(x) * 3.1e38)


def test_composed_entries_are_as_close_as_their_sizes_say() -> None:
    """Exact products of the file's float32 numbers, against the composed matrix."""
    builder = Builder([1, 6])
    generator = np.random.default_rng(0)
    first, second = (generator.normal(size=(6, 6)).astype(np.float32) * 10.0**8 for _ in range(2))
    hidden = builder.op("MatMul", "x", builder.const(first))
    content = builder.model(builder.op("MatMul", hidden, builder.const(second))).SerializeToString()
    (affine,) = read_network(content).maps
    rational = np.vectorize(lambda v: Fraction(float(v)), otypes=[object])
    exact = rational(first) @ rational(second)
    unit = Fraction(2) ** -53
    for i in range(6):
        for j in range(6):
            off = abs(Fraction(float(affine.weights[0][j, i])) - exact[i, j])
            assert off <= affine.steps * 2 * unit * Fraction(float(affine.sizes[0][j, i]))


def test_a_parameter_with_two_names_is_read() -> None:
    """As one of torch's exporters writes equal biases."""
    b = Builder([1, 3])
    bias = b.random(3)
    hidden = b.op("Relu", b.op("Add", b.op("MatMul", "x", b.random(3, 3)), bias))
    again = b.op("Identity", b.op("Identity", bias))
    last = b.op("Add", b.op("MatMul", hidden, b.random(3, 3)), again)
    assert_equal_to_runtime(b.model(last).SerializeToString())
