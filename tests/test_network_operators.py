"""Every operator in a small random network, against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from network_models import Builder
from onnx import TensorProto

from fgp_vnn.network import AffineMap, Dense, LoadedNetwork, Network, Operator, load_network

Case = Callable[[Builder], str]
IMAGE = (1, 4, 6, 6)
LINE = (1, 4, 9)
VECTOR = (1, 8)

# Name, input shape, opsets, and the part of the network that is under test.
CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], Case]] = [
    ("relu", VECTOR, (8, 9, 13, 21), lambda b: b.op("Relu", "x")),
    ("gemm", VECTOR, (8, 9, 13, 21), lambda b: b.op("Gemm", "x", b.random(8, 5), b.random(5))),
    ("gemm scaled", VECTOR, (9, 13), lambda b: b.op(
        "Gemm", "x", b.random(5, 8), b.random(1, 5), transB=1, alpha=0.3, beta=1.7)),
    ("gemm without bias", VECTOR, (13,), lambda b: b.op("Gemm", "x", b.random(8, 5))),
    ("gemm from the left", (8, 1), (13,), lambda b: b.op(
        "Gemm", b.random(5, 8), "x", b.random(5, 1))),
    ("matmul", VECTOR, (8, 13), lambda b: b.op("MatMul", "x", b.random(8, 5))),
    ("matmul of rows", (1, 3, 4), (13,), lambda b: b.op("MatMul", "x", b.random(4, 5))),
    ("matmul from the left", (4, 3), (13,), lambda b: b.op("MatMul", b.random(5, 4), "x")),
    ("two products", VECTOR, (13,), lambda b: b.op("MatMul", b.op(
        "Add", b.op("MatMul", "x", b.random(8, 5)), b.random(5)), b.random(5, 3))),
    ("add", VECTOR, (8, 13), lambda b: b.op("Add", b.random(8), "x")),
    ("add broadcast", (1, 4, 1), (13,), lambda b: b.op("Add", "x", b.random(1, 4, 3))),
    ("sub", VECTOR, (8, 13), lambda b: b.op("Sub", "x", b.random(8))),
    ("sub from constant", VECTOR, (13,), lambda b: b.op("Sub", b.random(8), "x")),
    ("mul", VECTOR, (8, 13), lambda b: b.op("Mul", b.random(8), "x")),
    ("div", VECTOR, (8, 13), lambda b: b.op("Div", "x", b.positive(8))),
    ("neg", VECTOR, (8, 13), lambda b: b.op("Neg", "x")),
    ("sum", VECTOR, (8, 13), lambda b: b.op("Sum", "x", b.random(8), b.op("Neg", "x"))),
    ("mean", VECTOR, (8, 13), lambda b: b.op("Mean", "x", b.random(8))),
    ("identity and dropout", VECTOR, (8, 10, 13, 22), lambda b: b.op(
        "Identity", b.op("Dropout", "x"))),
    ("cast", VECTOR, (9, 13), lambda b: b.op("Cast", "x", to=TensorProto.FLOAT)),
    ("flatten", IMAGE, (8, 9, 13, 21), lambda b: b.op("Flatten", "x")),
    ("flatten at 2", IMAGE, (13,), lambda b: b.op("Flatten", "x", axis=2)),
    ("reshape", IMAGE, (8, 13, 21), lambda b: b.op("Reshape", "x", b.ints(1, -1, 3))),
    ("reshape keeping", IMAGE, (13,), lambda b: b.op("Reshape", "x", b.ints(0, -1))),
    ("transpose", IMAGE, (8, 13, 21), lambda b: b.op("Transpose", "x", perm=[0, 2, 3, 1])),
    ("squeeze", (1, 4, 1), (8, 11), lambda b: b.op("Squeeze", "x", axes=[2])),
    ("squeeze operand", (1, 4, 1), (13, 21), lambda b: b.op("Squeeze", "x", b.ints(-1))),
    ("unsqueeze", VECTOR, (8, 11), lambda b: b.op("Unsqueeze", "x", axes=[0, 2])),
    ("unsqueeze operand", VECTOR, (13, 21), lambda b: b.op("Unsqueeze", "x", b.ints(2))),
    ("concat", VECTOR, (8, 13), lambda b: b.op(
        "Concat", "x", b.random(1, 3), b.op("Relu", "x"), axis=1)),
    ("slice", IMAGE, (9,), lambda b: b.op("Slice", "x", starts=[1, 0], ends=[3, 9], axes=[1, 3])),
    ("slice operand", IMAGE, (10, 13), lambda b: b.op(
        "Slice", "x", b.ints(-1, 1), b.ints(-9, 6), b.ints(3, 1), b.ints(-2, 1))),
    ("split", VECTOR, (9, 11), lambda b: b.op(
        "Sub", *b.op("Split", "x", outputs=2, axis=1, split=[4, 4]))),
    ("split operand", VECTOR, (13,), lambda b: b.op(
        "Split", "x", b.ints(3, 5), outputs=2, axis=1)[1]),
    ("split in parts", VECTOR, (18, 21), lambda b: b.op(
        "Split", "x", outputs=3, axis=1, num_outputs=3)[2]),
    ("gather", VECTOR, (9, 13), lambda b: b.op("Gather", "x", b.ints(3, -1, 3), axis=1)),
    ("gather elements", (1, 3), (11, 13), lambda b: b.op(
        "GatherElements", "x", b.const([[2, 0]], np.int64), axis=1)),
    ("expand", (1, 4, 1), (8, 13), lambda b: b.op("Expand", "x", b.ints(1, 4, 3))),
    ("tile", VECTOR, (9, 13), lambda b: b.op("Tile", "x", b.ints(1, 2))),
    ("depth to space", IMAGE, (11, 13), lambda b: b.op("DepthToSpace", "x", blocksize=2)),
    ("space to depth", IMAGE, (9, 13), lambda b: b.op("SpaceToDepth", "x", blocksize=2)),
    ("upsample", IMAGE, (9,), lambda b: b.op("Upsample", "x", b.const([1, 1, 2, 2]))),
    ("resize nearest", IMAGE, (11, 13, 19), lambda b: b.op(
        "Resize", "x", b.const([]), b.const([1, 1, 2, 2]), mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor")),
    ("resize linear", IMAGE, (13,), lambda b: b.op(
        "Resize", "x", b.const([]), b.const([1, 1, 2, 2]), mode="linear")),
    ("where", VECTOR, (9, 16), lambda b: b.op(
        "Where", b.const([True, False] * 4, np.bool_), "x", b.random(8))),
    ("pad", IMAGE, (9,), lambda b: b.op("Pad", "x", pads=[0, 0, 1, 2, 0, 0, 0, 1], value=0.5)),
    ("pad operand", IMAGE, (11, 13, 18, 21), lambda b: b.op(
        "Pad", "x", b.ints(0, 1, 1, 2, 0, 0, 0, 1), b.const(0.5))),
    ("pad with zeros", IMAGE, (11, 13), lambda b: b.op("Pad", "x", b.ints(0, 0, 1, 2, 0, 0, 0, 1))),
    ("pad some axes", IMAGE, (18,), lambda b: b.op(
        "Pad", "x", b.ints(1, 2), b.const(0.5), b.ints(-1))),
    ("pad by reflection", IMAGE, (11, 18), lambda b: b.op(
        "Pad", "x", b.ints(0, 0, 1, 2, 0, 0, 0, 1), mode="reflect")),
    ("pad by the edge", LINE, (13,), lambda b: b.op(
        "Pad", "x", b.ints(0, 0, 1, 0, 0, 2), mode="edge")),
    ("conv", IMAGE, (8, 11, 22), lambda b: b.op(
        "Conv", "x", b.random(3, 4, 3, 3), b.random(3), pads=[1, 1, 1, 1], strides=[2, 1])),
    ("conv grouped dilated", IMAGE, (11,), lambda b: b.op(
        "Conv", "x", b.random(6, 2, 2, 2), b.random(6), group=2, dilations=[2, 3])),
    ("conv padded on one side", IMAGE, (11,), lambda b: b.op(
        "Conv", "x", b.random(3, 4, 3, 3), pads=[0, 1, 2, 0])),
    ("conv padded the same", IMAGE, (11,), lambda b: b.op(
        "Conv", "x", b.random(3, 4, 3, 3), auto_pad="SAME_UPPER")),
    ("conv 1d", LINE, (11,), lambda b: b.op(
        "Conv", "x", b.random(5, 4, 3), b.random(5), pads=[1, 1], strides=[2])),
    ("conv transpose", IMAGE, (11, 22), lambda b: b.op(
        "ConvTranspose", "x", b.random(4, 2, 3, 3), b.random(2), strides=[2, 2],
        pads=[1, 1, 1, 1], output_padding=[1, 1])),
    ("average pool", IMAGE, (8, 11, 22), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[2, 3], strides=[2, 1])),
    ("average pool padded", IMAGE, (11,), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1])),
    ("average pool counting pads", IMAGE, (11,), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)),
    ("global average pool", IMAGE, (8, 13, 22), lambda b: b.op("GlobalAveragePool", "x")),
    ("batch norm", IMAGE, (8, 9, 14, 15), lambda b: b.op(
        "BatchNormalization", "x", b.positive(4), b.random(4), b.random(4), b.positive(4))),
    ("batch norm of a vector", VECTOR, (9, 15), lambda b: b.op(
        "BatchNormalization", "x", b.positive(8), b.random(8), b.random(8), b.positive(8))),
    ("reduce sum", IMAGE, (8, 11), lambda b: b.op("ReduceSum", "x", axes=[-1, 1], keepdims=0)),
    ("reduce sum operand", IMAGE, (13, 21), lambda b: b.op("ReduceSum", "x", b.ints(-1, 1))),
    ("reduce sum of all", VECTOR, (13,), lambda b: b.op("ReduceSum", "x", keepdims=0)),
    ("reduce mean", IMAGE, (8, 13), lambda b: b.op("ReduceMean", "x", axes=[2, 3])),
    ("reduce mean operand", IMAGE, (18, 21), lambda b: b.op(
        "ReduceMean", "x", b.ints(2, 3), keepdims=0)),
    ("reduce max", IMAGE, (8, 13), lambda b: b.op("ReduceMax", "x", axes=[1, 3], keepdims=0)),
    ("reduce max operand", IMAGE, (18, 20), lambda b: b.op("ReduceMax", "x", b.ints(-1))),
    ("reduce min", IMAGE, (8, 13), lambda b: b.op("ReduceMin", "x", axes=[1])),
    ("max pool", IMAGE, (8, 11, 22), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])),
    ("max pool padded", IMAGE, (11,), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[3, 2], pads=[1, 0, 0, 1], strides=[1, 2])),
    ("max pool dilated, rounded up", IMAGE, (11,), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[2, 2], dilations=[2, 1], strides=[2, 2], ceil_mode=1)),
    ("max pool padded the same", IMAGE, (11,), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER")),
    ("max pool 1d", LINE, (11,), lambda b: b.op("MaxPool", "x", kernel_shape=[3], strides=[3])),
    ("global max pool", IMAGE, (8, 13), lambda b: b.op("GlobalMaxPool", "x")),
    ("leaky relu", VECTOR, (8, 13, 16), lambda b: b.op("LeakyRelu", "x", alpha=0.1)),
    ("leaky relu default", VECTOR, (13,), lambda b: b.op("LeakyRelu", "x")),
    ("prelu", IMAGE, (8, 9, 16), lambda b: b.op("PRelu", "x", b.random(4, 1, 1))),
    ("abs", VECTOR, (8, 13), lambda b: b.op("Abs", "x")),
    ("clip", VECTOR, (8, 9), lambda b: b.op("Clip", "x", min=-0.3, max=0.4)),
    ("clip operands", VECTOR, (11, 13), lambda b: b.op(
        "Clip", "x", b.const(0.0), b.const(0.4))),
    ("clip above", VECTOR, (11, 13), lambda b: b.op("Clip", "x", "", b.const(0.0))),
    ("clip nothing", VECTOR, (9,), lambda b: b.op("Clip", "x")),
    ("hard sigmoid", VECTOR, (8, 13), lambda b: b.op("HardSigmoid", "x", alpha=0.7, beta=0.4)),
    ("max", VECTOR, (8, 13), lambda b: b.op("Max", "x", b.op("Neg", "x"), b.random(8))),
    ("min", VECTOR, (8, 13), lambda b: b.op("Min", "x", b.random(8), b.op("Neg", "x"))),
    ("max of one", VECTOR, (13,), lambda b: b.op("Max", "x")),
]  # fmt: skip

IDS = [f"{name}, opset {opset}" for name, _, opsets, _ in CASES for opset in opsets]
ROWS = [(shape, opset, case) for _, shape, opsets, case in CASES for opset in opsets]


@pytest.mark.parametrize(("shape", "opset", "case"), ROWS, ids=IDS)
@pytest.mark.parametrize("dense_entries", [1000_000, 0], ids=["matrices", "operators"])
def test_network_computes_what_onnxruntime_computes(
    tmp_path: Path, shape: tuple[int, ...], opset: int, case: Case, dense_entries: int
) -> None:
    builder = Builder(shape, opset)
    end = builder.op("Relu", builder.op("Sub", case(builder), builder.const(0.1)))
    end = builder.op("Mul", end, builder.const(-1.5))
    path = builder.save(tmp_path / "net.onnx", end)
    model = load_network(path, dense_entries=dense_entries)
    assert_equal_to_runtime(model)
    for affine in (*model.network.layers, model.network.output):
        assert isinstance(affine, Dense if dense_entries else Operator)
        assert_adjoint(affine, model.network)


@pytest.mark.parametrize(("shape", "opset", "case"), ROWS, ids=IDS)
def test_operator_may_stand_at_the_end(
    tmp_path: Path, shape: tuple[int, ...], opset: int, case: Case
) -> None:
    builder = Builder(shape, opset)
    assert_equal_to_runtime(load_network(builder.save(tmp_path / "net.onnx", case(builder))))


def assert_equal_to_runtime(model: LoadedNetwork, samples: int = 5) -> None:
    x = np.random.default_rng(1).normal(size=(samples, model.network.inputs)).astype(np.float32)
    expected = model.runtime.run_many(x)
    actual = model.network(torch.from_numpy(x).double()).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def assert_adjoint(affine: AffineMap, network: Network) -> None:
    """<A v, r> = <v, A^T r>, with two batch dimensions."""
    sizes = (network.inputs, *network.widths)
    values = [torch.randn(2, 3, sizes[s], dtype=network.dtype) for s in affine.sources]
    rows = torch.randn(2, 3, affine.outputs, dtype=network.dtype)
    pulled = affine.adjoint(rows)
    left = (affine.linear(values) * rows).sum(-1)
    right = sum((v * p).sum(-1) for v, p in zip(values, pulled, strict=True))
    torch.testing.assert_close(left, right)
    zeros = [torch.zeros_like(v) for v in values]
    assert not affine.linear(zeros).any()
