"""What cannot be loaded is refused in one line that says what and where."""

from __future__ import annotations

import gzip
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.certificate.checker.network import read_network
from fgp_vnn.network import load_network
from tests.helpers.network_models import Builder

SHAPE = [1, 4]


def simple() -> tuple[Builder, str]:
    builder = Builder(SHAPE)
    return builder, builder.op("Relu", builder.op("Gemm", "x", builder.random(4, 3)))


def content() -> bytes:
    builder, end = simple()
    return bytes(builder.model(end).SerializeToString())


def external() -> bytes:
    model = onnx.ModelProto.FromString(content())
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    return bytes(model.SerializeToString())


def without_opset() -> bytes:
    model = onnx.ModelProto.FromString(content())
    del model.opset_import[:]
    return bytes(model.SerializeToString())


def saved() -> bytes:
    """What torch.save writes."""
    file = io.BytesIO()
    torch.save({"weight": torch.zeros(2)}, file)
    return file.getvalue()


FILES: list[tuple[str, bytes, str]] = [
    ("empty", b"", "not an ONNX file"),
    ("text", b"(assert (<= X_0 1))\n", "not an ONNX file"),
    ("half a network", content()[: len(content()) // 2], "not an ONNX file"),
    ("torch.save", saved(), "torch.onnx.export"),
    ("a pickle", pickle.dumps([1.0]), "torch.onnx.export"),
    ("half a gzip file", gzip.compress(content())[:-20], ""),
    ("external data", external(), "is not in the network's folder"),
    ("no opset", without_opset(), "version"),
]


@pytest.mark.parametrize(("data", "words"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_file_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    assert_refused(path, words, InputError)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    kept=st.integers(0, len(content())),
    changes=st.dictionaries(st.integers(0, len(content()) - 1), st.integers(0, 255), max_size=3),
)
def test_damaged_file_loads_or_is_refused(kept: int, changes: dict[int, int]) -> None:
    data = bytearray(content())
    for place, value in changes.items():
        data[place] = value
    with TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        path.write_bytes(bytes(data[:kept]) if not changes else bytes(data))
        try:
            load_network(path)
        except InputError as error:
            assert "\n" not in str(error)


def test_a_network_that_onnxruntime_refuses_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    builder = Builder([1, 1, 4, 4])
    scales = builder.const([1, 1, 2, 2])
    mode = b"\xff"  # no text, so that the message of onnxruntime is none either
    end = builder.op("Resize", "x", "", scales, coordinate_transformation_mode=mode)
    assert_refused(builder.save(tmp_path / "net.onnx", end), "", UnsupportedError)
    printed = capfd.readouterr()
    assert printed.out + printed.err == ""


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path / "absent.onnx", "", InputError)
    assert_refused(tmp_path, "", InputError)


def weights(value: float) -> Callable[[Builder], str]:
    array = np.ones((4, 3))
    array[1, 2] = value
    return lambda b: str(b.op("MatMul", "x", b.const(array)))


def signalling(b: Builder) -> str:
    array = np.ones((4, 3), dtype=np.float32)
    array.view(np.uint32)[1, 2] = 0x7F800001  # a NaN that numpy warns of when it is converted
    return str(b.op("MatMul", "x", b.const(array)))


def noise() -> onnx.GraphProto:
    node = onnx.helper.make_node("RandomUniform", [], ["noise"], shape=[4])
    output = onnx.helper.make_tensor_value_info("noise", TensorProto.FLOAT, [4])
    return onnx.helper.make_graph([node], "branch", [], [output])


# Name, the network, and words that the message must have.
NETWORKS: list[tuple[str, Callable[[Builder], Any], list[str]]] = [
    ("det", lambda b: b.op("Det", "x"), ["Det", "det0", "supported", "model.md"]),
    ("cast to integers", lambda b: b.op("Cast", b.op(
        "Cast", "x", to=TensorProto.INT64), to=TensorProto.FLOAT), ["Cast", "cast0"]),
    ("max pool with indices", lambda b: b.op("MaxPool", b.op(
        "Reshape", "x", b.ints(1, 1, 4)), outputs=2, kernel_shape=[2])[0], ["MaxPool", "indices"]),
    ("cubic interpolation", lambda b: b.op("Resize", b.op(
        "Reshape", "x", b.ints(1, 1, 2, 2)), "", b.const([1, 1, 2, 2]), mode="cubic"),
        ["Resize", "resize1", "nearest and linear"]),
    ("training of a norm", lambda b: b.op("BatchNormalization", b.op(
        "Reshape", "x", b.ints(1, 1, 4)), *(b.positive(1) for _ in range(4)),
        outputs=3, training_mode=1)[0], ["BatchNorm"]),
    ("a curve of constants", lambda b: b.op("Gemm", "x", b.op("Cos", b.op(
        "Where", b.op("IsNaN", "x"), "x", b.random(1, 4))), transB=1), ["Cos", "constants"]),
    ("a product of constants", lambda b: b.op("Gemm", b.random(1, 2), b.random(2, 4), "x"),
        ["Gemm", "constants"]),
    ("slopes that vary", lambda b: b.op("PRelu", "x", "x"), ["PRelu", "not constant"]),
    ("clip the wrong way", lambda b: b.op(
        "Clip", "x", b.const(1.0), b.const(0.0)), ["Clip", "above"]),
    ("a tensor of any size", lambda b: b.op("MaxPool", b.op(
        "Reshape", "x", b.ints(1, 1, 4)), kernel_shape=[4], pads=[1 << 31, 0]),
        ["t1_0", "entries"]),
    ("pads that vary", lambda b: b.op("Pad", "x", b.op(
        "Cast", b.op("Concat", "x", "x", axis=1), to=TensorProto.INT64), mode="reflect"),
        ["Pad", "not constant"]),
    ("constant output", lambda b: b.op("Relu", b.random(3)), ["does not depend"]),
    ("nan", weights(np.nan), ["c0", "NaN"]),
    ("signalling nan", signalling, ["c0", "NaN"]),
    ("infinity", weights(np.inf), ["c0", "infinite"]),
    ("computed infinity", lambda b: b.op(
        "Add", "x", b.op("Div", b.random(4), b.const(0.0))), ["t0_0", "infinite"]),
    ("integers in a product", lambda b: b.op(
        "MatMul", "x", b.const(np.ones((4, 3)), np.uint16)), ["dtype"]),
    ("more parts than it says", lambda b: b.op(
        "Split", "x", outputs=3, axis=1, num_outputs=1)[2], ["Split", "split0", "num_outputs 1"]),
    ("random noise", lambda b: b.op("Add", "x", b.op(
        "RandomNormalLike", b.random(4), seed=1.0)), ["RandomNormalLike", "random"]),
    ("random numbers", lambda b: b.op("Add", "x", b.op(
        "RandomUniformLike", b.random(4))), ["RandomUniformLike", "random"]),
    ("random numbers of a shape", lambda b: b.op("Add", "x", b.op(
        "RandomUniform", shape=[4], seed=2.0)), ["RandomUniform", "random"]),
    ("random weights", lambda b: b.op("MatMul", "x", b.op("Relu", b.op(
        "RandomNormal", shape=[4, 3]))), ["RandomNormal", "random"]),
    ("random bits", lambda b: b.op("Mul", "x", b.op(
        "Bernoulli", b.const(np.full(4, 0.5)), seed=0.0)), ["Bernoulli", "random"]),
    ("random choices", lambda b: b.op("Gather", "x", b.op(
        "Multinomial", b.const(np.zeros((1, 4))), sample_size=2), axis=1), ["Multinomial"]),
    ("dropout in training", lambda b: b.op("Dropout", "x", b.const(0.5), b.const(
        True, np.bool_)), ["Dropout", "random"]),
    ("dropout of a constant in training", lambda b: b.op("Add", "x", b.op(
        "Dropout", b.random(4), b.const(0.5), b.const(True, np.bool_))), ["Dropout", "random"]),
    ("random numbers in a branch", lambda b: b.op("Add", "x", b.op(
        "If", b.const(True, np.bool_), then_branch=noise(), else_branch=noise())), ["If", "graph"]),
    ("a tensor too large", lambda b: b.op("ReduceSum", b.op(
        "Tile", "x", b.ints(1, 10**8)), keepdims=0), ["t0_0", "400000000 entries"]),
    ("no entries", lambda b: b.op("Slice", "x", b.ints(2), b.ints(2), b.ints(1)), ["0 entries"]),
    ("a dilated pool padded the same", lambda b: b.op("MaxPool", b.op(
        "Reshape", "x", b.ints(1, 1, 4)), kernel_shape=[2], dilations=[2], auto_pad="SAME_UPPER"),
        ["MaxPool", "SAME"]),
    ("a pool padded the same, with gaps", lambda b: b.op("AveragePool", b.op(
        "Reshape", "x", b.ints(1, 1, 2, 2)), kernel_shape=[1, 2], strides=[2, 1],
        auto_pad="SAME_UPPER"), ["AveragePool", "SAME"]),
    ("a transposed convolution padded in two ways", lambda b: b.op("ConvTranspose", b.op(
        "Reshape", "x", b.ints(1, 1, 4)), b.random(1, 1, 3), strides=[2], output_padding=[1],
        auto_pad="SAME_UPPER"), ["ConvTranspose", "output_padding"]),
    ("a crop beyond the image", lambda b: b.op("Resize", b.op(
        "Reshape", "x", b.ints(1, 1, 2, 2)), b.const([0, 0, 0, 0, 1, 1, 2, 2]), b.const(
        [1, 1, 2, 2]), coordinate_transformation_mode="tf_crop_and_resize"),
        ["Resize", "outside"]),
    ("two outputs", lambda b: [b.op("Relu", "x"), b.op("Neg", "x")], ["2 outputs"]),
    ("unknown operator", lambda b: b.op("Frobnicate", "x"), ["Frobnicate"]),
    ("other domain", lambda b: b.op("Gelu", "x", domain="com.microsoft"), ["com.microsoft"]),
    ("unknown tensor", lambda b: b.op("Add", "x", "nowhere"), ["nowhere"]),
    ("wrong sizes", lambda b: b.op("MatMul", "x", b.random(5, 2)), [""]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("network", "words"), [n[1:] for n in NETWORKS], ids=[n[0] for n in NETWORKS]
)
def test_network_is_refused(
    tmp_path: Path, network: Callable[[Builder], Any], words: list[str]
) -> None:
    builder = Builder(SHAPE)
    path = builder.save(tmp_path / "net.onnx", network(builder))
    for word in words:
        assert_refused(path, word, InputError)


@pytest.mark.parametrize(
    ("shape", "kind", "words"),
    [
        ([1, "width"], TensorProto.FLOAT, "open dimension"),
        (None, TensorProto.FLOAT, "no shape"),
        ([1, 4], TensorProto.INT64, "INT64"),
        ([1, 4], TensorProto.DOUBLE, "DOUBLE"),
    ],
)
def test_input_is_refused(tmp_path: Path, shape: Any, kind: int, words: str) -> None:
    builder = Builder(shape)
    path = builder.save(tmp_path / "net.onnx", builder.op("Identity", "x"), kind=kind)
    assert_refused(path, words, UnsupportedError)


def test_operators_that_a_file_defines_are_refused(tmp_path: Path) -> None:
    builder = Builder(SHAPE)
    model = builder.model(builder.op("Relu", "x"))
    node = onnx.helper.make_node("Neg", ["a"], ["b"])
    own = onnx.helper.make_function("", "Relu", ["a"], ["b"], [node], model.opset_import)
    model.functions.append(own)
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    assert_refused(path, "its own operators", UnsupportedError)
    with pytest.raises(UnsupportedError, match="its own operators"):
        read_network(path.read_bytes())


def test_a_long_chain_of_copies_is_one_layer(tmp_path: Path) -> None:
    builder = Builder(SHAPE)
    end = "x"
    for _ in range(2500):
        end = builder.op("Identity", builder.op("Relu", end))
    assert load_network(builder.save(tmp_path / "net.onnx", end)).network.widths == (4,)


def test_two_inputs_are_refused(tmp_path: Path) -> None:
    builder = Builder(SHAPE)
    model = builder.model(builder.op("Add", "x", "z"))
    model.graph.input.append(onnx.helper.make_tensor_value_info("z", TensorProto.FLOAT, SHAPE))
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    assert_refused(path, "2 inputs", UnsupportedError)


def assert_refused(path: Path, words: str, kind: type[InputError]) -> None:
    with pytest.raises(kind) as caught:
        load_network(path)
    message = str(caught.value)
    assert words in message and str(path) in message
    assert "\n" not in message
