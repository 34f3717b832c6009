"""Comparisons, choices and quantised tensors: what is read, against onnxruntime, and its bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fgp_vnn
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.network import LoadedNetwork, load_network
from tests.helpers.agreement import assert_agrees
from tests.helpers.network_models import Builder

COMPARISONS = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal")


def _names(loaded: LoadedNetwork) -> list[str]:
    return [activation.name for activation in loaded.network.activations]


@pytest.mark.parametrize("kind", COMPARISONS)
def test_equality_counts_as_the_comparison_says(kind: str, tmp_path: Path) -> None:
    b = Builder([1, 3])
    chosen = b.op("Where", b.op(kind, "x", b.const(0.5)), b.const(2.0), b.const(-1.0))
    path = b.save(tmp_path / "a.onnx", b.op("Add", chosen, "x"))
    at = np.asarray([[0.5, 0.25, 0.75], [0.75, 0.5, 0.25]], dtype=np.float32)
    loaded = load_network(path)
    assert_agrees(loaded, at)
    assert_agrees(loaded)


@pytest.mark.parametrize("kind", ["And", "Or"])
def test_conditions_are_joined(kind: str, tmp_path: Path) -> None:
    b = Builder([1, 4])
    parts = b.op("Greater", "x", b.const(0.1)), b.op("Less", "x", b.op("Sin", "x"))
    joined = b.op("Cast", b.op(kind, *parts), to=1)
    loaded = load_network(b.save(tmp_path / "a.onnx", b.op("Mul", joined, "x")))
    assert_agrees(loaded)


def test_what_holds_for_no_number_is_never_chosen(tmp_path: Path) -> None:
    b = Builder([1, 4])
    chosen = b.op("Where", b.op("IsNaN", "x"), b.const(0.0), "x")
    loaded = load_network(b.save(tmp_path / "a.onnx", b.op("Relu", chosen)))
    assert _names(loaded) == ["Relu"]
    assert_agrees(loaded)


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_quantised_tensors_are_rounded_and_clipped(
    kind: type[np.int8 | np.uint8], each: bool, tmp_path: Path
) -> None:
    b = Builder([1, 3])
    scale, zero = np.asarray([0.5, 0.25, 0.125]), np.asarray([3, 0, 7])
    numbers = (b.const(scale), b.const(zero, kind)) if each else (b.const(0.25), b.const(3, kind))
    whole = b.op("QuantizeLinear", "x", *numbers, axis=1)
    path = b.save(tmp_path / "a.onnx", b.op("DequantizeLinear", whole, *numbers, axis=1))
    loaded = load_network(path)
    assert _names(loaded)[0] == "Round"
    assert set(_names(loaded)[1:]) == {"Relu"}
    assert_agrees(
        loaded, 30 * np.random.default_rng(3).normal(size=(40, 3))
    )  # beyond the ends of the type


@pytest.mark.parametrize("equation", ["bi,bj->b", "bi,ij->bj", "bi,bi->bi", "bi->ib", "bi,jj->bj"])
def test_sums_of_products_by_letters(equation: str, tmp_path: Path) -> None:
    b = Builder([1, 3])
    constant = "j" in equation.split("->")[0] and "bj" not in equation.split("->")[0]
    other = b.random(3, 3) if constant else b.op("Sin", "x")
    operands = ("x", other) if "," in equation else ("x",)
    found = b.op("Einsum", *operands, equation=equation)
    size = {"bi,bj->b": 1}.get(equation, 3)
    path = b.save(tmp_path / "a.onnx", b.op("Reshape", found, b.ints(1, size)))
    assert_agrees(load_network(path))


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_running_sums(reverse: int, exclusive: int, tmp_path: Path) -> None:
    b = Builder([1, 6])
    cube = b.op("Reshape", "x", b.ints(1, 3, 2))
    found = b.op("CumSum", cube, b.ints(1), reverse=reverse, exclusive=exclusive)
    path = b.save(tmp_path / "a.onnx", b.op("Reshape", found, b.ints(1, 6)))
    assert_agrees(load_network(path))


@pytest.mark.parametrize("threshold", [-0.4, 0.0, 0.7])
def test_bounds_of_choices_hold_at_points_of_the_box(threshold: float, tmp_path: Path) -> None:
    b = Builder([1, 3])
    z = b.op("MatMul", "x", b.random(3, 4))
    moved = b.op("Where", b.op("Less", z, b.const(threshold)), b.op("Neg", z), b.const(1.5))
    chosen = b.op("Where", b.op("Greater", z, b.op("Sin", z)), b.op("Exp", z), moved)
    loaded = load_network(b.save(tmp_path / "a.onnx", b.op("MatMul", chosen, b.random(4, 2))))
    network = loaded.network
    centre, radius = torch.full((3,), 0.1).double(), torch.full((3,), 0.6).double()
    domain = Box(centre - radius, centre + radius)
    bounds = root_bounds(network, domain, budget=Budget.of(None, None))
    random = torch.Generator().manual_seed(0)
    share = 2 * torch.rand(2000, 3, generator=random, dtype=torch.float64) - 1
    seen = network.preactivations(centre + share * radius)
    for z_seen, low, up in zip(seen, bounds.lower, bounds.upper, strict=False):
        assert bool(((z_seen >= low - 1e-12) & (z_seen <= up + 1e-12)).all())


def _alone(b: Builder, kind: str) -> Any:
    """A tensor that is 5 where x is a quarter, and x or less than 2 elsewhere."""
    place, five, x = b.const(0.25), b.const(5.0), "x"
    distance = b.op("Abs", b.op("Sub", x, place))
    below, above = b.op("LessOrEqual", x, place), b.op("GreaterOrEqual", x, place)
    if kind == "no farther":
        return b.op("Where", b.op("LessOrEqual", distance, b.const(0.0)), five, x)
    if kind == "farther":
        return b.op("Where", b.op("Greater", distance, b.const(0.0)), x, five)
    if kind == "between":
        return b.op("Where", below, b.op("Where", above, five, x), x)
    return b.op("Where", below, b.op("Where", above, five, b.const(0.0)), b.const(1.0))


@pytest.mark.parametrize("kind", ["no farther", "farther", "between", "at a jump"])
def test_a_value_at_a_single_place_is_not_lost(kind: str, tmp_path: Path) -> None:
    b = Builder([1, 1])
    path = b.save(tmp_path / "a.onnx", b.op("Add", _alone(b, kind), b.const(0.0)))
    loaded = load_network(path)
    assert loaded.runtime.run(np.full(1, 0.25, dtype=np.float32)) == 5
    asked = tmp_path / "a.vnnlib"
    asked.write_text(
        "(declare-const X_0 Real)\n(declare-const Y_0 Real)\n"
        "(assert (>= X_0 -1))\n(assert (<= X_0 2))\n(assert (>= Y_0 4))\n"
    )
    assert fgp_vnn.verify(path, asked, attack=False, timeout=0.3).status != "unsat"
