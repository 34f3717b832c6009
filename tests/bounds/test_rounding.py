"""Proved bounds against rational arithmetic: scales are mixed, so that terms cancel and drown."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import ask
from tests.helpers.random_networks import (
    exact_preactivations,
    generator,
    normal,
    random_domain,
    random_network,
    random_rows,
    rationals,
)


def mixed_network(seed: int, widths: Sequence[int], dtype: torch.dtype, spread: int) -> Network:
    """Weights between 10^-spread and 10^spread."""
    source = generator(seed)
    network = random_network(seed, "residual" if seed % 2 else "chain", widths=widths)

    def scaled(affine: object) -> Dense:
        assert isinstance(affine, Dense)
        weights = tuple(w * 10.0 ** (spread * normal(source, *w.shape)) for w in affine.weights)
        bias = affine.bias * 10.0 ** (spread * normal(source, *affine.bias.shape))
        return Dense(affine.sources, weights, bias).to("cpu", dtype)

    layers = tuple(scaled(layer) for layer in network.layers)
    return Network(layers, scaled(network.output), network.inputs)


def lowest_exact(network: Network, domain: Domain, rows: Tensor, points: Tensor) -> list[Fraction]:
    """The lowest value of each row [rows, outputs] among the points, as real numbers."""
    lowest: list[Fraction] = []
    exact = [exact_preactivations(network, rationals(p))[-1] for p in points]
    for row in rows.tolist():
        values = [
            sum((Fraction(c) * v for c, v in zip(row, y, strict=True)), Fraction(0)) for y in exact
        ]
        lowest.append(min(values))
    return lowest


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [0, 1, 3])
def test_proved_bounds_are_below_the_real_network_at_its_corners(
    dtype: torch.dtype, spread: int
) -> None:
    """Where the bound is attained, rounding alone decides: stable networks over a box."""
    for seed in range(12):
        network = mixed_network(seed, (3, 3), dtype, spread)
        domain = random_domain(seed, "box", size=1e-3).to("cpu", dtype)
        query = ask(network, domain, random_rows(seed, 2, 2))
        bounds = root_bounds(query.network, domain, budget=UNLIMITED)
        rows = torch.eye(2, dtype=dtype).unsqueeze(0)
        rounding = Rounding(query.network, domain, bounds)
        passed = backward(query.network, domain, 2, rows, bounds.lines(), rounding=rounding)
        corners = domain.maximiser(torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]]).to(dtype))
        lowest = lowest_exact(query.network, domain, rows[0], corners)
        for bound, value in zip(passed.least[0].tolist(), lowest, strict=True):
            assert Fraction(bound) <= value


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_proved_layer_bounds_are_below_the_real_network(dtype: torch.dtype) -> None:
    for seed in range(12):
        network = mixed_network(seed, (3, 3, 3), dtype, 2)
        domain = random_domain(seed, "box", size=1e-4).to("cpu", dtype)
        bounds = root_bounds(network, domain, budget=UNLIMITED)
        corners = domain.maximiser(torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]]).to(dtype))
        for point in corners:
            exact = exact_preactivations(network, rationals(point))
            for z, lo, up in zip(exact[:-1], bounds.lower, bounds.upper, strict=True):
                for value, below, above in zip(z, lo[0].tolist(), up[0].tolist(), strict=True):
                    assert Fraction(below) <= value <= Fraction(above)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("depth", [1, 10, 60])
def test_the_rounding_of_deep_and_narrow_networks_is_covered(
    dtype: torch.dtype, depth: int
) -> None:
    """One neuron per layer, all on: the bound is the value itself, and every layer adds to it."""
    for seed in range(5):
        source = generator(seed)
        layers = []
        for k in range(depth):
            weight = torch.rand(1, 1, generator=source).to(dtype) * 0.2 + 0.9
            layers.append(Dense((k,), (weight,), torch.rand(1, generator=source).to(dtype)))
        weight = torch.rand(1, 1, generator=source).to(dtype) + 0.5
        output = Dense((depth,), (weight,), torch.rand(1, generator=source).to(dtype))
        network = Network(tuple(layers), output, 1)
        x = torch.rand(1, generator=source).to(dtype)
        domain = Box(x, x)
        bounds = root_bounds(network, domain, budget=UNLIMITED)
        rows = torch.ones(1, 1, 1, dtype=dtype)
        rounding = Rounding(network, domain, bounds)
        passed = backward(network, domain, depth, rows, bounds.lines(), rounding=rounding)
        exact = exact_preactivations(network, rationals(x))[-1][0]
        assert Fraction(passed.least.item()) <= exact
        spare = (exact - Fraction(passed.least.item())) / exact
        assert spare < 100 * (depth + 10) * torch.finfo(dtype).eps


def test_the_defect_of_a_map_lowers_the_proved_bound() -> None:
    network, domain = random_network(1), random_domain(1)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    rows = torch.eye(2, dtype=torch.float64).unsqueeze(0)

    def bound(net: Network) -> Tensor:
        rounding = Rounding(net, domain, bounds)
        return backward(net, domain, 2, rows, bounds.lines(), rounding=rounding).least

    output = network.output
    assert isinstance(output, Dense)
    worse = Dense(output.sources, output.weights, output.bias, torch.tensor([0.5, 0.0]).double())
    drop = bound(network) - bound(Network(network.layers, worse, 2))
    assert float(drop[0, 0]) >= 0.5
    assert float(drop[0, 1]) == pytest.approx(0, abs=1e-12)
    layer = network.layers[1]
    assert isinstance(layer, Dense)
    hidden = Dense(layer.sources, layer.weights, layer.bias, torch.full((3,), 0.5).double())
    lower = bound(Network((network.layers[0], hidden), output, 2))
    needed = 0.5 * output.weights[0].abs().sum(1)
    assert bool((bound(network) - lower >= needed - 1e-12).all())


@pytest.mark.parametrize("radius", [1.5, 8.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_overflow_proves_nothing(dtype: torch.dtype, radius: float) -> None:
    """At 1.5 only the width of a neuron's range overflows, at 8 the range itself does."""
    big = torch.finfo(dtype).max / 4
    ones = torch.ones(2, dtype=dtype)
    first = Dense((0,), (big * torch.stack([ones, -ones]),), 0 * ones)
    second = Dense((1,), (torch.full((2, 2), 0.25, dtype=dtype),), 0 * ones)
    output = Dense((2,), (-ones.unsqueeze(0),), ones[:1])
    network = Network((first, second), output, 2)
    domain = Box(-radius * ones, radius * ones)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    assert bool(bounds.unstable()[0].all())
    assert not any(bool(b.isnan().any()) for b in (*bounds.lower, *bounds.upper))
    assert bool((bounds.upper[1] >= 0.75 * big * radius / 2).all())
    rounding = Rounding(network, domain, bounds)
    rows = torch.ones(1, 1, 1, dtype=dtype)
    passed = backward(network, domain, 2, rows, bounds.lines(), rounding=rounding)
    assert not bool((passed.least >= -big).any())
