"""Smooth operators and products of variables: what they are read as, against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from onnx import save
from torch import Tensor, nn

from fgp_vnn.base.errors import InputError
from fgp_vnn.network import load_network
from fgp_vnn.network.onnx.module import load_module
from tests.helpers.agreement import assert_agrees
from tests.helpers.network_models import Builder


class _Between(nn.Module):
    """A function between two linear layers."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.last, self.function = nn.Linear(4, 6), nn.Linear(6, 3), function

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(self.function(self.first(x)))
        return result


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.last = nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part(x.reshape(1, 3, 4)) for part in self.parts)
        seen = torch.softmax(q @ k.transpose(1, 2) / 2, -1) @ v
        result: Tensor = self.last(seen.reshape(1, 12))
        return result


def _square(z: Tensor) -> Tensor:
    return z**2


def _root(z: Tensor) -> Tensor:
    return torch.sqrt(z * z + 1)


def _quotient(z: Tensor) -> Tensor:
    return z.flip(-1) / (1 + z * z)


def _product(z: Tensor) -> Tensor:
    return z * z.flip(-1)


def _shrunk(z: Tensor) -> Tensor:
    """What nn.Softshrink computes, as a file that torch writes without it."""
    inner = torch.where(z < -0.25, z + 0.25, torch.zeros_like(z))
    return torch.where(z > 0.25, z - 0.25, inner)


def _shrunk_by_size(z: Tensor) -> Tensor:
    """The same as the newer exporter of torch writes it."""
    return torch.where(z.abs() > 0.25, z - 0.25 * z.sign(), 0.0 * z)


def _similarity(z: Tensor) -> Tensor:
    return z * torch.cosine_similarity(z[:, :3], z[:, 3:], dim=-1)[:, None]


CASES: dict[str, tuple[Callable[[Tensor], Tensor], list[str]]] = {
    "sigmoid": (torch.sigmoid, ["Sigmoid"]),
    "tanh": (torch.tanh, ["Tanh"]),
    "silu": (nn.SiLU(), ["SiLU"]),
    "gelu": (nn.GELU(), ["Gelu"]),
    "gelu by tanh": (nn.GELU("tanh"), ["Pow", "Tanh", "Mul"]),
    "softplus": (nn.Softplus(), ["Softplus"]),
    "elu": (nn.ELU(), ["Elu"]),
    "selu": (nn.SELU(), ["Selu"]),
    "celu": (nn.CELU(), ["Celu"]),
    "mish": (nn.Mish(), ["Softplus", "Tanh", "Mul"]),
    "hardswish": (nn.Hardswish(), ["HardSwish"]),
    "softmax": (nn.Softmax(-1), ["Exp", "Reciprocal"]),
    "log softmax": (nn.LogSoftmax(-1), ["Exp", "Log"]),
    "layer norm": (nn.LayerNorm(6), ["Square", "Pow", "Mul"]),
    "sin": (torch.sin, ["Sin"]),
    "cos": (torch.cos, ["Cos"]),
    "exp": (torch.exp, ["Exp"]),
    "erf": (torch.erf, ["Erf"]),
    "square": (_square, ["Square"]),
    "root": (_root, ["Square", "Sqrt"]),
    "quotient": (_quotient, ["Square", "Reciprocal", "Mul"]),
    "product": (_product, ["Mul"]),
    "sign": (torch.sign, ["Sign"]),
    "floor": (torch.floor, ["Floor"]),
    "round": (torch.round, ["Round"]),
    "sinh": (torch.sinh, ["Sinh"]),
    "acosh": (lambda z: torch.acosh(z * z + 1.5), ["Square", "Acosh"]),
    "a number to a power": (lambda z: 2.5**z, ["Exponential"]),
    "a power of two variables": (
        lambda z: (z * z + 1) ** z.flip(-1),
        ["Square", "Log", "Mul", "Exp"],
    ),
    "log sum exp": (lambda z: z - torch.logsumexp(z, -1, keepdim=True), ["Exp", "Log"]),
    "product along an axis": (lambda z: z * z.prod(-1, keepdim=True), ["Mul", "Mul", "Mul", "Mul"]),
    "running sum": (lambda z: torch.cumsum(z, -1), []),
    "a choice between lines": (lambda z: torch.where(z > 0.1, 2 * z - 0.2, -z + 0.1), ["Relu"]),
    "a choice that jumps": (lambda z: torch.where(z <= 0.5, z, -z), ["Relu", "Step"]),
    "choices inside of choices": (_shrunk, ["Relu", "Relu"]),
    "a choice by size": (_shrunk_by_size, ["Relu", "Relu"]),
    "a comparison": (lambda z: (z > 0.2).float(), ["Step"]),
    "conditions": (
        lambda z: torch.where((z > 0) & ~(z > 1), torch.sin(z), torch.cos(z)),
        ["Step", "Step", "Relu", "Sin", "Cos", "Mul"],
    ),
    "cosine similarity": (
        _similarity,
        ["Mul", "Square", "Square", "Mul", "Sqrt", "Relu", "Reciprocal", "Mul", "Mul"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_smooth_functions_are_read_as_few_activations(name: str) -> None:
    function, wanted = CASES[name]
    torch.manual_seed(0)
    loaded = load_module(_Between(function), torch.zeros(1, 4))
    assert [activation.name for activation in loaded.network.activations] == wanted
    assert_agrees(loaded, within=1e-4)


def test_attention_becomes_products_and_a_softmax() -> None:
    torch.manual_seed(0)
    loaded = load_module(_Attention(), torch.zeros(1, 12))
    names = [activation.name for activation in loaded.network.activations]
    assert names == ["Mul", "Exp", "Reciprocal", "Mul"]
    assert loaded.network.widths[0] == 24  # each factor once, however many products it is in
    assert_agrees(loaded, within=1e-4)


def test_instance_norm_and_batches_of_softmax(tmp_path: Path) -> None:
    b = Builder([1, 2, 3])
    normal = b.op("InstanceNormalization", "x", b.positive(2), b.random(2))
    soft = b.op("Softmax", normal, axis=1)
    path = tmp_path / "network.onnx"
    save(b.model(b.op("Reshape", b.op("Mul", soft, soft), b.ints(1, 6))), path)
    assert_agrees(load_network(path), within=1e-4)


def test_a_constant_that_is_an_offset_here_and_a_factor_there(tmp_path: Path) -> None:
    b = Builder([1, 3])
    two = b.const(2.0)
    path = tmp_path / "network.onnx"
    save(b.model(b.op("Add", b.op("Mul", b.op("Tanh", "x"), two), two)), path)
    assert_agrees(load_network(path), within=1e-4)


def test_what_is_not_known_is_refused_by_name(tmp_path: Path) -> None:
    b = Builder([1, 3])
    path = tmp_path / "network.onnx"
    save(b.model(b.op("Pow", "x", b.const([1.0, 2.0, 3.0]))), path)
    with pytest.raises(InputError, match="more than one exponent"):
        load_network(path)
    b = Builder([1, 3])
    save(b.model(b.op("Det", b.op("Reshape", "x", b.ints(1, 1, 3)))), path)
    with pytest.raises(InputError, match="Det"):
        load_network(path)


@pytest.mark.parametrize("kind", ["quotient", "gate of a factor", "gate of a sum"])
def test_a_uniform_constant_that_enlarges_what_it_meets_is_no_number(
    kind: str, tmp_path: Path
) -> None:
    b = Builder([1, 1])
    one, wide = b.const(1.0), b.const([[1.0, 1.0, 1.0]])
    if kind == "quotient":
        end = b.op("Div", wide, b.op("Add", b.op("Mul", "x", "x"), one))
    else:
        factor, term = (wide, one) if kind == "gate of a factor" else (one, wide)
        gate = b.op("Add", b.op("Erf", b.op("Div", "x", factor)), term)
        end = b.op("Mul", "x", gate)
    path = tmp_path / "network.onnx"
    save(b.model(end), path)
    loaded = load_network(path)
    assert loaded.network.outputs == 3
    assert_agrees(loaded, within=1e-4)
