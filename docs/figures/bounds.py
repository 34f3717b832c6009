"""Draw bundles.svg and caps.svg: linear bounds of a bundle, and the part of a ball left by one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, Domain, L2Ball
from fgp_vnn.network import Dense, Network

HERE = Path(__file__).parent
UNSAFE = 0.05  # part of the ball's area
BLUE, RED, GREY, GREEN = "#0b62a4", "#b3263a", "#777777", "#2b8a3e"


def network(widths: tuple[int, ...], seed: int, offset: float) -> Network:
    """A random network with one output, to which `offset` is added."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    maps = [
        Dense((k,), (draw(n, m) / m**0.5,), 0.5 * draw(n))
        for k, (m, n) in enumerate(pairwise(widths))
    ]
    *hidden, last = maps
    output = Dense(last.sources, last.weights, last.bias + offset)
    return Network(tuple(hidden), output, widths[0])


def lower_line(net: Network, domain: Domain, signs: dict[int, int]) -> tuple[Tensor, float, float]:
    """The linear lower bound of the output over a bundle: its slope [inputs], its value at the
    centre, and its minimum over the domain. `signs` are those of the first layer's neurons."""
    bounds = root_bounds(net, domain, budget=UNLIMITED)
    pattern = [torch.zeros(1, width, dtype=torch.int8) for width in net.widths]
    for neuron, sign in signs.items():
        pattern[0][0, neuron] = sign
    known = bounds.within(pattern)
    passed = backward(net, domain, len(net.layers), torch.eye(1).double()[None], known.lines())
    least = passed.least.reshape(-1)[0]
    return passed.weight.reshape(-1), float(passed.constant.reshape(-1)[0]), float(least)


def interval(low: float, high: float) -> Box:
    """A box of one input."""
    return Box(torch.tensor([low]).double(), torch.tensor([high]).double())


def draw_bundles() -> None:
    """Draw a function of one input, a line below it over all regions, and one for each half."""
    net, box = network((1, 6, 5, 1), 8, 1.05), interval(-1.5, 1.5)
    x = np.linspace(-1.5, 1.5, 601)
    points = torch.from_numpy(x)[:, None]
    y = net(points)[:, 0].numpy()
    first = net.layers[0]
    figure = Figure(figsize=(8, 3))
    left, right = figure.subplots(1, 2, sharey=True)
    for axes in (left, right):
        axes.axhline(0, color=GREY, linewidth=1)
        axes.plot(x, y, color="black", linewidth=2)
        axes.set_xlabel("input")
    left.set_ylabel("output")
    rise = first.linear([torch.ones(1, 1).double()])[0]  # of each neuron of the first layer
    kinks = -(first.bias / rise).numpy()
    slope, value, _ = lower_line(net, box, {})
    left.plot(x, value + float(slope) * x, color=RED)
    left.set_title("one bundle: every neuron open")
    neuron = int(np.argmin(np.abs(kinks)))
    where = float(kinks[neuron])
    right.axvline(where, color=GREY, linestyle=":")
    for sign in (-1, 1):
        rising = float(rise[neuron]) * sign > 0
        low, high = (where, 1.5) if rising else (-1.5, where)
        slope, value, _ = lower_line(net, interval(low, high), {neuron: sign})
        part = np.linspace(low, high, 2)
        centre = (low + high) / 2
        right.plot(part, value + float(slope) * (part - centre), color=GREEN)
    right.set_title("two: one neuron off, or on")
    figure.tight_layout()
    figure.savefig(HERE / "bundles.svg", metadata={"Date": None})


def draw_caps() -> None:
    """Draw a ball, the part where a linear bound allows counterexamples, and those that exist."""
    net, centre = network((2, 10, 8, 1), 22, 0.0), torch.tensor([0.2, 0.1]).double()
    radius = 0.6
    ball = L2Ball(centre, radius)
    slope, value, _ = lower_line(net, ball, {})
    line = np.linspace(-1.15 * radius, 1.15 * radius, 401)
    a, b = np.meshgrid(line, line)
    offsets = torch.from_numpy(np.stack([a.ravel(), b.ravel()], 1))
    y = net(centre + offsets)[:, 0].reshape(a.shape).numpy()
    bound = (value + offsets @ slope).reshape(a.shape).numpy()
    inside = a**2 + b**2 <= radius**2
    shift = np.quantile(y[inside], UNSAFE)
    y, bound = y - shift, bound - shift
    figure = Figure(figsize=(4.2, 4.2))
    axes: Any = figure.add_axes((0, 0, 1, 1))
    cap = np.where(inside & (bound <= 0), 1.0, np.nan)
    unsafe = np.where(inside & (y <= 0), 1.0, np.nan)
    for area, depth in ((cap, 4), (unsafe, 1.3)):
        axes.pcolormesh(a, b, area, cmap="Reds", vmin=0, vmax=depth, rasterized=True)
    axes.contour(a, b, y, levels=[0.0], colors="black", linewidths=2)
    axes.contour(a, b, bound, levels=[0.0], colors=RED, linewidths=1.5)
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(radius * np.cos(turn), radius * np.sin(turn), color=BLUE, linewidth=2)
    axes.plot(0, 0, "o", color=BLUE)
    axes.set_axis_off()
    axes.set_aspect("equal")
    figure.savefig(HERE / "caps.svg", dpi=110, metadata={"Date": None})


if __name__ == "__main__":
    draw_bundles()
    draw_caps()
