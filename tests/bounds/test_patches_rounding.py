"""The rounding of backward rows in windows, against exact arithmetic."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds.patches import PatchPass
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from tests.helpers.conv_networks import Twins, random_convolutions
from tests.helpers.extreme_networks import Exact, evaluate, exact


def corner_values(made: Twins, count: int) -> list[list[Exact]]:
    """z_1, ..., z_K at corners of the box, in exact arithmetic."""
    source = torch.Generator().manual_seed(count)
    found = []
    for _ in range(count):
        high = torch.rand(made.dense.inputs, generator=source) > 0.5
        x = torch.where(high, made.box.upper, made.box.lower)
        found.append(evaluate(made.dense, exact(x))[0])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("powers", [0.0, 30.0])
def test_bounds_by_patches_hold_in_exact_arithmetic(dtype: torch.dtype, powers: float) -> None:
    scale = powers / 3 if dtype == torch.float32 else 3 * powers
    for seed in range(2):
        made = random_convolutions(seed, dtype, powers=scale)
        bounds = root_bounds(made.operators, made.box, budget=UNLIMITED)
        for before in corner_values(made, 2):
            for z, low, up in zip(before, bounds.lower, bounds.upper, strict=False):
                assert are_below(low, z) and are_below(-up, [-value for value in z])


def are_below(bound: Tensor, values: Exact) -> bool:
    flat = bound.reshape(-1)
    finite = flat.isfinite().tolist()
    known = exact(torch.where(flat.isfinite(), flat, torch.zeros_like(flat)))
    return all(not ok or a <= v for ok, a, v in zip(finite, known, values, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("powers", [0.0, 5.0])
def test_the_rounding_of_patches_is_covered_in_a_single_point(
    dtype: torch.dtype, powers: float
) -> None:
    """Where all neurons are stable, a row's bound is its value, and rounding alone decides."""
    for seed in range(1):
        made = random_convolutions(seed, dtype, side=9, powers=powers)
        point = Box(made.box.lower, made.box.lower)
        bounds = root_bounds(made.operators, point, budget=UNLIMITED)
        before = evaluate(made.dense, exact(point.lower))[0]
        for target in (1, 2):
            low, high = by_patches(made, point, target)
            z = before[target]
            assert are_below(low, z) and are_below(-high, [-value for value in z])
            size = bounds.sizes()[target].max()
            assert powers or bool(((high - low) <= 0.1 * size).all())  # they say something


def by_patches(made: Twins, box: Box, target: int) -> tuple[Tensor, Tensor]:
    """Bounds of all neurons of a map by rows that stay in windows down to the input."""
    network = made.operators
    bounds = root_bounds(network, box, budget=UNLIMITED)
    rounding = Rounding(network, box, bounds)
    passes = PatchPass(network, target, bounds.lines(), rounding, no_rest)
    assert passes.pays
    return passes.bounds(torch.arange(network.widths[target]), UNLIMITED)


def no_rest(*waiting: object) -> Tensor:
    raise AssertionError("windows are small enough")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_in_windows_bound_all_neurons_of_a_box(dtype: torch.dtype) -> None:
    made = random_convolutions(0, dtype, side=9)
    for target in (1, 2):
        low, high = by_patches(made, made.box, target)
        for before in corner_values(made, 1):
            z = before[target]
            assert are_below(low, z) and are_below(-high, [-value for value in z])
