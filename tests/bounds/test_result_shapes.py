"""What the bounds return has the shapes that their modules say, at odd sizes too."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.bounds.backward import backward, backward_neurons
from fgp_vnn.bounds.forward import Forward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.slopes import Rows, ascend
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Network
from fgp_vnn.strategy import Ascent
from tests.helpers.random_networks import KINDS, normal, random_network

WIDTHS = (4, 1)
kinds = pytest.mark.parametrize("kind", KINDS)
batches = pytest.mark.parametrize("batch", [0, 1, 3])
rows_each = pytest.mark.parametrize("count", [0, 1, 3])
some_inputs = pytest.mark.parametrize("inputs", [1, 3])


def made(kind: str, inputs: int, batch: int) -> tuple[Network, Box, LayerBounds]:
    network = random_network(1, kind, inputs=inputs, widths=WIDTHS)
    center = normal(torch.Generator().manual_seed(0), batch, inputs)
    box = Box(center - 0.5, center + 0.5)
    return network, box, root_bounds(network, box, budget=UNLIMITED)


def layer_shapes(bounds: LayerBounds) -> list[tuple[int, ...]]:
    assert [low.shape for low in bounds.lower] == [up.shape for up in bounds.upper]
    return [tuple(low.shape) for low in bounds.lower]


@kinds
@batches
@some_inputs
def test_of_layers(kind: str, inputs: int, batch: int) -> None:
    network, box, bounds = made(kind, inputs, batch)
    expected = [(batch, width) for width in WIDTHS]
    assert layer_shapes(bounds) == expected
    assert layer_shapes(Forward(network).bounds(box)) == expected
    assert [tuple(mask.shape) for mask in bounds.unstable()] == expected
    assert [tuple(line.low.shape) for line in bounds.lines()] == [(batch, 1, n) for n in WIDTHS]


@kinds
@batches
@rows_each
@some_inputs
def test_of_rows(kind: str, inputs: int, count: int, batch: int) -> None:
    network, box, bounds = made(kind, inputs, batch)
    rows = normal(torch.Generator().manual_seed(1), batch, count, network.outputs)
    rounding = Rounding(network, box, bounds)
    passed = backward(network, box, len(WIDTHS), rows, bounds.lines(), rounding=rounding)
    assert passed.weight.shape == (batch, count, inputs)
    for part in (passed.constant, passed.least, passed.nominal):
        assert part.shape == (batch, count)
    for k, coefficient in passed.coefficients.items():
        assert coefficient.shape == (batch, count, WIDTHS[k - 1])
    asked = Rows(network, box, len(WIDTHS), rows, bounds)
    raised = ascend(asked, ascent=Ascent(steps=2), done=lambda least: False)
    assert raised.least.shape == (batch, count)
    assert raised.points.shape == (batch, count, inputs)
    for side in (raised.multipliers.alpha, raised.multipliers.beta):
        assert [tuple(part.shape) for part in side] == [(batch, count, n) for n in WIDTHS]


@kinds
@batches
@rows_each
@some_inputs
def test_of_neurons(kind: str, inputs: int, count: int, batch: int) -> None:
    network, box, bounds = made(kind, inputs, batch)
    neurons = torch.zeros(batch, count, dtype=torch.int64)
    rounding = Rounding(network, box, bounds)
    low, high = backward_neurons(network, box, 1, neurons, bounds.lines(), rounding=rounding)
    assert low.shape == high.shape == (batch, count)
