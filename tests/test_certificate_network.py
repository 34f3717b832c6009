"""The checker's own reader of networks, against onnxruntime."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from network_models import Builder
from numpy.typing import NDArray
from operator_cases import CASES, Case

from fgp_vnn.certificate.network import Network, read_network
from fgp_vnn.errors import UnsupportedError

NETWORKS = Path(__file__).resolve().parent.parent / "vnncomp" / "benchmark" / "onnx"
Array = NDArray[np.float64]

READ = {
    "add",
    "batch norm",
    "concat",
    "conv",
    "div",
    "flatten",
    "gemm",
    "identity and dropout",
    "matmul",
    "mul",
    "neg",
    "relu",
    "reshape",
    "slice",
    "squeeze",
    "sub",
    "transpose",
    "two products",
    "unsqueeze",
}


def outputs(network: Network, x: Array) -> Array:
    values = [x]
    z = x
    for affine in network.maps:
        z = affine.bias + sum(w @ values[s] for s, w in affine.weights.items())
        values.append(np.maximum(z, 0))
    return z


def assert_equal_to_runtime(content: bytes, seed: int = 0) -> None:
    network = read_network(content)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    shape = [n if isinstance(n, int) else 1 for n in given.shape]
    generator = np.random.default_rng(seed)
    for _ in range(5):
        x = generator.normal(size=shape).astype(np.float32)
        (expected,) = session.run(None, {given.name: x})
        actual = outputs(network, x.reshape(-1).astype(np.float64))
        np.testing.assert_allclose(actual, expected.reshape(-1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("path", sorted(NETWORKS.iterdir()), ids=lambda path: path.stem)
def test_bundled_networks_are_read_as_onnxruntime_runs_them(path: Path) -> None:
    assert_equal_to_runtime(path.read_bytes())


ROWS = [(name, shape, opset, case) for name, shape, opsets, case in CASES for opset in opsets]


@pytest.mark.parametrize(
    ("name", "shape", "opset", "case"), ROWS, ids=[f"{r[0]} {r[2]}" for r in ROWS]
)
def test_an_operator_is_read_right_or_refused_by_name(
    name: str, shape: tuple[int, ...], opset: int, case: Case
) -> None:
    builder = Builder(shape, opset)
    end = builder.op("Relu", builder.op("Sub", case(builder), builder.const(0.1)))
    content = builder.model(builder.op("Mul", end, builder.const(-1.5))).SerializeToString()
    try:
        assert_equal_to_runtime(content)
    except UnsupportedError as error:
        assert str(error).startswith("operator ")
        assert name not in READ


@pytest.mark.parametrize("name", sorted(READ))
def test_what_common_networks_are_made_of_is_read(name: str) -> None:
    (row,) = [row for row in CASES if row[0] == name]
    for opset in row[2]:
        builder = Builder(row[1], opset)
        assert_equal_to_runtime(builder.model(row[3](builder)).SerializeToString())


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
