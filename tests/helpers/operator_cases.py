"""A table of small networks, an operator each, for the tests of the loader and of the bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from tests.helpers.network_models import Builder

Case = Callable[[Builder], str]
Row = tuple[str, tuple[int, ...], tuple[int, ...], Case]
IMAGE = (1, 4, 6, 6)
LINE = (1, 4, 9)
VECTOR = (1, 8)
ODD = (1, 4, 5, 7)

# Name, input shape, the opsets between which what is written or meant differs, the part under test.
CASES: list[Row] = [
    ("relu", VECTOR, (21,), lambda b: b.op("Relu", "x")),
    ("gemm", VECTOR, (8, 9, 13, 21), lambda b: b.op("Gemm", "x", b.random(8, 5), b.random(5))),
    ("gemm scaled", VECTOR, (9, 13), lambda b: b.op(
        "Gemm", "x", b.random(5, 8), b.random(1, 5), transB=1, alpha=0.3, beta=1.7)),
    ("gemm without bias", VECTOR, (13,), lambda b: b.op("Gemm", "x", b.random(8, 5))),
    ("gemm from the left", (8, 1), (13,), lambda b: b.op(
        "Gemm", b.random(5, 8), "x", b.random(5, 1))),
    ("matmul", VECTOR, (13,), lambda b: b.op("MatMul", "x", b.random(8, 5))),
    ("matmul of rows", (1, 3, 4), (13,), lambda b: b.op("MatMul", "x", b.random(4, 5))),
    ("matmul from the left", (4, 3), (13,), lambda b: b.op("MatMul", b.random(5, 4), "x")),
    ("two products", VECTOR, (13,), lambda b: b.op("MatMul", b.op(
        "Add", b.op("MatMul", "x", b.random(8, 5)), b.random(5)), b.random(5, 3))),
    ("add", VECTOR, (13,), lambda b: b.op("Add", b.random(8), "x")),
    ("add broadcast", (1, 4, 1), (13,), lambda b: b.op("Add", "x", b.random(1, 4, 3))),
    ("sub", VECTOR, (13,), lambda b: b.op("Sub", "x", b.random(8))),
    ("add of a branch", IMAGE, (13,), lambda b: b.op("Add", b.op("GlobalAveragePool", "x"), "x")),
    ("add to itself", VECTOR, (13,), lambda b: b.op("Add", "x", "x")),
    ("sub of a branch", IMAGE, (13,), lambda b: b.op(
        "Sub", "x", b.op("ReduceMean", "x", axes=[1], keepdims=1))),
    ("sub from constant", VECTOR, (13,), lambda b: b.op("Sub", b.random(8), "x")),
    ("mul", VECTOR, (13,), lambda b: b.op("Mul", b.random(8), "x")),
    ("mul by a number", VECTOR, (13,), lambda b: b.op("Mul", b.const(-2.5), "x")),
    ("mul by channel", IMAGE, (13,), lambda b: b.op("Mul", "x", b.random(1, 4, 1, 1))),
    ("mul broadcast", (1, 4, 1, 1), (13,), lambda b: b.op("Mul", "x", b.random(1, 1, 3, 3))),
    ("div", VECTOR, (13,), lambda b: b.op("Div", "x", b.positive(8))),
    ("div broadcast", (1, 4, 1, 1), (13,), lambda b: b.op("Div", "x", b.positive(1, 1, 3, 3))),
    ("div by a number", VECTOR, (13,), lambda b: b.op("Div", "x", b.const(-3.0))),
    ("neg", VECTOR, (13,), lambda b: b.op("Neg", "x")),
    ("sum", VECTOR, (13,), lambda b: b.op("Sum", "x", b.random(8), b.op("Neg", "x"))),
    ("mean", VECTOR, (13,), lambda b: b.op("Mean", "x", b.random(8))),
    ("identity and dropout", VECTOR, (8, 10, 13, 22), lambda b: b.op(
        "Identity", b.op("Dropout", "x"))),
    ("cast", VECTOR, (13,), lambda b: b.op("Cast", "x", to=TensorProto.FLOAT)),
    ("flatten", IMAGE, (21,), lambda b: b.op("Flatten", "x")),
    ("flatten at 2", IMAGE, (13,), lambda b: b.op("Flatten", "x", axis=2)),
    ("flatten from behind", IMAGE, (13,), lambda b: b.op("Flatten", "x", axis=-1)),
    ("reshape", IMAGE, (21,), lambda b: b.op("Reshape", "x", b.ints(1, -1, 3))),
    ("reshape keeping", IMAGE, (13,), lambda b: b.op("Reshape", "x", b.ints(0, -1))),
    ("transpose", IMAGE, (21,), lambda b: b.op("Transpose", "x", perm=[0, 2, 3, 1])),
    ("transpose all", IMAGE, (13,), lambda b: b.op("Transpose", "x")),
    ("squeeze", (1, 4, 1), (8, 11), lambda b: b.op("Squeeze", "x", axes=[2])),
    ("squeeze operand", (1, 4, 1), (13, 21), lambda b: b.op("Squeeze", "x", b.ints(-1))),
    ("squeeze all", (1, 4, 1, 2), (8, 13), lambda b: b.op("Squeeze", "x")),
    ("unsqueeze", VECTOR, (8, 11), lambda b: b.op("Unsqueeze", "x", axes=[0, 2])),
    ("unsqueeze operand", VECTOR, (13, 21), lambda b: b.op("Unsqueeze", "x", b.ints(2))),
    ("concat", VECTOR, (13,), lambda b: b.op(
        "Concat", "x", b.random(1, 3), b.op("Relu", "x"), axis=1)),
    ("concat from behind", IMAGE, (13,), lambda b: b.op(
        "Concat", "x", b.op("Neg", "x"), "x", axis=-2)),
    ("slice", IMAGE, (9,), lambda b: b.op("Slice", "x", starts=[1, 0], ends=[3, 9], axes=[1, 3])),
    ("slice operand", IMAGE, (10, 13), lambda b: b.op(
        "Slice", "x", b.ints(-1, 1), b.ints(-9, 6), b.ints(3, 1), b.ints(-2, 1))),
    ("slice of the first axes", IMAGE, (13,), lambda b: b.op(
        "Slice", "x", b.ints(0, 1), b.ints(1, 3))),
    ("split", VECTOR, (9, 11), lambda b: b.op(
        "Sub", *b.op("Split", "x", outputs=2, axis=1, split=[4, 4]))),
    ("split operand", VECTOR, (13,), lambda b: b.op(
        "Split", "x", b.ints(3, 5), outputs=2, axis=1)[1]),
    ("split evenly", VECTOR, (9, 13), lambda b: b.op("Split", "x", outputs=4, axis=-1)[2]),
    ("split of channels", IMAGE, (13,), lambda b: b.op(
        "Concat", *reversed(b.op("Split", "x", b.ints(1, 3), outputs=2, axis=1)), axis=1)),
    ("split in parts", VECTOR, (18, 21), lambda b: b.op(
        "Split", "x", outputs=3, axis=1, num_outputs=3)[2]),
    ("gather", VECTOR, (9, 13), lambda b: b.op("Gather", "x", b.ints(3, -1, 3), axis=1)),
    ("gather one", IMAGE, (13,), lambda b: b.op("Gather", "x", b.const(-2, np.int64), axis=2)),
    ("gather a matrix", IMAGE, (13,), lambda b: b.op(
        "Gather", "x", b.const([[0, 1], [2, 3]], np.int64), axis=3)),
    ("gather nd", IMAGE, (13,), lambda b: b.op(
        "GatherND", "x", b.const([[0, 1], [0, 3]], np.int64))),
    ("gather elements", (1, 3), (13,), lambda b: b.op(
        "GatherElements", "x", b.const([[2, 0]], np.int64), axis=1)),
    ("expand", (1, 4, 1), (13,), lambda b: b.op("Expand", "x", b.ints(1, 4, 3))),
    ("tile", VECTOR, (13,), lambda b: b.op("Tile", "x", b.ints(1, 2))),
    ("depth to space", IMAGE, (13,), lambda b: b.op("DepthToSpace", "x", blocksize=2)),
    ("space to depth", IMAGE, (13,), lambda b: b.op("SpaceToDepth", "x", blocksize=2)),
    ("upsample", IMAGE, (9,), lambda b: b.op("Upsample", "x", b.const([1, 1, 2, 2]))),
    ("resize nearest", IMAGE, (11, 13, 19), lambda b: b.op(
        "Resize", "x", b.const([]), b.const([1, 1, 2, 2]), mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor")),
    ("resize to a size", IMAGE, (11, 13, 18), lambda b: b.op(
        "Resize", "x", b.const([]), b.const([]), b.ints(1, 4, 9, 3), mode="nearest")),
    ("resize some axes", IMAGE, (18,), lambda b: b.op(
        "Resize", "x", "", "", b.ints(9, 3), mode="nearest", axes=[2, 3])),
    ("resize opset 10", IMAGE, (10,), lambda b: b.op("Resize", "x", b.const([1, 1, 2, 2]))),
    ("resize rounding up", LINE, (13,), lambda b: b.op(
        "Resize", "x", "", b.const([1, 1, 1.5]), mode="nearest", nearest_mode="ceil",
        coordinate_transformation_mode="align_corners")),
    ("resize of a part", IMAGE, (13,), lambda b: b.op(
        "Resize", "x", b.const([0, 0, 0.2, 0.2, 1, 1, 0.8, 0.8]), b.const([1, 1, 2, 2]),
        mode="nearest", coordinate_transformation_mode="tf_crop_and_resize")),
    ("resize linear", IMAGE, (13,), lambda b: b.op(
        "Resize", "x", b.const([]), b.const([1, 1, 2, 2]), mode="linear")),
    ("resize linear, corners aligned", IMAGE, (13, 18), lambda b: b.op(
        "Resize", "x", "", b.const([1, 1, 2, 2]), mode="linear",
        coordinate_transformation_mode="align_corners")),
    ("where", VECTOR, (16,), lambda b: b.op(
        "Where", b.const([True, False] * 4, np.bool_), "x", b.random(8))),
    ("pad", IMAGE, (9,), lambda b: b.op("Pad", "x", pads=[0, 0, 1, 2, 0, 0, 0, 1], value=0.5)),
    ("pad operand", IMAGE, (11, 13, 18, 21), lambda b: b.op(
        "Pad", "x", b.ints(0, 1, 1, 2, 0, 0, 0, 1), b.const(0.5))),
    ("pad with zeros", IMAGE, (11, 13), lambda b: b.op("Pad", "x", b.ints(0, 0, 1, 2, 0, 0, 0, 1))),
    ("pad some axes", IMAGE, (18,), lambda b: b.op(
        "Pad", "x", b.ints(1, 2), b.const(0.5), b.ints(-1))),
    ("pad and cut", IMAGE, (11, 18), lambda b: b.op(
        "Pad", "x", b.ints(0, 0, -1, 2, 0, 0, 0, -2), b.const(0.7))),
    ("pad around", IMAGE, (19,), lambda b: b.op(
        "Pad", "x", b.ints(0, 0, 1, 2, 0, 0, 0, 1), mode="wrap")),
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
    ("conv padded the same, strided", ODD, (11,), lambda b: b.op(
        "Conv", "x", b.random(3, 4, 3, 2), auto_pad="SAME_LOWER", strides=[2, 2])),
    ("conv with an unnamed bias", IMAGE, (11,), lambda b: b.op(
        "Conv", "x", b.random(3, 4, 2, 2), "")),
    ("conv padded never", IMAGE, (11,), lambda b: b.op(
        "Conv", "x", b.random(3, 4, 3, 3), auto_pad="VALID")),
    ("conv by channel", IMAGE, (11,), lambda b: b.op(
        "Conv", "x", b.random(4, 1, 3, 3), b.random(4), group=4)),
    ("conv 3d", (1, 2, 3, 4, 4), (11,), lambda b: b.op(
        "Conv", "x", b.random(3, 2, 2, 2, 2), b.random(3), pads=[1] * 6)),
    ("conv 1d grouped dilated", LINE, (11,), lambda b: b.op(
        "Conv", "x", b.random(6, 2, 2), b.random(6), group=2, dilations=[3], pads=[2, 1])),
    ("conv 1d", LINE, (11,), lambda b: b.op(
        "Conv", "x", b.random(5, 4, 3), b.random(5), pads=[1, 1], strides=[2])),
    ("conv transpose", IMAGE, (11, 22), lambda b: b.op(
        "ConvTranspose", "x", b.random(4, 2, 3, 3), b.random(2), strides=[2, 2],
        pads=[1, 1, 1, 1], output_padding=[1, 1])),
    ("conv transpose 1d", LINE, (11,), lambda b: b.op(
        "ConvTranspose", "x", b.random(4, 3, 3), b.random(3), strides=[3], output_padding=[2])),
    ("conv transpose grouped", IMAGE, (11,), lambda b: b.op(
        "ConvTranspose", "x", b.random(4, 3, 3, 3), b.random(6), group=2)),
    ("conv transpose dilated", IMAGE, (11,), lambda b: b.op(
        "ConvTranspose", "x", b.random(4, 3, 3, 3), dilations=[2, 2], pads=[1, 1, 1, 1])),
    ("conv transpose padded on one side", IMAGE, (9, 11), lambda b: b.op(
        "ConvTranspose", "x", b.random(4, 3, 3, 3), b.random(3), strides=[2, 3],
        pads=[0, 1, 2, 1], output_padding=[0, 2])),
    ("conv transpose padded the same", IMAGE, (11,), lambda b: b.op(
        "ConvTranspose", "x", b.random(4, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER")),
    ("conv transpose padded the same in front", IMAGE, (11,), lambda b: b.op(
        "ConvTranspose", "x", b.random(4, 3, 4, 3), strides=[2, 2], auto_pad="SAME_LOWER")),
    ("conv transpose to a size", IMAGE, (11,), lambda b: b.op(
        "ConvTranspose", "x", b.random(4, 3, 3, 3), strides=[2, 2], output_shape=[12, 12])),
    ("average pool", IMAGE, (8, 11, 22), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[2, 3], strides=[2, 1])),
    ("average pool padded", IMAGE, (11,), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1])),
    ("average pool counting pads", IMAGE, (11,), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)),
    ("average pool 1d", LINE, (11,), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3], strides=[2])),
    ("average pool rounded up", ODD, (11, 19), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 3], strides=[2, 3], pads=[1, 1, 1, 1], ceil_mode=1)),
    ("average pool rounded up, counting pads", ODD, (11, 19), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 3], strides=[2, 3], pads=[1, 1, 1, 1], ceil_mode=1,
        count_include_pad=1)),
    ("average pool padded on one side", IMAGE, (11,), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 3], pads=[0, 1, 2, 0])),
    ("average pool padded on one side, rounded up, counting pads", ODD, (19,), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 3], strides=[2, 3], pads=[0, 1, 2, 0], ceil_mode=1,
        count_include_pad=1)),
    ("average pool padded the same", ODD, (11,), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER")),
    ("average pool padded the same, counting pads", ODD, (11,), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_LOWER",
        count_include_pad=1)),
    ("average pool dilated", IMAGE, (19, 22), lambda b: b.op(
        "AveragePool", "x", kernel_shape=[2, 2], dilations=[2, 3], pads=[1, 1, 1, 1])),
    ("global average pool", IMAGE, (22,), lambda b: b.op("GlobalAveragePool", "x")),
    ("global average pool 1d", LINE, (13,), lambda b: b.op("GlobalAveragePool", "x")),
    ("batch norm", IMAGE, (8, 9, 14, 15), lambda b: b.op(
        "BatchNormalization", "x", b.positive(4), b.random(4), b.random(4), b.positive(4))),
    ("batch norm of a vector", VECTOR, (9, 15), lambda b: b.op(
        "BatchNormalization", "x", b.positive(8), b.random(8), b.random(8), b.positive(8))),
    ("batch norm 1d", LINE, (9, 15), lambda b: b.op(
        "BatchNormalization", "x", b.random(4), b.random(4), b.random(4), b.positive(4),
        epsilon=0.1)),
    ("batch norm, transposed", (1, 2, 1, 4), (15,), lambda b: b.op("Transpose", b.op(
        "BatchNormalization", "x", b.random(2), b.random(2), b.random(2), b.positive(2)))),
    ("reduce sum", IMAGE, (8, 11), lambda b: b.op("ReduceSum", "x", axes=[-1, 1], keepdims=0)),
    ("reduce sum operand", IMAGE, (13, 21), lambda b: b.op("ReduceSum", "x", b.ints(-1, 1))),
    ("reduce sum of all", VECTOR, (13,), lambda b: b.op("ReduceSum", "x", keepdims=0)),
    ("reduce sum of nothing", IMAGE, (13,), lambda b: b.op(
        "ReduceSum", "x", noop_with_empty_axes=1)),
    ("reduce mean", IMAGE, (8, 13), lambda b: b.op("ReduceMean", "x", axes=[2, 3])),
    ("reduce mean operand", IMAGE, (18, 21), lambda b: b.op(
        "ReduceMean", "x", b.ints(2, 3), keepdims=0)),
    ("reduce mean dropping", IMAGE, (11,), lambda b: b.op(
        "ReduceMean", "x", axes=[1, -1], keepdims=0)),
    ("reduce mean of all", IMAGE, (11, 18), lambda b: b.op("ReduceMean", "x")),
    ("reduce max", IMAGE, (8, 13), lambda b: b.op("ReduceMax", "x", axes=[1, 3], keepdims=0)),
    ("reduce max operand", IMAGE, (18, 20), lambda b: b.op("ReduceMax", "x", b.ints(-1))),
    ("reduce min", IMAGE, (8, 13), lambda b: b.op("ReduceMin", "x", axes=[1])),
    ("reduce min operand", IMAGE, (18,), lambda b: b.op(
        "ReduceMin", "x", b.ints(1), keepdims=0)),
    ("max pool", IMAGE, (8, 11, 22), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])),
    ("max pool padded", IMAGE, (11,), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[3, 2], pads=[1, 0, 0, 1], strides=[1, 2])),
    ("max pool dilated, rounded up", IMAGE, (11,), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[2, 2], dilations=[2, 1], strides=[2, 2], ceil_mode=1)),
    ("max pool padded the same", IMAGE, (11,), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER")),
    ("max pool padded, rounded up", ODD, (11,), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[3, 3], strides=[2, 3], pads=[1, 1, 1, 1], ceil_mode=1)),
    ("max pool padded, dilated", IMAGE, (11,), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[2, 2], dilations=[3, 2], pads=[1, 1, 1, 1])),
    ("max pool padded never", ODD, (11,), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[3, 2], strides=[2, 2], auto_pad="VALID")),
    ("max pool 1d padded", LINE, (8, 11), lambda b: b.op(
        "MaxPool", "x", kernel_shape=[4], strides=[2], pads=[1, 2])),
    ("max pool 1d", LINE, (11,), lambda b: b.op("MaxPool", "x", kernel_shape=[3], strides=[3])),
    ("global max pool", (1, 2, 3, 4), (8, 13), lambda b: b.op("GlobalMaxPool", "x")),
    ("leaky relu", VECTOR, (8, 13, 16), lambda b: b.op("LeakyRelu", "x", alpha=0.1)),
    ("leaky relu, its mean", IMAGE, (11,), lambda b: b.op(
        "GlobalAveragePool", b.op("LeakyRelu", "x"))),
    ("sum of abs", VECTOR, (11,), lambda b: b.op("ReduceSum", b.op("Abs", "x"), axes=[1])),
    ("reduce sum of squares over no axes", VECTOR, (18,), lambda b: b.op(
        "ReduceSumSquare", "x", noop_with_empty_axes=1)),
    ("reduce l1", VECTOR, (11,), lambda b: b.op("ReduceL1", "x", axes=[1])),
    ("leaky relu default", VECTOR, (13,), lambda b: b.op("LeakyRelu", "x")),
    ("prelu", IMAGE, (8, 9, 16), lambda b: b.op("PRelu", "x", b.random(4, 1, 1))),
    ("prelu with one slope", VECTOR, (9, 16), lambda b: b.op("PRelu", "x", b.const([1.7]))),
    ("prelu with all slopes", IMAGE, (16,), lambda b: b.op("PRelu", "x", b.random(4, 6, 6))),
    ("abs", VECTOR, (8, 13), lambda b: b.op("Abs", "x")),
    ("clip", VECTOR, (8, 9), lambda b: b.op("Clip", "x", min=-0.3, max=0.4)),
    ("clip operands", VECTOR, (11, 13), lambda b: b.op(
        "Clip", "x", b.const(0.0), b.const(0.4))),
    ("clip above", VECTOR, (11, 13), lambda b: b.op("Clip", "x", "", b.const(0.0))),
    ("clip below", VECTOR, (11, 13), lambda b: b.op("Clip", "x", b.const([0.2]))),
    ("hard tanh", VECTOR, (13,), lambda b: b.op("Clip", "x", b.const(-1.0), b.const(1.0))),
    ("clip nothing", VECTOR, (9,), lambda b: b.op("Clip", "x")),
    ("hard sigmoid", VECTOR, (8, 13), lambda b: b.op("HardSigmoid", "x", alpha=0.7, beta=0.4)),
    ("hard sigmoid default", VECTOR, (13,), lambda b: b.op("HardSigmoid", "x")),
    ("max", VECTOR, (8, 13), lambda b: b.op("Max", "x", b.op("Neg", "x"), b.random(8))),
    ("min", VECTOR, (8, 13), lambda b: b.op("Min", "x", b.random(8), b.op("Neg", "x"))),
    ("max with a number", VECTOR, (13,), lambda b: b.op("Max", b.const(0.1), "x")),
    ("min broadcast", IMAGE, (13,), lambda b: b.op(
        "Min", b.random(4, 1, 1), "x", b.op("GlobalAveragePool", "x"))),
    ("max of one", VECTOR, (13,), lambda b: b.op("Max", "x")),
]  # fmt: skip


def one_per_operator() -> list[Row]:
    """The first row of each operator, or combination of them: for what knows no attributes."""
    rows: dict[frozenset[str], Row] = {}
    for row in CASES:
        builder = Builder(row[1], row[2][-1])
        row[3](builder)
        rows.setdefault(frozenset(node.op_type for node in builder.nodes), row)
    return list(rows.values())
