"""A network that is only run: its values, its gradients, and what is refused all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto

from fgp_vnn.base.errors import InputError
from fgp_vnn.network.onnx.opaque import Opaque, load_opaque
from tests.helpers.network_models import Builder

POINTS = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 4)))
STEPS = ("Sign", "Floor", "Ceil", "Round")


def behind_map(folder: Path, kind: str) -> tuple[Opaque, NDArray[np.float32]]:
    builder = Builder([1, 4])
    weights = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    inside = builder.op("MatMul", "x", builder.const(weights))
    path = builder.save(folder / "a.onnx", builder.op(kind, inside))
    return load_opaque(path), weights


@pytest.mark.parametrize("kind", [*STEPS, "Sigmoid", "Erf"])
def test_values_are_those_of_onnxruntime(tmp_path: Path, kind: str) -> None:
    program, _ = behind_map(tmp_path, kind)
    assert program.differentiable
    seen = program.runtime.run_many(POINTS.float().numpy())
    assert np.allclose(program.values(POINTS).numpy(), seen, atol=1e-6)


@pytest.mark.parametrize("kind", STEPS)
def test_a_flat_function_has_a_slope_that_points_up(tmp_path: Path, kind: str) -> None:
    program, weights = behind_map(tmp_path, kind)
    for k in range(weights.shape[1]):
        only = torch.eye(weights.shape[1], dtype=torch.float64)[k]
        slopes = program.slopes(POINTS, lambda y, only=only: only.expand_as(y))  # type: ignore[misc]
        column = torch.from_numpy(weights[:, k]).double()
        along = slopes @ column / (slopes.norm(dim=1) * column.norm())
        assert torch.allclose(along, torch.ones(len(POINTS)).double(), atol=1e-5)


def test_a_program_that_conditions_alone_decide_has_no_slopes(tmp_path: Path) -> None:
    builder = Builder([1, 4])
    above = builder.op("Greater", "x", builder.const(0.0))
    chosen = builder.op("Where", above, builder.const(1.0), builder.const(-1.0))
    program = load_opaque(builder.save(tmp_path / "a.onnx", chosen))
    assert not program.slopes(POINTS, torch.ones_like).any()


def test_slopes_of_a_smooth_function_are_its_gradients(tmp_path: Path) -> None:
    program, weights = behind_map(tmp_path, "Sigmoid")
    y = program.values(POINTS)
    slopes = program.slopes(POINTS, torch.ones_like)
    expected = (y * (1 - y)) @ torch.from_numpy(weights).double().T
    assert torch.allclose(slopes, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
def test_a_softmax_at_the_end_is_left_out_and_can_be_put_back(tmp_path: Path, kind: str) -> None:
    program, weights = behind_map(tmp_path, kind)
    before = POINTS @ torch.from_numpy(weights).double()
    assert torch.allclose(program.values(POINTS), before, atol=1e-5)
    seen = program.runtime.run_many(POINTS.float().numpy())
    assert np.allclose(program.with_softmax().values(POINTS).numpy(), seen, atol=1e-5)


def test_a_network_without_a_torch_module_is_run_by_onnxruntime(tmp_path: Path) -> None:
    program, weights = behind_map(tmp_path, "Hardmax")
    assert not program.differentiable
    highest = (POINTS @ torch.from_numpy(weights).double()).argmax(1)
    assert torch.equal(program.values(POINTS).argmax(1), highest)


def test_a_literal_batch_of_one_inside_does_not_stop_a_batch(tmp_path: Path) -> None:
    builder = Builder(["n", 4])
    weights = builder.random(4, 2)
    flat = builder.op("Reshape", builder.op("Sign", "x"), builder.ints(1, 4))
    path = builder.save(tmp_path / "a.onnx", builder.op("MatMul", flat, weights))
    program = load_opaque(path)
    one_by_one = [program.runtime.run(x) for x in POINTS.float().numpy()]
    assert np.allclose(program.values(POINTS).numpy(), np.stack(one_by_one), atol=1e-6)
    assert program.slopes(POINTS, torch.ones_like).shape == POINTS.shape


@pytest.mark.parametrize("limit", [1e9, np.inf])  # with inf, the file is converted as it is written
def test_memory_is_counted_for_the_tensors_of_an_input_and_not_for_weights(
    tmp_path: Path, limit: float
) -> None:
    builder = Builder([1, 100])
    inside = builder.op("Min", "x", builder.const(limit))
    for _ in range(9):
        inside = builder.op("Sign", inside)
    program = load_opaque(builder.save(tmp_path / "many.onnx", inside))
    assert program.differentiable and 1100 <= program.entries < 2000
    builder = Builder([1, 100])
    inside = builder.op("Min", "x", builder.const(limit))
    weights = builder.random(100, 100)
    program = load_opaque(
        builder.save(tmp_path / "wide.onnx", builder.op("MatMul", inside, weights))
    )
    assert program.differentiable and 300 <= program.entries < 1000


def random_values(builder: Builder) -> str:
    noise = builder.op("RandomUniformLike", "x", dtype=TensorProto.FLOAT)
    return str(builder.op("Add", "x", noise))


def dropped_values(builder: Builder) -> str:
    ratio, mode = builder.const(0.5), builder.const(True, np.bool_)
    return str(builder.op("Dropout", "x", ratio, mode))


@pytest.mark.parametrize("make", [random_values, dropped_values])
def test_random_values_are_refused(tmp_path: Path, make: object) -> None:
    builder = Builder([1, 4])
    assert callable(make)
    path = builder.save(tmp_path / "a.onnx", make(builder))
    with pytest.raises(InputError, match="random"):
        load_opaque(path)


def test_a_dropout_that_drops_nothing_is_run(tmp_path: Path) -> None:
    builder = Builder([1, 4])
    kept = builder.op("Dropout", "x", builder.const(0.5), builder.const(False, np.bool_))
    program = load_opaque(builder.save(tmp_path / "a.onnx", kept))
    assert torch.allclose(program.values(POINTS), POINTS, atol=1e-6)
