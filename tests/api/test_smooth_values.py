"""Ranges and maxima of smooth networks, against sampled inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fgp_vnn
from fgp_vnn.network import LoadedNetwork


class Gated(nn.Module):
    """sigmoid(A x) * tanh(B x) + gelu(C x), and a last layer."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.a, self.b, self.c = (nn.Linear(2, 5) for _ in range(3))
        self.d = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(2 * self.a(x)) * torch.tanh(2 * self.b(x))
        result: Tensor = self.d(gate + nn.functional.gelu(self.c(x)))
        return result


BOX = (np.full(2, -0.8), np.full(2, 0.8))
GRID = torch.stack(torch.meshgrid(*[torch.linspace(-0.8, 0.8, 81)] * 2, indexing="ij"), -1)


def sampled(model: nn.Module) -> Tensor:
    with torch.no_grad():
        result: Tensor = model(GRID.reshape(-1, 2)).double()
    return result


def loaded(seed: int) -> tuple[LoadedNetwork, Tensor]:
    model = Gated(seed)
    return fgp_vnn.load_model(model, torch.zeros(1, 2)), sampled(model)


@pytest.mark.parametrize(
    ("method", "seed"), [("plain", 0), ("plain", 1), ("optimised", 0), ("split", 1)]
)
def test_ranges_hold_at_samples(method: str, seed: int) -> None:
    network, values = loaded(seed)
    gap: dict[str, Any] = {"gap": 1e-2} if method == "split" else {}
    found = fgp_vnn.bounds(network, BOX, method=method, timeout=30, **gap)
    assert (found.lower - 1e-6 <= values.amin(0).numpy()).all()
    assert (values.amax(0).numpy() <= found.upper + 1e-6).all()
    if method == "split":
        assert (found.upper - values.amax(0).numpy() < 0.02).all()
        assert (values.amin(0).numpy() - found.lower < 0.02).all()


def test_the_greatest_value_is_between_its_ends() -> None:
    network, values = loaded(1)
    found = fgp_vnn.maximise(network, BOX, np.array([1.0, -1.0]), gap=1e-2, timeout=30)
    best = float((values[:, 0] - values[:, 1]).max())
    assert found.upper >= best - 1e-6 and found.upper - best < 0.02
    assert found.ended == "tight"


def test_ranges_over_a_ball_hold_at_samples() -> None:
    network, values = loaded(2)
    near = GRID.reshape(-1, 2).norm(dim=-1) <= 0.5
    found = fgp_vnn.bounds(network, fgp_vnn.Ball(np.zeros(2), 0.5, "l2"), timeout=10)
    assert (found.lower - 1e-6 <= values[near].amin(0).numpy()).all()
    assert (values[near].amax(0).numpy() <= found.upper + 1e-6).all()


def test_ranges_of_what_goes_into_a_smooth_layer_hold_at_samples() -> None:
    network, _ = loaded(0)
    points = GRID.reshape(-1, 2).double().clamp(-0.8, 0.8)
    hidden = network.network.preactivations(points)[: len(network.network.layers)]
    for layer, z in enumerate(hidden):
        found = fgp_vnn.bounds(network, BOX, layer=layer, gap=1e-2, timeout=30)
        assert (found.lower - 1e-9 <= z.amin(0).numpy()).all()
        assert (z.amax(0).numpy() <= found.upper + 1e-9).all()
