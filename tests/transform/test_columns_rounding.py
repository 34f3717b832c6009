"""The rounding of forms carried forward through operators, against exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.strategy import Shrinking
from fgp_vnn.transform.columns import condense_columns
from tests.base.test_rounding import carried
from tests.helpers.conv_networks import random_convolutions
from tests.helpers.extreme_networks import DTYPES, Exact, corners, evaluate, exact, random_extreme
from tests.transform.test_columns import few_moving


def is_below(bound: Tensor, values: Exact) -> bool:
    flat = bound.reshape(-1)
    known = exact(torch.where(flat.isfinite(), flat, torch.zeros_like(flat)))
    pairs = zip(flat.isfinite().tolist(), known, values, strict=True)
    return all(not finite or low <= value for finite, low, value in pairs)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_by_columns_hold_at_all_magnitudes(dtype: torch.dtype, residual: bool) -> None:
    for seed in range(15):
        network, box = random_extreme(seed, dtype, residual=residual)
        query = question(network, box)
        found = condense_columns(query, UNLIMITED, Shrinking())
        starts = [0, *torch.tensor(network.widths).cumsum(0).tolist()]
        for x in corners(box):
            before, _ = evaluate(network, x)
            for z, low, up in zip(before, found.known.lower, found.known.upper, strict=False):
                assert is_below(low, z) and is_below(-up, [-value for value in z])
            done = found.condensed
            assert done is not None
            assert is_below(done.least, before[-1])
            places = [[p for p in done.neurons.tolist() if a <= p < b] for a, b in pairwise(starts)]
            every = [v for z in before for v in z]
            left = [[every[p] for p in layer] for layer in places if layer]
            assert carried(done.query.network, x, [*left, before[-1]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("powers", [0.0, 30.0])
def test_bounds_of_convolutions_by_columns_hold_in_exact_arithmetic(
    dtype: torch.dtype, powers: float
) -> None:
    scale = powers / 3 if dtype == torch.float32 else 3 * powers
    for seed in range(3):
        made = random_convolutions(seed, dtype, powers=scale)
        box = few_moving(made.box, 4) if seed else Box(made.box.lower, made.box.lower)
        found = condense_columns(question(made.operators, box), UNLIMITED, Shrinking())
        for side in (box.lower, box.upper):
            before, _ = evaluate(made.dense, exact(side))
            for z, low, up in zip(before, found.known.lower, found.known.upper, strict=False):
                assert is_below(low, z) and is_below(-up, [-value for value in z])


def question(network: Network, domain: Domain) -> Query:
    """The question whether an output can be at most 0."""
    count = network.outputs
    strict = torch.zeros(count, dtype=torch.bool)
    return Query(network, domain, torch.arange(count), strict, count)


def test_a_defect_of_a_map_widens_the_bounds_after_it() -> None:
    made = random_convolutions(0, torch.float64)
    first = made.dense.layers[0]
    assert isinstance(first, Dense)
    faulty = replace(first, defect=torch.ones_like(first.bias))
    widened = replace(made.dense, layers=(faulty, *made.dense.layers[1:]))
    plain, wide = (
        condense_columns(question(net, made.box), UNLIMITED, Shrinking()).known
        for net in (made.dense, widened)
    )
    assert bool((plain.lower[0] - wide.lower[0] >= 0.999).all())
    assert bool((wide.upper[0] - plain.upper[0] >= 0.999).all())
