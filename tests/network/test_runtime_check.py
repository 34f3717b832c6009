"""What loading compares with onnxruntime: a network that was misread does not get through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network import load_network
from fgp_vnn.network.model import Dense
from fgp_vnn.network.onnx.roundings import Loss
from fgp_vnn.network.onnx.runtime_check import Reading, check_against_runtime, exercise, sample
from fgp_vnn.strategy import Loading
from tests.helpers.network_models import Builder

LOAD = import_module("fgp_vnn.network.onnx.load")

INPUTS = 6


def chain(b: Builder, x: str) -> str:
    hidden = b.op("Relu", b.op("Gemm", x, b.random(INPUTS, 5), b.random(5)))
    return str(b.op("Gemm", hidden, b.random(5, 3), b.random(3)))


def beside_a_large_branch(b: Builder) -> str:
    large = b.op("Relu", b.op("Mul", "x", b.const(1e6)))
    nothing = b.op("MatMul", large, b.const(np.zeros((INPUTS, 3))))
    return str(b.op("Add", chain(b, "x"), nothing))


def scaled_down(b: Builder) -> str:
    return str(b.op("Mul", chain(b, "x"), b.const(1e-4)))


def scaled_down_far(b: Builder) -> str:
    return str(b.op("Mul", b.op("Relu", chain(b, "x")), b.const(1e-30)))


NETWORKS: dict[str, Callable[[Builder], str]] = {
    "plain": lambda b: chain(b, "x"),
    "beside a large branch": beside_a_large_branch,
    "scaled down": scaled_down,
    "scaled down far": scaled_down_far,
}


def spoilt(affine: Any, entry: int, by: float) -> Any:
    weight = affine.weights[0].clone()
    weight.view(-1)[entry] *= 1 + by
    return replace(affine, weights=(weight, *affine.weights[1:]))


def saved(tmp_path: Path, network: Callable[[Builder], str]) -> Path:
    builder = Builder([1, INPUTS])
    return builder.save(tmp_path / "net.onnx", network(builder))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("entries", [1, Loading().entries])
def test_a_weight_that_is_off_by_a_thousandth_is_noticed(
    name: str, number: int, entries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading: Any = import_module("fgp_vnn.network.onnx.load")
    monkeypatch.setattr(loading, "Loading", lambda: Loading(entries=entries))
    path = saved(tmp_path, NETWORKS[name])
    load_network(path)
    right = loading.normal_form

    def wrong(*args: Any, **options: Any) -> Any:
        network, ends = right(*args, **options)
        maps = list(network.maps)
        maps[number] = spoilt(maps[number], 0, 1e-3)
        return replace(network, layers=tuple(maps[:-1]), output=maps[-1]), ends

    monkeypatch.setattr(loading, "normal_form", wrong)
    with pytest.raises(UnsupportedError, match="differs from what onnxruntime computes"):
        load_network(path)


@pytest.mark.parametrize("how", [Loading(), Loading(entries=1)], ids=["at once", "one by one"])
def test_what_lies_far_from_zero_is_compared_at_the_points_given(
    how: Loading, tmp_path: Path
) -> None:
    """A bend at 5e5, which the points that loading takes by itself do not reach."""
    path = saved(tmp_path, lambda b: str(b.op("Clip", "x", "", b.const(5e5))))
    loaded = load_network(path)
    far = np.full((1, INPUTS), 6e5, dtype=np.float32)
    identity = Dense((0,), (torch.eye(INPUTS).double(),), torch.zeros(INPUTS).double())
    misread = replace(loaded.network, layers=(), output=identity, activations=())
    reading = Reading(misread, ("",), (Loss(),), None)
    check_against_runtime(reading, loaded.runtime, {}, sample(INPUTS), how)
    for x in (far, [*sample(INPUTS), *far], [*far, *sample(INPUTS)]):
        with pytest.raises(UnsupportedError, match="differs"):
            check_against_runtime(reading, loaded.runtime, {}, np.asarray(x), how)
    load_network(path, points=far)


def test_float32_may_overflow_inside(tmp_path: Path) -> None:
    def network(b: Builder) -> str:
        once = b.op("Mul", "x", b.const(1e37))
        return str(b.op("Mul", b.op("Relu", once), b.const(1e-37)))

    load_network(saved(tmp_path, network), points=np.full((1, INPUTS), 100, dtype=np.float32))


def test_rounding_is_no_difference(tmp_path: Path) -> None:
    """Sums of 600 terms, several of them one behind the other."""

    def network(b: Builder) -> str:
        end = b.op("MatMul", "x", b.random(INPUTS, 300))
        for _ in range(3):
            both = b.op("Concat", end, b.op("Neg", end), axis=1)
            end = b.op("Relu", b.op("MatMul", both, b.random(600, 300)))
        return str(b.op("MatMul", end, b.random(300, 1)))

    load_network(saved(tmp_path, network))


@pytest.mark.parametrize("bias", [-3000.0, -2.0, 0.0, 2.0, 3000.0, 2e5])
def test_points_are_found_on_both_sides_of_every_layer(bias: float, tmp_path: Path) -> None:
    """Also where the first points have the neurons of a layer all on one side."""
    seen: list[Any] = []
    b = Builder([1, INPUTS])
    at = b.op("Relu", b.op("Gemm", "x", b.random(INPUTS, 8), b.const(np.full(8, bias))))
    at = b.op("Relu", b.op("Gemm", at, b.random(8, 8), b.const(np.full(8, -bias))))
    model = b.model(b.op("Gemm", at, b.random(8, 2), b.random(2)))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            LOAD, "check_against_runtime", lambda *asked: seen.append((asked[2], asked[3]))
        )
        load_network(path)
    ((inside, x),) = seen
    assert len(inside) == 3 and len(x) <= 3 + 2 * Loading().turns
    for values in list(inside.values())[:-1]:
        assert len(values) == len(x)
        assert ((values > 0).any(0) & (values < 0).any(0)).any()


def test_points_are_added_only_where_a_layer_has_one_side() -> None:
    def run(x: Any) -> list[Any]:
        calls.append(len(x))
        return [x + shift, x - 1e9]

    x, calls, shift = sample(INPUTS), list[int](), 0.0
    found, values = exercise(run, [0], x, Loading())
    assert calls == [3] and np.array_equal(found, x) and len(values[0]) == 3
    calls, shift = [], 1e30
    found, values = exercise(run, [0], x, Loading(turns=2))
    assert calls == [3, 2, 2] and len(found) == len(values[0]) == len(values[1]) == 7
    assert np.array_equal(found[:3], x) and np.isfinite(found).all()
