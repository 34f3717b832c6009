"""Networks that end in a function that keeps the order of their outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fgp_vnn

ENDS = {"sigmoid": nn.Sigmoid(), "tanh": nn.Tanh()}


def network(outputs: int, seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, outputs))


def identity() -> nn.Linear:
    """The network y = x of one input."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.ones_(layer.weight)
    return layer


@pytest.mark.parametrize("engine", ["auto", "walk", "split"])
@pytest.mark.parametrize(("end", "outputs"), [("sigmoid", 1), ("tanh", 3)])
def test_what_keeps_the_order_of_the_outputs_changes_no_radius(
    end: str, outputs: int, engine: str
) -> None:
    x = np.array([0.1, 0.2, 0.3], np.float32)
    net = network(outputs, outputs)
    plain: Any = fgp_vnn.radius(net, x, maximum=5.0, gap=1e-3, engine=engine)
    certifier = fgp_vnn.Certifier.of(nn.Sequential(*net, ENDS[end]), engine=engine)
    ended = certifier.radius(x, maximum=5.0, gap=1e-3)
    assert certifier.network.piecewise_linear
    assert (plain.label, plain.ended) == (ended.label, ended.ended)
    assert ended.lower <= plain.upper and plain.lower <= ended.upper


def test_one_half_behind_a_sigmoid_is_what_separates_two_classes() -> None:
    # y = sigmoid(x): class 1 where x > 0.
    net = nn.Sequential(identity(), nn.Sigmoid())
    for x, label in ((0.25, 1), (-0.25, 0)):
        near: Any = fgp_vnn.certify(net, [x], epsilon=0.2499)
        far: Any = fgp_vnn.certify(net, [x], epsilon=0.2501)
        assert (near.status, near.label) == ("robust", label) and far.status == "not_robust"
        assert (
            float(far.counterexample.y[1]) >= 0.5 if label == 0 else far.counterexample.y[1] <= 0.5
        )


def test_a_scaled_or_shifted_sigmoid_is_kept() -> None:
    class Shifted(nn.Module):
        def forward(self, z: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(z) - 0.9

    net = nn.Sequential(identity(), Shifted())
    # Class 1 where sigmoid(x) > 0.9, so above log 9 = 2.197.
    below: Any = fgp_vnn.certify(net, [2.0], epsilon=0.19)
    above: Any = fgp_vnn.certify(net, [2.0], epsilon=0.21)
    assert (below.status, below.label, above.status) == ("robust", 0, "not_robust")
