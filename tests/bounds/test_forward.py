"""Linear bounds carried forward."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from fgp_vnn.bounds.forward import Forward, pays
from fgp_vnn.bounds.intervals import interval_step
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from tests.helpers.random_networks import KINDS, random_network
from tests.search.test_hidden_neurons import check_overflow


def boxes(seed: int, count: int = 5, inputs: int = 2) -> Box:
    source = torch.Generator().manual_seed(seed)
    center = torch.randn(count, inputs, generator=source, dtype=torch.float64)
    radius = torch.rand(count, inputs, generator=source, dtype=torch.float64)
    return Box(center - radius, center + radius)


def sampled(box: Box, points: int = 400) -> torch.Tensor:
    """Points [points, boxes, inputs] of each box, its corners among them."""
    source = torch.Generator().manual_seed(7)
    part = torch.rand(points, *box.lower.shape, generator=source, dtype=torch.float64)
    part[::4] = part[::4].round()
    return box.lower + part * (box.upper - box.lower)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_every_neuron_stays_within_its_bounds(seed: int, kind: str) -> None:
    network = random_network(seed, kind, widths=(6, 5, 4))
    box = boxes(seed)
    bounds = Forward(network).bounds(box)
    x = sampled(box)
    for k, z in enumerate(network.preactivations(x.flatten(0, 1))[:-1]):
        at = z.view(*x.shape[:2], -1)
        assert bool((bounds.lower[k] <= at).all())
        assert bool((at <= bounds.upper[k]).all())


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_never_looser_than_intervals(kind: str) -> None:
    network = random_network(3, kind, widths=(6, 5, 4))
    box = boxes(3)
    bounds = Forward(network).bounds(box)
    for k in range(3):
        before = LayerBounds(bounds.lower[:k], bounds.upper[:k])
        lower, upper = interval_step(network, box, before, k)
        assert bool((bounds.lower[k] >= lower).all() and (bounds.upper[k] <= upper).all())


def test_bounds_are_tight_where_no_neuron_is_unstable() -> None:
    weight = torch.tensor([[1.0, 2.0], [-1.0, 1.0]], dtype=torch.float64)
    first = Dense((0,), (weight,), torch.tensor([10.0, 10.0], dtype=torch.float64))
    second = Dense(
        (1,), (torch.tensor([[1.0, -1.0]], dtype=torch.float64),), torch.zeros(1).double()
    )
    out = Dense((2,), (torch.ones(1, 1, dtype=torch.float64),), torch.zeros(1).double())
    box = Box(-torch.ones(1, 2, dtype=torch.float64), torch.ones(1, 2, dtype=torch.float64))
    bounds = Forward(Network((first, second), out, 2)).bounds(box)
    # z = (10 + x + 2y) - (10 - x + y) = 2x + y, whose range intervals put at [-5, 5].
    torch.testing.assert_close(bounds.lower[1], torch.tensor([[-3.0]], dtype=torch.float64))
    torch.testing.assert_close(bounds.upper[1], torch.tensor([[3.0]], dtype=torch.float64))


def test_known_signs_are_kept() -> None:
    network, box = random_network(1, widths=(6, 5, 4)), boxes(1)
    signs = [torch.ones(5, width, dtype=torch.int8) for width in network.widths]
    bounds = Forward(network).bounds(box, LayerBounds.of_signs(signs, torch.float64))
    assert all(bool((lower >= 0).all()) for lower in bounds.lower)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rounding_does_not_lose_the_exact_value(scale: float) -> None:
    network = random_network(9, widths=(5, 5, 5, 5), scale=scale)
    point = torch.tensor([[0.1, -0.7]], dtype=torch.float64)
    bounds = Forward(network).bounds(Box(point, point))
    values = [Fraction(float(v)) for v in point[0]]
    for k, layer in enumerate(network.layers):
        assert isinstance(layer, Dense)
        rows = zip(layer.weights[0].tolist(), layer.bias.tolist(), strict=True)
        exact = [
            sum((Fraction(w) * v for w, v in zip(row, values, strict=True)), Fraction(b))
            for row, b in rows
        ]
        for j, value in enumerate(exact):
            assert Fraction(float(bounds.lower[k][0, j])) <= value
            assert value <= Fraction(float(bounds.upper[k][0, j]))
        values = [max(value, Fraction(0)) for value in exact]


def test_it_pays_for_wide_networks_of_few_inputs_only() -> None:
    assert pays(random_network(0, inputs=2, widths=(900, 900, 900, 900)), 40)
    assert not pays(random_network(0, inputs=50, widths=(60, 50, 40)), 40)


def test_what_overflows_makes_no_neuron_stable() -> None:
    def forward(query: Query, bounds: LayerBounds) -> LayerBounds:
        box = query.domain.box()
        return Forward(query.network).bounds(Box(box.lower.unsqueeze(0), box.upper.unsqueeze(0)))

    check_overflow(forward)
