"""Proved bounds against rational arithmetic, at all magnitudes that a precision has."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, positive, unit
from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.forward import Forward
from fgp_vnn.bounds.intervals import interval_step
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Combination, Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.regions.forms import affine_forms, empty
from fgp_vnn.regions.triangular import triangular
from fgp_vnn.strategy import Shrinking
from fgp_vnn.transform.chains import condense
from fgp_vnn.transform.inputs import reduce_inputs
from fgp_vnn.transform.opposites import merge_opposites
from fgp_vnn.transform.stable import collapse, left_over
from tests.helpers.extreme_networks import (
    DTYPES,
    Exact,
    apply,
    corners,
    dot,
    evaluate,
    exact,
    matrix,
    random_extreme,
)
from tests.helpers.flushing import is_flushing

SEEDS = range(10 if is_flushing() else 15)  # the same once more, see test_rounding_flushed.py
MANY = range(10 if is_flushing() else 30)  # for what few networks show


def question(network: Network, domain: Domain) -> Query:
    count = network.outputs
    disjunct = torch.arange(count)
    return Query(network, domain, disjunct, torch.zeros(count, dtype=torch.bool), count)


def is_below(bound: Tensor, values: Exact) -> bool:
    """Whether finite bounds are at most the values; others say nothing."""
    flat = bound.reshape(-1)
    finite = flat.isfinite()
    kept = [v for v, is_one in zip(values, finite.tolist(), strict=True) if is_one]
    return all(low <= v for low, v in zip(exact(flat[finite]), kept, strict=True))


def at_corners(network: Network, box: Box) -> list[list[Exact]]:
    """z_1, ..., z_K, y at each of some points."""
    return [evaluate(network, x)[0] for x in corners(box)]


def are_bounds(bounds: LayerBounds, reached: list[list[Exact]]) -> bool:
    for before in reached:
        for z, low, up in zip(before, bounds.lower, bounds.upper, strict=False):
            if not (is_below(low, z) and is_below(-up, [-v for v in z])):
                return False
    return True


def known_signs(bounds: LayerBounds) -> int:
    return sum(int((~mask).sum()) for mask in bounds.unstable())


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_of_hidden_neurons_hold_at_all_magnitudes(
    dtype: torch.dtype, residual: bool
) -> None:
    known = 0
    for seed in SEEDS:
        network, box = random_extreme(seed, dtype, residual=residual)
        reached = at_corners(network, box)
        bounds = root_bounds(network, box, budget=UNLIMITED)
        assert are_bounds(bounds, reached)
        intervals = root_bounds(network, box, worth=(), budget=UNLIMITED)
        assert are_bounds(intervals, reached)
        batch = Box(box.lower.unsqueeze(0), box.upper.unsqueeze(0))
        assert are_bounds(Forward(network).bounds(batch), reached)
        known += known_signs(bounds)
    assert known > len(SEEDS)  # they say something


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_of_rows_hold_at_all_magnitudes(dtype: torch.dtype, residual: bool) -> None:
    for seed in SEEDS:
        network, box = random_extreme(seed, dtype, residual=residual)
        rows = torch.randn(2, 2, generator=torch.Generator().manual_seed(seed)).to(dtype)
        network = replace(network, output=Combination(network.output, rows, rows[:, 0]))
        bounds = root_bounds(network, box, budget=UNLIMITED)
        eye = torch.cat([torch.eye(2), -torch.eye(2)]).to(dtype).unsqueeze(0)
        rounding = Rounding(network, box, bounds)
        least = backward(network, box, 3, eye, bounds.lines(), rounding=rounding).least
        for x in corners(box):
            y = evaluate(network, x)[0][-1]
            assert is_below(least, [*y, *(-v for v in y)])


def test_bounds_in_float32_hold_for_weights_that_are_none() -> None:
    """Casts round, underflow and overflow; bounds are those of the network before."""
    for seed in SEEDS:
        for scale in (1.0, 1e-12):
            exact_network, exact_box = random_extreme(seed, torch.float32, spread=3.0)
            exact_network = exact_network.to("cpu", torch.float64)
            maps = [
                replace(m, weights=tuple(w * (scale / 3) for w in m.weights), bias=m.bias / 7)
                for m in exact_network.maps
                if isinstance(m, Dense)
            ]
            exact_network = Network(tuple(maps[:-1]), maps[-1], 2)
            exact_box = Box(exact_box.lower.double() / 3, exact_box.upper.double() / 3)
            query = question(exact_network, exact_box).to("cpu", torch.float32)
            box = query.domain.box()
            bounds = root_bounds(query.network, box, budget=UNLIMITED)
            assert are_bounds(bounds, at_corners(exact_network, exact_box))


def test_a_defect_is_cast_upwards() -> None:
    defect = torch.tensor([1e-50, 1 + 1e-12, 1e300], dtype=torch.float64)
    affine = Dense((0,), (torch.ones(3, 1, dtype=torch.float64),), torch.zeros(3).double(), defect)
    cast = affine.to("cpu", torch.float32).defect
    assert cast is not None
    assert bool((cast.double() >= defect).all())


def forms_are_near(rows: list[Exact], values: Exact, errors: Exact, t: Exact, z: Exact) -> bool:
    computed = [dot(row, t) + v for row, v in zip(rows, values, strict=True)]
    return all(abs(a - b) <= e for a, b, e in zip(computed, z, errors, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_forms_of_regions_are_within_their_errors_at_all_magnitudes(dtype: torch.dtype) -> None:
    compared = 0
    for seed in SEEDS:
        network, box = random_extreme(seed, dtype)
        center = exact(box.center)
        system = triangular(question(network, box))
        for x in corners(box):
            before, _ = evaluate(network, x)
            t = [a - c for a, c in zip(x, center, strict=True)]
            pattern = [torch.tensor([[v >= 0 for v in z]]) for z in before[:-1]]
            forms = affine_forms(network, box, pattern)
            assert not bool(empty(forms, pattern).any())
            for form, z in zip(forms, before, strict=True):
                parts = [form.columns[0].T, form.values[0], form.error[0]]
                if all(bool(part.isfinite().all()) for part in (*parts, form.reach)):
                    rows, values, errors = matrix(parts[0]), exact(parts[1]), exact(parts[2])
                    assert forms_are_near(rows, values, errors, t, z)
                    compared += 1
            on = torch.cat(pattern, -1).T.to(dtype)
            made = system.forms(on)
            parts = [made.rows[:, 0], made.values[:, 0], system.error]
            if all(bool(part.isfinite().all()) for part in parts):
                rows, values, errors = matrix(parts[0]), exact(parts[1]), exact(parts[2])
                assert forms_are_near(rows, values, errors, t, [v for z in before for v in z])
    assert compared > len(SEEDS)


def carried(network: Network, x: Exact, others: list[Exact]) -> bool:
    """Whether each map of a smaller network is within its defect of what it stands for.

    `others` are the values z of the neurons that are left, layer by layer, and of the output.
    """
    values = [x, *([max(v, Fraction(0)) for v in z] for z in others[:-1])]
    for affine, z in zip(network.maps, others, strict=True):
        given = apply(affine, values)
        defect = affine.defect if affine.defect is not None else torch.zeros_like(affine.bias)
        for i, (a, b) in enumerate(zip(given, z, strict=True)):
            if defect[i].isfinite() and abs(a - b) > exact(defect[i : i + 1])[0]:
                return False
    return True


@pytest.mark.parametrize("dtype", DTYPES)
def test_collapsed_maps_are_within_their_defects_at_all_magnitudes(dtype: torch.dtype) -> None:
    smaller = 0
    for seed in SEEDS:
        network, box = random_extreme(seed, dtype)
        query = question(network, box)
        bounds = root_bounds(network, box, budget=UNLIMITED)
        small, _ = collapse(query, bounds, budget=UNLIMITED)
        smaller += small is not query
        masks = left_over(query, bounds) if small is not query else []
        for x in corners(box) if masks else []:
            before, _ = evaluate(network, x)
            left = [
                [v for v, open_ in zip(z, mask.tolist(), strict=True) if open_]
                for z, mask in zip(before[:-1], masks, strict=True)
            ]
            assert carried(small.network, x, [*(z for z in left if z), before[-1]])
    assert smaller


@pytest.mark.parametrize("dtype", DTYPES)
def test_condensed_maps_and_bounds_hold_at_all_magnitudes(dtype: torch.dtype) -> None:
    for seed in MANY:
        network, box = random_extreme(seed, dtype)
        done = condense(question(network, box), UNLIMITED, Shrinking())
        assert done is not None
        starts = [0, *torch.tensor(network.widths).cumsum(0).tolist()]
        for x in corners(box):
            before, _ = evaluate(network, x)
            assert is_below(done.least, before[-1])
            places = [[p for p in done.neurons.tolist() if a <= p < b] for a, b in pairwise(starts)]
            every = [v for z in before for v in z]
            left = [[every[p] for p in layer] for layer in places if layer]
            assert carried(done.query.network, x, [*left, before[-1]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_networks_with_fewer_inputs_are_within_their_defects(dtype: torch.dtype) -> None:
    for seed in SEEDS:
        network, box = random_extreme(seed, dtype)
        thin = Box(box.lower, torch.stack([box.upper[0], box.lower[1]]))
        small, _ = reduce_inputs(question(network, thin))
        assert small.network.inputs == 1
        for x in corners(thin):
            before, values = evaluate(network, x)
            assert carried(small.network, x[:1], before)
            assert len(values) == 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_merged_neurons_are_within_their_defects(dtype: torch.dtype) -> None:
    for seed in SEEDS:
        network, box = random_extreme(seed, dtype)
        first = network.layers[0]
        assert isinstance(first, Dense)
        weight = torch.stack([first.weights[0][0], -first.weights[0][0]])
        bias = torch.stack([first.bias[0], -first.bias[0]])
        first = replace(first, weights=(weight,), bias=bias)
        network = replace(network, layers=(first, *network.layers[1:]))
        done = merge_opposites(
            question(network, box), root_bounds(network, box, budget=UNLIMITED), 1e-6
        )
        assert done is not None
        merged = done[0].network
        for x in corners(box):
            before, values = evaluate(network, x)
            affine = merged.maps[1]
            assert isinstance(affine, Dense)
            given = apply(affine, [x, values[1][: merged.widths[0]]])
            sizes = [torch.tensor([float(abs(v)) for v in part]).to(dtype) + unit(dtype).tiny
                     for part in (x, values[1][: merged.widths[0]])]  # fmt: skip
            size_of = unit(dtype)
            error = (
                size_of.share(affine.operations)
                * affine.magnitude([sizes[s] for s in affine.sources])
                + size_of.underflow * affine.underflows([sizes[s] for s in affine.sources]).forward
            )
            error = error if affine.defect is None else error + affine.defect
            for i, (a, b) in enumerate(zip(given, before[1], strict=True)):
                assert not error[i].isfinite() or abs(a - b) <= exact(error[i : i + 1])[0]


def test_what_overflowed_is_no_bound() -> None:
    values = torch.tensor([1.0, torch.inf, -torch.inf, torch.nan])
    assert below(values).tolist() == [1.0, -torch.inf, -torch.inf, -torch.inf]
    assert above(values).tolist() == [1.0, torch.inf, torch.inf, torch.inf]
    assert positive(values).tolist() == [True, False, False, False]


def test_a_sum_that_is_too_long_has_no_bound() -> None:
    size_of = unit(torch.float32)
    assert size_of.share(1 << 20) <= 0.25
    assert size_of.share(1 << 22) == size_of.grow(1 << 22) == torch.inf


def test_intervals_that_overflow_know_nothing() -> None:
    big = torch.tensor([[3e38, 3e38], [-3e38, -3e38]])
    network = Network((Dense((0,), (big,), torch.zeros(2)),), Dense((1,), (big,), big[0]), 2)
    box = Box(torch.full((2,), 5.0), torch.full((2,), 6.0))
    lower, upper = interval_step(network, box, LayerBounds((), ()), 0)
    assert not bool((lower > 0).any()) and not bool((upper < 0).any())
