"""Strips of activations, and smooth networks as ReLU networks with errors."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.strips import strip
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.network.activations.base import Activation
from fgp_vnn.network.activations.product import Product
from fgp_vnn.transform.stable import linearise, undecided
from tests.helpers.activation_cases import curves
from tests.helpers.random_networks import generator
from tests.helpers.smooth_networks import sampled, smooth_case

FUNCTIONS = {**curves(), "Product": Product(torch.arange(50), 99 - torch.arange(50))}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_values_lie_in_their_strip(name: str) -> None:
    activation: Activation = FUNCTIONS[name]
    random = generator(len(name))
    low = 3 * torch.randn(100, generator=random, dtype=torch.float64)
    up = low + 10.0 ** (2 * torch.rand(100, generator=random, dtype=torch.float64) - 1.5)
    found = strip(activation, activation.envelope(low.unsqueeze(0), up.unsqueeze(0)), low, up)
    share = torch.rand(500, 100, generator=random, dtype=torch.float64)
    share[:2] = torch.tensor([[0.0], [1.0]])
    z = low + (up - low) * share
    parts = (found.slope * activation.expand(z)).reshape(500, activation.operands, -1).sum(-2)
    known = found.half < torch.inf
    off = (activation.value(z) - parts - found.centre).abs()
    room = 1e-12 * (1 + parts.abs() + found.centre.abs())
    assert bool((off <= found.half + room)[:, known].all())
    assert not bool(off[:, known].isnan().any())


@pytest.mark.parametrize("name", ["Tanh", "Sigmoid", "Exp", "Product"])
def test_a_strip_is_about_as_narrow_as_the_function_bends(name: str) -> None:
    """Halving intervals makes it four times narrower."""
    activation: Activation = FUNCTIONS[name]
    low = torch.linspace(-1, 1, 100, dtype=torch.float64)
    halves = []
    for width in (0.02, 0.01):
        lower, upper = low - width, low + width
        envelope = activation.envelope(lower.unsqueeze(0), upper.unsqueeze(0))
        halves.append(strip(activation, envelope, lower, upper).half.mean())
    assert 3.5 < float(halves[0] / halves[1]) < 4.5


@pytest.mark.parametrize("part", range(2))
def test_the_network_that_stands_for_a_smooth_one_has_its_values_up_to_its_errors(
    part: int,
) -> None:
    """At each sampled input, each neuron that is left and each output."""
    seen = 0
    for number in range(30 * part, 30 * part + 30):
        query = smooth_case(number, 300).query
        bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
        found = linearise(query, bounds, budget=UNLIMITED)
        if found is None:
            continue
        small, kept = found
        assert small.network.piecewise_linear and len(kept.lower) == len(small.network.layers)
        points = sampled(query.network, query.domain.box(), 300, number)
        true, left = query.network.preactivations(points), undecided(bounds)
        values, place = [points], 0
        for k, activation in enumerate(query.network.activations):
            chosen = torch.nonzero(left[k]).flatten()
            if bounds.envelopes[k] is None and len(chosen):
                layer = small.network.layers[place]
                z = layer([values[s] for s in layer.sources])
                exact = true[k][:, chosen]
                assert layer.defect is not None
                assert bool(((z - exact).abs() <= layer.defect + 1e-9 * (1 + z.abs())).all())
                values.append(activation.value(exact))
                place += 1
        output = small.network.output
        g = output([values[s] for s in output.sources])
        assert output.defect is not None
        assert bool(((g - true[-1]).abs() <= output.defect + 1e-9 * (1 + g.abs())).all())
        seen += 1
    assert seen >= 2
