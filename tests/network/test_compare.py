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
from fgp_vnn.network.onnx.compare import Reading, compare, sample
from fgp_vnn.network.onnx.roundings import Loss
from tests.helpers.network_models import Builder

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
def test_a_weight_that_is_off_by_a_thousandth_is_noticed(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading: Any = import_module("fgp_vnn.network.onnx.load")
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


def test_what_lies_far_from_zero_is_compared_at_the_points_given(tmp_path: Path) -> None:
    """A bend at 5e5, which the points that loading takes by itself do not reach."""
    path = saved(tmp_path, lambda b: str(b.op("Clip", "x", "", b.const(5e5))))
    loaded = load_network(path)
    far = np.full((1, INPUTS), 6e5, dtype=np.float32)
    identity = Dense((0,), (torch.eye(INPUTS).double(),), torch.zeros(INPUTS).double())
    misread = replace(loaded.network, layers=(), output=identity)
    reading = Reading(misread, ("",), (Loss(),), None)
    compare(reading, loaded.runtime, {}, sample(INPUTS))
    with pytest.raises(UnsupportedError, match="differs"):
        compare(reading, loaded.runtime, {}, far)
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
