"""Inputs that a property fixes make constants of operands that would be refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import fgp_vnn
from fgp_vnn.api.cases import load_for
from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network import LoadedNetwork, load_network
from fgp_vnn.property import load_property
from tests.helpers.command_line import box
from tests.helpers.network_models import Builder

# Three values of two features and a mask each: the mean of what the mask lets through.
FREE = (-1.0, 1.0)


def masked_mean(folder: Path) -> Path:
    builder = Builder([1, 3, 3])
    data = builder.op("Slice", "x", builder.ints(0), builder.ints(2), builder.ints(2))
    mask = builder.op("Slice", "x", builder.ints(2), builder.ints(3), builder.ints(2))
    hidden = builder.op("Relu", builder.op("MatMul", data, builder.random(2, 5)))
    kept = builder.op("ReduceSum", builder.op("Mul", hidden, mask), builder.ints(1), keepdims=0)
    count = builder.op("ReduceSum", mask, builder.ints(1), keepdims=0)
    mean = builder.op("Div", kept, count)
    return builder.save(folder / "a.onnx", builder.op("MatMul", mean, builder.random(5, 1)))


def boxes(mask: tuple[float, ...]) -> list[tuple[float, float]]:
    return [bounds for value in mask for bounds in (FREE, FREE, (value, value))]


def constraint(mask: tuple[float, ...], limit: float) -> str:
    """One case: all inputs in the box, the masks fixed, an output of at least the limit."""
    parts = [f"(>= X_{i} {a}) (<= X_{i} {b})" for i, (a, b) in enumerate(boxes(mask))]
    return f"(and {' '.join(parts)} (>= Y_0 {limit}))"


def prop_file(folder: Path, *cases: str) -> Path:
    path = folder / "a.vnnlib"
    path.write_text(box([(-1.0, 1.0)] * 9, 1, f"(or {' '.join(cases)})"))
    return path


MASKS = ((1.0, 1.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def highest(model: Path, mask: tuple[float, ...]) -> float:
    """The largest output that many random inputs give."""
    runtime = load_for_mask(model, mask).runtime
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, size=(4000, 3, 3)).astype(np.float32)
    x[2000:] = np.sign(x[2000:])
    x[:, :, 2] = mask
    return float(max(runtime.run(row)[0] for row in x.reshape(len(x), -1)))


def load_for_mask(model: Path, mask: tuple[float, ...]) -> LoadedNetwork:
    fixed = np.full((3, 3), np.nan)
    fixed[:, 2] = mask
    return load_network(model, fixed=fixed.reshape(-1))


@pytest.mark.parametrize("mask", MASKS)
def test_a_network_with_fixed_masks_computes_what_onnxruntime_does(
    tmp_path: Path, mask: tuple[float, ...]
) -> None:
    loaded = load_for_mask(masked_mean(tmp_path), mask)
    assert loaded.bound == {2: mask[0], 5: mask[1], 8: mask[2]}
    x = np.random.default_rng(0).normal(size=(20, 3, 3)).astype(np.float32)
    x[:, :, 2] = mask
    x = x.reshape(20, 9)
    ours = loaded.network(torch.from_numpy(x).double()).numpy()
    assert np.allclose(ours, loaded.runtime.run_many(x), atol=1e-5)


@pytest.mark.parametrize("mask", MASKS)
def test_verdicts_are_those_of_the_masked_network(tmp_path: Path, mask: tuple[float, ...]) -> None:
    model = masked_mean(tmp_path)
    top = highest(model, mask)
    for limit, status in ((top - 0.05, "sat"), (top + 0.5, "unsat")):
        prop = prop_file(tmp_path, constraint(mask, limit))
        assert fgp_vnn.verify(model, prop, timeout=60).status == status


def test_cases_with_other_masks_get_networks_of_their_own(tmp_path: Path) -> None:
    model = masked_mean(tmp_path)
    tops = [highest(model, mask) for mask in MASKS]
    cases = [constraint(m, top + 0.5) for m, top in zip(MASKS, tops, strict=True)]
    more = [constraint(MASKS[0], tops[0] + 1.0)]
    prop = load_property(prop_file(tmp_path, *cases, *more))
    parts = list(load_for((model, tmp_path / "a.vnnlib"), prop))
    assert [len(part.cases) for _, part in parts] == [1, 1, 1]  # one box has two unsafe sets
    assert len({tuple(loaded.bound.values()) for loaded, _ in parts}) == 3
    assert fgp_vnn.verify(model, tmp_path / "a.vnnlib", timeout=60).status == "unsat"
    broken = prop_file(tmp_path, *cases, constraint(MASKS[2], tops[2] - 0.05))
    assert fgp_vnn.verify(model, broken, timeout=60).status == "sat"


def bound_by(folder: Path, prop: Path) -> dict[int, float]:
    """The inputs that are constants of the network that is made for the first case."""
    loaded, _ = next(load_for((masked_mean(folder), prop), load_property(prop)))
    return dict(loaded.bound)


def test_an_input_that_float32_rounds_is_not_bound(tmp_path: Path) -> None:
    assert bound_by(tmp_path, prop_file(tmp_path, constraint(MASKS[0], 100.0)))
    assert not bound_by(tmp_path, prop_file(tmp_path, constraint((0.3, 0.5, 1.0), 100.0)))


def test_a_mask_that_moves_is_not_bound(tmp_path: Path) -> None:
    prop = tmp_path / "a.vnnlib"
    prop.write_text(box([FREE, FREE, (0.5, 1.0)] * 2 + boxes((1.0,)), 1, "(>= Y_0 100.0)"))
    assert not bound_by(tmp_path, prop)


@pytest.mark.slow
def test_a_division_by_an_input_that_is_fixed_at_0_is_refused(tmp_path: Path) -> None:
    prop = prop_file(tmp_path, constraint((0.0, 0.0, 0.0), 100.0))
    with pytest.raises(UnsupportedError, match="fixed at 0"):
        bound_by(tmp_path, prop)
    assert fgp_vnn.verify(masked_mean(tmp_path), prop, timeout=0.3).status == "unknown"


def test_a_certificate_is_not_written_for_a_part_of_the_inputs(tmp_path: Path) -> None:
    prop = prop_file(tmp_path, constraint(MASKS[0], 100.0))
    proof = tmp_path / "proof.npz"
    verdict = fgp_vnn.verify(masked_mean(tmp_path), prop, timeout=20, certificate=proof)
    assert not verdict.certificate and not proof.exists()
