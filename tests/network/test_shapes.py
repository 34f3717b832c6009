"""The shapes that networks come in: traps of the ONNX files, and the normal form they lead to."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fgp_vnn.network import Dense, Operator, load_network
from tests.helpers.agreement import assert_agrees
from tests.helpers.network_models import Builder


def dense(b: Builder, x: str, inputs: int, outputs: int) -> str:
    return str(b.op("Gemm", x, b.random(inputs, outputs), b.random(outputs)))


def layer(b: Builder, x: str, inputs: int, outputs: int) -> str:
    return str(b.op("Relu", dense(b, x, inputs, outputs)))


def residual(b: Builder) -> str:
    a = layer(b, "x", 4, 6)
    return str(b.op("Relu", b.op("Add", dense(b, layer(b, a, 6, 6), 6, 6), a)))


def concatenated(b: Builder) -> str:
    a = layer(b, "x", 4, 3)
    both = b.op("Concat", a, "x", layer(b, a, 3, 2), axis=1)
    return dense(b, both, 9, 2)


def shared_layer(b: Builder) -> str:
    a = layer(b, "x", 4, 5)
    return str(b.op("Sub", layer(b, a, 5, 3), layer(b, dense(b, a, 5, 2), 2, 3)))


def relu_of_relu(b: Builder) -> str:
    return str(b.op("Relu", layer(b, "x", 4, 3)))


def relu_twice(b: Builder) -> str:
    z = dense(b, "x", 4, 3)
    return str(b.op("Add", b.op("Relu", z), b.op("Mul", b.op("Relu", z), b.const(2.0))))


def relu_of_constant(b: Builder) -> str:
    return str(b.op("Add", layer(b, "x", 4, 3), b.op("Relu", b.random(3))))


def shape_computations(b: Builder) -> str:
    a = layer(b, "x", 4, 6)
    rows = b.op("Gather", b.op("Shape", a), b.const(0, np.int64), axis=0)
    shape = b.op("Concat", b.op("Unsqueeze", rows, b.ints(0)), b.ints(-1, 3), axis=0)
    return str(b.op("MatMul", b.op("Reshape", a, shape), b.random(3, 2)))


def computed_weights(b: Builder) -> str:
    weight = b.op("Transpose", b.op("Div", b.random(5, 4), b.const(3.0)), perm=[1, 0])
    return str(b.op("Relu", b.op("MatMul", "x", weight)))


def literal_reshape(b: Builder) -> str:
    return dense(b, str(b.op("Reshape", layer(b, "x", 4, 6), b.ints(1, 6))), 6, 3)


def no_batch(b: Builder) -> str:
    a = b.op("Relu", b.op("Add", b.op("MatMul", "x", b.random(4, 3)), b.random(3)))
    return str(b.op("MatMul", a, b.random(3, 2)))


def dead_branch(b: Builder) -> str:
    b.op("Relu", b.op("Sigmoid", "x"))
    return layer(b, "x", 4, 3)


# Name, input shape, the network, and the widths of its ReLU layers.
CASES: list[tuple[str, list[Any], Callable[[Builder], str], list[int]]] = [
    ("residual", [1, 4], residual, [6, 6, 6]),
    ("concatenated", [1, 4], concatenated, [3, 2]),
    ("a layer read twice", [1, 4], shared_layer, [5, 3, 3]),
    ("relu of relu", [1, 4], relu_of_relu, [3]),
    ("two relus of one value", [1, 4], relu_twice, [3]),
    ("relu of a constant", [1, 4], relu_of_constant, [3]),
    ("relu of the input", [1, 4], lambda b: dense(b, b.op("Relu", "x"), 4, 2), [4]),
    ("relu alone", [1, 4], lambda b: str(b.op("Relu", "x")), [4]),
    ("no relu", [1, 4], lambda b: dense(b, "x", 4, 2), []),
    ("identity", [1, 4], lambda b: str(b.op("Identity", "x")), []),
    ("a branch that leads nowhere", [1, 4], dead_branch, [3]),
    ("shape computations", [1, 4], shape_computations, [6]),
    ("computed weights", [1, 4], computed_weights, [5]),
    ("literal reshape", [1, 4], literal_reshape, [6]),
    ("literal reshape, symbolic batch", ["N", 4], literal_reshape, [6]),
    ("symbolic batch", ["N", 4], residual, [6, 6, 6]),
    ("missing batch", [None, 4], residual, [6, 6, 6]),
    ("no batch", [4], no_batch, [3]),
    ("several rows", [3, 4], lambda b: layer(b, "x", 4, 2), [6]),
    ("leaky relu is one relu", [1, 4], lambda b: str(b.op("LeakyRelu", "x")), [4]),
    ("clip is two relus", [1, 4], lambda b: str(
        b.op("Clip", "x", b.const(-1.0), b.const(1.0))), [4, 4]),
    ("max pool of four is two layers", [1, 1, 4, 4], lambda b: str(
        b.op("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])), [8, 4]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "case", "widths"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
@pytest.mark.parametrize(
    ("dense_entries", "listed"),
    [(1000_000, False), (0, True)],
    ids=["matrices", "operators, initialisers listed as inputs"],
)
def test_normal_form_of(
    tmp_path: Path,
    shape: list[Any],
    case: Callable[[Builder], str],
    widths: list[int],
    dense_entries: int,
    listed: bool,
) -> None:
    builder = Builder(shape)
    path = builder.save(tmp_path / "net.onnx", case(builder), listed=listed)
    model = load_network(path, dense_entries=dense_entries)
    x = np.random.default_rng(2).normal(size=(6, model.network.inputs)).astype(np.float32)
    expected = np.stack([model.runtime.run(row) for row in x])
    np.testing.assert_allclose(model.runtime.run_many(x), expected, rtol=1e-5, atol=1e-6)
    assert_agrees(model, x)
    assert list(model.network.widths) == widths
    assert model.network.inputs == np.prod([d if isinstance(d, int) else 1 for d in shape])
    assert not model.comparisons_only


@pytest.mark.parametrize("opset", [8, 11, 13])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
def test_final_softmax_is_dropped(tmp_path: Path, kind: str, opset: int) -> None:
    builder = Builder([1, 4], opset)
    logits = layer(builder, "x", 4, 3)
    end = builder.op("Flatten", builder.op(kind, logits, axis=1))
    model = load_network(builder.save(tmp_path / "net.onnx", end))
    assert model.comparisons_only
    x = np.random.default_rng(3).normal(size=4).astype(np.float32)
    y = model.network(torch.from_numpy(x).double())
    after = y.softmax(0) if kind == "Softmax" else y.log_softmax(0)
    np.testing.assert_allclose(after.numpy(), model.runtime.run(x), rtol=1e-5)


def test_weights_are_copied_exactly(tmp_path: Path) -> None:
    builder = Builder([1, 4])
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    bias = np.random.default_rng(1).normal(size=3).astype(np.float32)
    end = builder.op("Gemm", "x", builder.const(weight), builder.const(bias))
    output = load_network(builder.save(tmp_path / "net.onnx", end)).network.output
    assert isinstance(output, Dense)
    np.testing.assert_array_equal(output.weights[0].numpy(), weight.T.astype(np.float64))
    np.testing.assert_array_equal(output.bias.numpy(), bias.astype(np.float64))


def convolved_sum(b: Builder) -> str:
    image = b.op("Relu", b.op("Reshape", "x", b.ints(1, 1, 2, 2)))
    first, second = (b.op("Conv", v, b.random(1, 1, 1, 1), b.const([c])) for v, c in (
        (b.op("Neg", image), 100.0), (image, -100.0)))  # fmt: skip
    return str(b.op("Add", first, second))


def sum_of_sources(b: Builder) -> str:
    image = b.op("Reshape", "x", b.ints(1, 1, 2, 2))
    first, second = (b.op("Conv", v, b.random(1, 1, 1, 1), b.const([c])) for v, c in (
        (b.op("Relu", image), 100.0), (image, -100.0)))  # fmt: skip
    return str(b.op("Add", first, second))


@pytest.mark.parametrize("case", [convolved_sum, sum_of_sources])
@pytest.mark.parametrize("dense_entries", [1000_000, 0], ids=["matrices", "operators"])
def test_offsets_that_cancel_still_count_as_large(
    tmp_path: Path, case: Callable[[Builder], str], dense_entries: int
) -> None:
    """The rounding of 100 - 100 is that of 100, and `magnitude` is what it is bounded by."""
    builder = Builder([1, 4])
    path = builder.save(tmp_path / "net.onnx", case(builder))
    output = load_network(path, dense_entries=dense_entries).network.output
    nothing = [torch.zeros(4, dtype=torch.float64) for _ in output.sources]
    assert not output.bias.any()
    assert bool((output.magnitude(nothing) >= 200).all())


def test_gzipped_file_is_the_same_network(tmp_path: Path) -> None:
    builder = Builder([1, 4])
    path = builder.save(tmp_path / "net.onnx", residual(builder))
    zipped = tmp_path / "net.onnx.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    x = torch.rand(3, 4, dtype=torch.float64)
    assert torch.equal(load_network(path).network(x), load_network(zipped).network(x))


@pytest.mark.parametrize("dense_entries", [1000_000, 0], ids=["matrices", "operators"])
def test_network_moves_to_another_precision(tmp_path: Path, dense_entries: int) -> None:
    builder = Builder([1, 4])
    path = builder.save(tmp_path / "net.onnx", residual(builder))
    network = load_network(path, dense_entries=dense_entries).network
    single = network.to("cpu", torch.float32)
    x = torch.rand(5, 4)
    torch.testing.assert_close(single(x), network(x.double()).float())
    assert single.dtype == torch.float32 and network.dtype == torch.float64


def test_operator_is_differentiable_in_values_and_rows(tmp_path: Path) -> None:
    builder = Builder([1, 4])
    path = builder.save(tmp_path / "net.onnx", dense(builder, "x", 4, 3))
    rows = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    values = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)
    gradients = []
    for dense_entries, kind in ((1000_000, Dense), (0, Operator)):
        affine = load_network(path, dense_entries=dense_entries).network.output
        assert isinstance(affine, kind)
        loss = (affine.adjoint(rows)[0] ** 2).sum() + (affine.linear([values]) ** 3).sum()
        gradients.append(torch.autograd.grad(loss, [rows, values]))
    torch.testing.assert_close(*gradients)


@pytest.mark.slow
def test_loading_does_not_import_what_is_slow(tmp_path: Path) -> None:
    builder = Builder([1, 4])
    path = builder.save(tmp_path / "net.onnx", concatenated(builder))
    code = (
        "import sys; from fgp_vnn.network import load_network; load_network(sys.argv[1]);"
        "slow = {'torchvision', 'sympy', 'torch._dynamo', 'onnx.reference'} & {*sys.modules};"
        "sys.exit(f'imported: {slow}' if slow else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_product_of_three_constants_is_not_taken_for_exact(tmp_path: Path) -> None:
    """Three float32 factors do not fit float64: what their product is made of has to be kept."""
    builder = Builder((1, 3))
    third = float(np.float32(1 / 3))
    product = builder.op("Gemm", "x", builder.random(3, 3), alpha=third)
    path = builder.save(tmp_path / "n.onnx", builder.op("Mul", product, builder.const(third)))
    output = load_network(path).network.output
    assert isinstance(output, Dense)
    assert output.terms is not None


def test_a_network_counts_one_of_a_kind_in_the_singular(tmp_path: Path) -> None:
    b = Builder([1, 1])
    path = b.save(tmp_path / "one.onnx", dense(b, layer(b, "x", 1, 1), 1, 1))
    assert repr(load_network(path).network) == "Network(1 input, 1 neuron in layers of 1, 1 output)"
