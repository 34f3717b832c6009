"""Proofs about every float32 evaluation of a network, against many of these evaluations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import fgp_vnn
from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.cli.main import main
from fgp_vnn.domain.sets import Box
from fgp_vnn.network import load_network
from fgp_vnn.network.onnx.deployed import read_deployment
from fgp_vnn.transform.float32 import deployed, received
from tests.helpers.command_line import box
from tests.helpers.network_models import Builder

Single = NDArray[np.float32]
Sum = Callable[[Single, Single, Single], Single]  # of W [m, n], x [n] and b [m]


def forward(w: Single, x: Single, b: Single) -> Single:
    terms = np.concatenate([w * x, b[:, None]], 1)
    return np.add.accumulate(terms, axis=1, dtype=np.float32)[:, -1]


def from_bias(w: Single, x: Single, b: Single) -> Single:
    terms = np.concatenate([b[:, None], w * x], 1)
    return np.add.accumulate(terms, axis=1, dtype=np.float32)[:, -1]


def largest_first(w: Single, x: Single, b: Single) -> Single:
    terms = np.concatenate([w * x, b[:, None]], 1)
    order = np.argsort(-abs(terms), axis=1)
    ordered = np.take_along_axis(terms, order, 1)
    return np.add.accumulate(ordered, axis=1, dtype=np.float32)[:, -1]


def signs_apart(w: Single, x: Single, b: Single) -> Single:
    """All positive terms, then all negative ones: the worst for what cancels."""
    terms = np.sort(np.concatenate([w * x, b[:, None]], 1), axis=1)[:, ::-1]
    return np.add.accumulate(terms, axis=1, dtype=np.float32)[:, -1]


def in_blocks(w: Single, x: Single, b: Single) -> Single:
    terms = w * x
    parts = [terms[:, i : i + 4].sum(1, dtype=np.float32) for i in range(0, len(x), 4)]
    total: Single = np.add.accumulate(np.stack([*parts, b]), axis=0, dtype=np.float32)[-1]
    return total


def fused(w: Single, x: Single, b: Single) -> Single:
    total = b.astype(np.float64)
    for i in range(len(x)):
        total = (total + w[:, i].astype(np.float64) * float(x[i])).astype(np.float32)
        total = total.astype(np.float64)
    return total.astype(np.float32)


SUMS: tuple[Sum, ...] = (forward, from_bias, largest_first, signs_apart, in_blocks, fused)


def chain(seed: int, path: Path, widths: tuple[int, ...], scale: float) -> list[tuple[Single, ...]]:
    """A dense network in a file, and its weights; terms of all sizes, so that much cancels."""
    source = np.random.default_rng(seed)
    builder, value = Builder([1, widths[0]]), "x"
    layers: list[tuple[Single, ...]] = []
    for k in range(len(widths) - 1):
        sizes = scale ** source.uniform(-1, 1, (widths[k + 1], widths[k]))
        w = (source.normal(size=sizes.shape) * sizes).astype(np.float32)
        b = source.normal(size=widths[k + 1]).astype(np.float32)
        value = builder.op("Gemm", value, builder.const(w), builder.const(b), transB=1)
        value = builder.op("Relu", value) if k < len(widths) - 2 else value
        layers.append((w, b))
    builder.save(path, value)
    return layers


def bounds_at(path: Path, lower: Single, upper: Single) -> tuple[Single, Single]:
    """Proved bounds of the outputs of all float32 evaluations in a box."""
    loaded = load_network(path)
    whole = received(Box(*(torch.from_numpy(side.astype(np.float64)) for side in (lower, upper))))
    network = deployed(loaded.network, whole, read_deployment(path), budget=UNLIMITED)
    bounds = root_bounds(network, whole, budget=UNLIMITED)
    eye = torch.eye(network.outputs, dtype=torch.float64)
    rows = torch.cat([eye, -eye]).unsqueeze(0)
    rounding = Rounding(network, whole, bounds)
    depth = len(network.layers)
    least = backward(network, whole, depth, rows, bounds.lines(), rounding=rounding).least[0]
    low, high = least.chunk(2)
    return low.numpy(), -high.numpy()


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("seed", range(3))
def test_every_order_of_evaluation_is_within_the_bounds(
    seed: int, scale: float, tmp_path: Path
) -> None:
    widths = [(5, 8, 3), (40, 30, 20, 2), (9, 7, 7, 7, 7, 2)][seed % 3]
    layers = chain(seed, tmp_path / "n.onnx", widths, scale)
    runtime = load_network(tmp_path / "n.onnx").runtime
    source = np.random.default_rng(seed)
    radius = (0.0, 1e-3)[seed % 2]
    center = source.uniform(-1, 1, widths[0])
    lower, upper = ((center + side).astype(np.float32) for side in (-radius, radius))
    low, high = bounds_at(tmp_path / "n.onnx", lower, upper)
    for _ in range(5):
        x = source.uniform(lower, upper).astype(np.float32).clip(lower, upper)
        results = [runtime.run(x)]
        for how in SUMS:
            value = x
            for k, (w, b) in enumerate(layers):
                value = how(w, value, b)
                value = np.maximum(value, 0) if k < len(layers) - 1 else value
            results.append(value)
        for y in results:
            assert (low <= y).all() and (y <= high).all()


def test_a_long_sum_drifts_by_more_than_one_rounding(tmp_path: Path) -> None:
    count = 4096
    w, b = np.full((1, count), 0.1, np.float32), np.zeros(1, np.float32)
    builder = Builder([1, count])
    product = builder.op("Gemm", "x", builder.const(w), builder.const(b), transB=1)
    path = builder.save(tmp_path / "n.onnx", product)
    x = np.ones(count, np.float32)
    low, high = bounds_at(path, x, x)
    real = w.astype(np.float64).sum()
    drifts = [abs(float(how(w, x, b)[0]) - real) for how in SUMS]
    assert max(drifts) > 100 * 2.0**-24 * real
    assert all((low <= how(w, x, b)).all() and (how(w, x, b) <= high).all() for how in SUMS)


def conv_body(b: Builder) -> str:
    first = b.op("Conv", "x", b.random(3, 2, 3, 3), b.random(3), pads=[1, 1, 1, 1])
    norm = [b.positive(3), b.random(3), b.random(3), b.positive(3)]
    first = b.op("Relu", b.op("BatchNormalization", first, *norm))
    second = b.op("Conv", first, b.random(3, 3, 3, 3), pads=[1, 1, 1, 1])
    joined = b.op("Relu", b.op("Add", b.op("Mul", second, b.const(0.7)), first))
    return str(b.op("Gemm", b.op("Flatten", joined), b.random(75, 2), b.random(2)))


def test_convolutions_and_normalizations_are_covered(tmp_path: Path) -> None:
    builder = Builder([1, 2, 5, 5])
    path = builder.save(tmp_path / "conv.onnx", conv_body(builder))
    runtime = load_network(path).runtime
    source = np.random.default_rng(1)
    for _ in range(4):
        x = source.uniform(-1, 1, 50).astype(np.float32)
        low, high = bounds_at(path, x, x)
        y = runtime.run(x)
        assert (low <= y).all() and (y <= high).all()
        assert (high - low < 1e-2).all()


def lossy(path: Path, *, relu: bool) -> Path:
    """x + 2^10 - 2^10 + 0.05: in float32 the first sum forgets a small x, and 0.05 is left."""
    builder = Builder([1, 1])
    value = builder.op("Add", "x", builder.const([[2.0**10]]))
    value = builder.op("Relu", value) if relu else value
    value = builder.op("Add", value, builder.const([[-(2.0**10)]]))
    return builder.save(path, builder.op("Add", value, builder.const([[0.05]])))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("engine", ["auto", "split", "bounds"])
def test_what_only_real_arithmetic_keeps_is_not_called_safe(
    tmp_path: Path, relu: bool, engine: str
) -> None:
    model, prop = lossy(tmp_path / "n.onnx", relu=relu), tmp_path / "p.vnnlib"
    prop.write_text(box([(2e-5, 5e-5)], 1, "(<= Y_0 0.050005)"))
    real = fgp_vnn.verify(model, prop, attack=False, engine=engine)
    assert real.status == "unsat"
    verdict = fgp_vnn.verify(
        model, prop, timeout=0.5, attack=False, engine=engine, float32_semantics=True
    )
    assert load_network(model).runtime.run(np.full(1, 4e-5, np.float32)) == np.float32(
        0.05
    )  # it is broken
    assert verdict.status in ("sat", "unknown", "timeout")


def test_what_holds_by_more_than_rounding_is_proved(tmp_path: Path) -> None:
    model, prop = lossy(tmp_path / "n.onnx", relu=True), tmp_path / "p.vnnlib"
    prop.write_text(box([(0.1, 0.9)], 1, "(<= Y_0 -100.0)"))
    assert fgp_vnn.verify(model, prop, float32_semantics=True).status == "unsat"


def test_few_unstable_neurons_are_split_and_not_walked(tmp_path: Path) -> None:
    builder = Builder([1, 2])
    hidden = builder.op("Relu", builder.op("Gemm", "x", builder.const([[1, 1], [1, -1]])))
    both = builder.op("Gemm", hidden, builder.const([[1], [1]]))
    model, prop = builder.save(tmp_path / "n.onnx", both), tmp_path / "p.vnnlib"
    prop.write_text(box([(-1, 1), (-1, 1)], 1, "(>= Y_0 2.01)"))
    for on, engine in ((False, "walk"), (True, "split")):
        verdict = fgp_vnn.verify(model, prop, attack=False, float32_semantics=on, timeout=60)
        assert verdict.status == "unsat"
        assert verdict.decided_by in (engine, "bounds")


def test_a_program_gets_the_nearest_float32_of_what_is_in_the_box() -> None:
    whole = Box(torch.tensor([0.1, 0.1]).double() * 1.0, torch.tensor([0.1, 0.3]).double())
    exact = Box(whole.lower + 1e-10, torch.stack([whole.lower[0] + 1e-10, whole.upper[1] - 1e-10]))
    got = received(exact)
    assert got.lower[0] == got.upper[0] == whole.lower[0]
    assert got.lower[1] == whole.lower[1] and got.upper[1] == whole.upper[1]


REFUSED: dict[str, Callable[[Builder], str]] = {
    "MaxPool": lambda b: str(b.op("MaxPool", "x", kernel_shape=[2, 2])),
    "LeakyRelu": lambda b: str(b.op("LeakyRelu", "x")),
    "softmax": lambda b: str(b.op("Softmax", b.op("Flatten", "x"), axis=1)),
    "with factors": lambda b: str(b.op("Gemm", b.op("Flatten", "x"), b.random(4, 2), alpha=-2.0)),
    "of constants": lambda b: str(b.op("Add", "x", b.op("Add", b.random(1), b.random(1)))),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_the_theorem_does_not_cover_is_named(tmp_path: Path, name: str) -> None:
    builder = Builder([1, 1, 2, 2])
    path = builder.save(tmp_path / "n.onnx", REFUSED[name](builder))
    with pytest.raises(UnsupportedError, match=name):
        read_deployment(path)


def test_an_uncovered_network_is_unknown_or_broken_but_never_safe(tmp_path: Path) -> None:
    builder = Builder([1, 1, 2, 2])
    path = builder.save(tmp_path / "n.onnx", REFUSED["LeakyRelu"](builder))
    prop = tmp_path / "p.vnnlib"
    for limit, status in ((9.0, "unknown"), (0.5, "sat")):
        prop.write_text(box([(0, 1)] * 4, 4, f"(>= Y_0 {limit})"))
        verdict = fgp_vnn.verify(path, prop, float32_semantics=True)
        assert verdict.status == status
        assert ("LeakyRelu" in verdict.reason) is (status == "unknown")


def test_overflow_is_not_covered(tmp_path: Path) -> None:
    builder = Builder([1, 1])
    huge = builder.op("Mul", "x", builder.const([[1e30]]))
    path, prop = builder.save(tmp_path / "n.onnx", huge), tmp_path / "p.vnnlib"
    prop.write_text(box([(1e9, 2e9)], 1, "(<= Y_0 0.0)"))
    verdict = fgp_vnn.verify(path, prop, float32_semantics=True)
    assert (verdict.status, "overflow" in verdict.reason) == ("unknown", True)


def two_classes(folder: Path) -> tuple[Path, Path]:
    """A network and a property that holds by far."""
    chain(0, folder / "two.onnx", (3, 5, 2), 1.0)
    (folder / "two.vnnlib").write_text(box([(-1, 1)] * 3, 2, "(>= Y_0 1000.0)"))
    return folder / "two.onnx", folder / "two.vnnlib"


def test_the_walk_and_balls_are_refused(tmp_path: Path) -> None:
    model, prop = two_classes(tmp_path)
    with pytest.raises(InputError, match="another engine"):
        fgp_vnn.verify(model, prop, engine="walk", float32_semantics=True)
    with pytest.raises(InputError, match="float32_semantics"):
        Certifier.of(model, float32_semantics=True)


@pytest.mark.slow
def test_the_option_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *map(str, two_classes(tmp_path)), "--float32-semantics"]) == 0
    assert capsys.readouterr().out.split()[0] == "unsat"
