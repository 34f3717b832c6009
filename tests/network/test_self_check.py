"""Matrices and programs that are not what the graph computes do not get through loading."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network import load_network
from fgp_vnn.network.maps.normalisation import Normalisation
from tests.helpers.network_models import Builder

NORMAL_FORM = import_module("fgp_vnn.network.onnx.normal_form")


def by_rules(b: Builder) -> str:
    parts = [b.random(2), b.random(2), b.random(2), b.positive(2)]
    return str(b.op("BatchNormalization", "x", *parts))


def by_torch(b: Builder) -> str:
    return str(b.op("Transpose", by_rules(b)))


@pytest.mark.parametrize("network", [by_rules, by_torch])
@pytest.mark.parametrize("offset", [0.0, 1e16])
def test_a_wrong_adjoint_is_refused(
    network: Callable[[Builder], str],
    offset: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def backward(ctx: Any, *rows: torch.Tensor) -> torch.Tensor:
            return 1.001 * rows[0]

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: torch.Tensor) -> tuple[torch.Tensor, Any]:
            return x.clone(), in_dims[0]

    builder = Builder((1, 2, 3, 4), 15)
    path = builder.save(
        tmp_path / "m.onnx", builder.op("Add", network(builder), builder.const(offset))
    )
    load_network(path, dense_entries=0)
    pull, forward = Normalisation.pull, Normalisation.forward
    monkeypatch.setattr(Normalisation, "pull", lambda self, rows: 1.001 * pull(self, rows))
    doubled: Callable[[Any], Any] = Doubled.apply
    monkeypatch.setattr(Normalisation, "forward", lambda self, x: doubled(forward(self, x)))
    with pytest.raises(UnsupportedError, match="reads the input and is too large"):
        load_network(path, dense_entries=0)


def chain(b: Builder, offset: float) -> str:
    product = b.op("MatMul", b.op("MatMul", "x", b.random(4, 3)), b.const(np.eye(3)))
    return str(b.op("Add", product, b.const(offset)))


def filtered(b: Builder, offset: float) -> str:
    return str(b.op("Conv", "x", b.random(2, 2, 3, 3), b.const([offset, offset])))


@pytest.mark.parametrize(
    ("network", "shape", "made"),
    [(chain, (1, 4), "composed"), (filtered, (1, 2, 4, 4), "filter_matrices")],
)
@pytest.mark.parametrize("offset", [0.0, 1e16])
def test_a_wrong_matrix_is_refused(
    network: Callable[[Builder, float], str],
    shape: tuple[int, ...],
    made: str,
    offset: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    b = Builder(shape)
    path = b.save(tmp_path / "m.onnx", network(b, offset))
    load_network(path)
    make = getattr(NORMAL_FORM, made)

    def spoilt(*given: Any) -> Any:
        found = make(*given)
        for matrix in found.values() if isinstance(found, dict) else [found]:
            matrix[0, 1] *= 1 + 2.0**-30
        return found

    monkeypatch.setattr(NORMAL_FORM, made, spoilt)
    with pytest.raises(UnsupportedError, match="reads the input, differs"):
        load_network(path)
