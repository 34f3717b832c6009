"""Draw docs/figures/regions.svg: the regions of a network with two inputs, and a certified ball."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import fgp_vnn

HERE = Path(__file__).parent
POINTS = 500  # a side of the picture
SEED = 3


def network() -> nn.Sequential:
    """Return a classifier with two inputs, two hidden layers and two classes."""
    torch.manual_seed(SEED)
    layers = [nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)]
    model = nn.Sequential(*layers).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    return model


def margin(y: Tensor) -> Tensor:
    """Return how far the first class is ahead [points], from outputs [points, 2]."""
    return y[:, 0] - y[:, 1]


def grid(centre: Tensor, side: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Tensor]:
    """Return both coordinates [POINTS, POINTS] and the inputs [POINTS * POINTS, 2] of a square."""
    line = np.linspace(-side, side, POINTS)
    a, b = np.meshgrid(centre[0].item() + line, centre[1].item() + line)
    return a, b, torch.tensor(np.stack([a.ravel(), b.ravel()], 1))


def patterns(model: nn.Sequential, x: Tensor) -> np.ndarray[Any, Any]:
    """Return a number for the region of each input [points]."""
    hidden = model[0](x)
    second = model[2](torch.relu(hidden))
    signs = torch.cat([hidden > 0, second > 0], 1).long()
    keys = (signs * 2 ** torch.arange(signs.shape[1])).sum(1)
    return np.unique(keys.numpy(), return_inverse=True)[1]


def draw_regions(model: nn.Sequential, centre: Tensor) -> None:
    """Draw the regions around a point, its certified ball and the nearest counterexample."""
    certifier = fgp_vnn.Certifier.of(model.float())
    found = certifier.radius(centre.numpy(), norm="l2", maximum=5.0, gap=0.001)
    model.double()
    assert found.counterexample is not None
    a, b, x = grid(centre, 2.2 * found.upper)
    figure = Figure(figsize=(5, 5))
    axes = figure.add_axes((0, 0, 1, 1))
    with torch.no_grad():
        shades = np.random.default_rng(2).permutation(int(patterns(model, x).max()) + 1)
        axes.pcolormesh(
            a, b, shades[patterns(model, x)].reshape(a.shape), cmap="Pastel1", rasterized=True
        )
        lead = margin(model(x)).reshape(a.shape)
    axes.contour(a, b, lead, levels=[0.0], colors="black", linewidths=2)
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = centre.numpy()[:, None] + found.lower * np.stack([np.cos(turn), np.sin(turn)])
    axes.plot(*circle, color="#0b62a4", linewidth=2)
    axes.plot(*centre.numpy(), "o", color="#0b62a4")
    axes.plot(*found.counterexample.x, "x", color="#b3263a", markersize=11, markeredgewidth=3)
    axes.set_axis_off()
    axes.set_aspect("equal")
    figure.savefig(HERE / "regions.svg", dpi=110, metadata={"Date": None})


if __name__ == "__main__":
    draw_regions(network(), torch.tensor([0.3, -0.2], dtype=torch.float64))
