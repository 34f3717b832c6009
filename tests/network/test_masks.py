"""Softmax with entries that a mask leaves out, against onnxruntime, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.network import LoadedNetwork, load_network
from fgp_vnn.network.activations.powers import OF_ONE_OR_MORE
from tests.helpers.agreement import assert_agrees
from tests.helpers.network_models import Builder

LEAST = float(np.finfo(np.float32).min)
HUGE = np.full((1, 4), -3e38), np.full((1, 4), 3e38)
CAUSAL = np.triu(np.ones((3, 3), dtype=bool), 1)


def _masked(folder: Path, nothing: float, how: str, mask: np.ndarray, width: int = 3) -> Path:
    """A softmax over the last axis of scores [1, 3, width]."""
    b = Builder([1, 4])
    scores = b.op("Reshape", b.op("MatMul", "x", b.random(4, 3 * width)), b.ints(1, 3, width))
    if how == "sum":
        scores = b.op("Add", scores, b.const(np.where(mask, nothing, 0.25)))
    else:
        scores = b.op("Where", b.const(mask, np.bool_), b.const(nothing), scores)
    soft = b.op("Softmax", scores, axis=2)
    return b.save(folder / "a.onnx", b.op("Reshape", soft, b.ints(1, 3 * width)))


def _agrees(loaded: LoadedNetwork) -> None:
    """Also on what is exactly 0."""
    assert_agrees(loaded)
    x = np.random.default_rng(2).normal(size=(20, 4)).astype(np.float32)
    ours = loaded.network(torch.from_numpy(x).double()).numpy()
    assert (ours[loaded.runtime.run_many(x) == 0] == 0).all()


@pytest.mark.parametrize("how", ["sum", "choice"])
@pytest.mark.parametrize("nothing", [-np.inf, LEAST])
def test_what_a_mask_leaves_out_is_zero(how: str, nothing: float, tmp_path: Path) -> None:
    loaded = load_network(_masked(tmp_path, nothing, how, CAUSAL))
    names = [activation.name for activation in loaded.network.activations]
    assert names[-2:] == ["Exp", "Reciprocal"]
    assert ("Within" in names) == (nothing == LEAST)  # scores have to be small beside it
    _agrees(loaded)


def test_masks_of_long_rows(tmp_path: Path) -> None:
    mask = np.random.default_rng(0).random((3, 70)) < 0.5
    _agrees(load_network(_masked(tmp_path, -np.inf, "sum", mask, 70)))


@pytest.mark.parametrize("nothing", [None, -np.inf])
def test_values_of_a_softmax_are_between_0_and_1(nothing: float | None, tmp_path: Path) -> None:
    """Whatever goes into it."""
    mask = CAUSAL if nothing is not None else np.zeros((3, 3), dtype=bool)
    path = _masked(tmp_path, nothing or 0.0, "sum", mask)
    found = fgp_vnn.bounds(path, HUGE, method="plain")
    assert (found.lower >= -1e-9).all() and (found.upper <= 1 + 1e-9).all()
    assert (found.upper.reshape(3, 3)[mask] <= 1e-9).all()


def test_beside_huge_scores_a_finite_mask_leaves_nothing_out(tmp_path: Path) -> None:
    found = fgp_vnn.bounds(_masked(tmp_path, LEAST, "sum", CAUSAL), HUGE, method="plain")
    assert not (found.upper.reshape(3, 3)[CAUSAL] < 1).any()


def test_no_line_of_a_softmax_passes_its_values() -> None:
    """1/z for z of 1 and more, over intervals that know less of z."""
    random = torch.Generator().manual_seed(0)
    lower = 1 - 10 ** (3 * torch.randn(1, 500, generator=random, dtype=torch.float64))
    upper = 1 + 10 ** (3 * torch.randn(1, 500, generator=random, dtype=torch.float64))
    lower[0, :50], upper[0, 25:75] = -torch.inf, torch.inf
    envelope = OF_ONE_OR_MORE.envelope(lower, upper)
    share = torch.linspace(0, 1, 200, dtype=torch.float64).reshape(-1, 1)
    z = 1 + share**8 * (upper.clamp(max=1e12) - 1)
    for low, floor, high, ceiling in zip(
        envelope.low, envelope.floor, envelope.high, envelope.ceiling, strict=True
    ):
        assert bool((low * z + floor <= 1 / z).all())
        assert bool((high * z + ceiling >= 1 / z).all())
    assert bool((envelope.least >= 0).all()) and bool((envelope.greatest <= 1).all())


def test_scores_too_large_for_a_finite_mask_have_no_bounds(tmp_path: Path) -> None:
    loaded = load_network(_masked(tmp_path, LEAST, "sum", CAUSAL))
    (within,) = (f for f in loaded.network.activations if f.name == "Within")
    large = torch.tensor([[1e37, -1.0]], dtype=torch.float64)
    envelope = within.envelope(large - 1, large + 1)
    assert float(envelope.greatest[0, 0]) == torch.inf
    assert float(envelope.least[0, 0]) == -torch.inf
    assert bool(envelope.greatest[0, 1] < 1e-9)


def test_a_row_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Softmax"):
        load_network(_masked(tmp_path, -np.inf, "sum", np.ones((3, 3), dtype=bool)))


@pytest.mark.parametrize("how", ["sum", "choice"])
def test_a_softmax_at_the_end_stays_where_it_leaves_entries_out(how: str, tmp_path: Path) -> None:
    """A policy with actions that are not allowed: the others are compared with these, too."""
    b, mask = Builder([1, 4]), np.array([[False, True, False]])
    scores = b.op("MatMul", "x", b.random(4, 3))
    if how == "sum":
        scores = b.op("Add", scores, b.const(np.where(mask, -np.inf, 0.25)))
    else:
        scores = b.op("Where", b.const(mask, np.bool_), b.const(-np.inf), scores)
    path = b.save(tmp_path / "a.onnx", b.op("Softmax", scores, axis=1))
    loaded = load_network(path)
    assert not loaded.comparisons_only
    _agrees(loaded)
    box = (np.full(4, -1.0), np.full(4, 1.0))
    y = fgp_vnn.variables(path)[1]
    assert fgp_vnn.verify(path, inputs=box, unsafe=y[0] <= y[1]).status == "unsat"
    assert fgp_vnn.verify(path, inputs=box, unsafe=y[0] <= y[2]).status == "sat"


def test_minus_infinity_elsewhere_is_refused(tmp_path: Path) -> None:
    b = Builder([1, 3])
    path = b.save(tmp_path / "a.onnx", b.op("Relu", b.op("Add", "x", b.const(-np.inf))))
    with pytest.raises(InputError, match="infinite"):
        load_network(path)
