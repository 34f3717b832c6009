"""Random networks with all activations and products, and what dense sampling says of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import RELU, Activation
from fgp_vnn.network.activations.product import Product
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from tests.helpers.activation_cases import curves

_USUAL = (0.3, 0.05, -0.02, -0.3)  # how far the least sampled value is above 0, of their spread
_DESCENT = 30  # steps
_NEEDS_POSITIVE = {"Log", "Sqrt", "Pow -0.5", "Pow 1.5", "Reciprocal"}
_CORNERS = 64


@dataclass(frozen=True)
class SmoothCase:
    """A query with one row, g <= 0, and the least value of g that sampling has found."""

    query: Query
    seen: float
    names: tuple[str, ...]
    points: Tensor  # [points, inputs] the sample


def smooth_network(number: int, *, softmax: bool = False) -> tuple[Network, Box, tuple[str, ...]]:
    """A network of two to four layers on a small box; products in about half of them, and a
    softmax at the end of the hidden layers if that is asked for."""
    random = torch.Generator().manual_seed(number)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def whole(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=random))

    table = {**curves(), "Relu": RELU}
    names = sorted(table)
    inputs = whole(1, 3)
    scale = 10.0 ** (0.5 * float(draw(1)))
    center, radius = scale * draw(inputs), scale * draw(inputs).abs()
    box = Box(center - radius, center + radius)
    widths, layers, chosen, kinds = [inputs], [], [], list[Activation]()
    sample = box.lower + (box.upper - box.lower) * torch.rand(
        200, inputs, generator=random, dtype=torch.float64
    )
    values = [sample]
    for _ in range(whole(1, 4)):
        count = whole(2, 5)
        sources = sorted({len(values) - 1, whole(0, len(values) - 1)})
        weights = tuple(draw(count, widths[s]) / widths[s] ** 0.5 for s in sources)
        z = sum(values[s] @ w.T for s, w in zip(sources, weights, strict=True))
        # Results of a size at which functions bend, and positive ones where that is needed.
        size = z.abs().amax(0).clamp(min=1e-6) / (0.5 + 3 * torch.rand(count, generator=random))
        weights = tuple(w / size.unsqueeze(-1) for w in weights)
        z = z / size
        if whole(0, 3) == 0:
            name, left = "Product", torch.tensor([whole(0, count - 1) for _ in range(4)])
            activation: Activation = Product(left, torch.randperm(4, generator=random) % count)
            bias = draw(count)
        else:
            name = names[whole(0, len(names) - 1)]
            activation, bias = table[name], draw(count)
            if name in _NEEDS_POSITIVE:
                bias = -(z.amin(0)) * 1.5 + 0.5
        layers.append(Dense(tuple(sources), weights, bias))
        kinds.append(activation)
        chosen.append(name)
        values.append(activation.value(z + bias))
        if not bool((values[-1].abs() < 1e30).all()):  # overflow bounds nothing
            kinds[-1], chosen[-1] = RELU, "Relu"
            values[-1] = RELU.value(z + bias)
        widths.append(values[-1].shape[-1])
    if softmax:
        soft = _softmax(len(values) - 1, widths[-1])
        layers, kinds = [*layers, *soft], [*kinds, curves()["Exp"], curves()["Reciprocal"]]
        chosen.append("Softmax")
        widths.append(widths[-1])
    last = Dense((len(layers),), (draw(1, widths[-1]),), draw(1))
    network = Network(tuple(layers), last, inputs, tuple(kinds))
    return network, box, tuple(chosen)


def _softmax(source: int, width: int) -> tuple[Dense, Dense]:
    """The maps of 1 / sum_j exp(a_j - a_i), as a file's softmax is read."""
    eye = torch.eye(width, dtype=torch.float64)
    pairs = (eye.unsqueeze(0) - eye.unsqueeze(1)).flatten(0, 1)  # i and then j
    sums = eye.repeat_interleave(width, 1)
    zero = torch.zeros(width * width, dtype=torch.float64)
    first = Dense((source,), (pairs,), zero)
    return first, Dense((source + 1,), (sums,), zero[:width])


def sampled(network: Network, box: Box, count: int, seed: int) -> Tensor:
    """Inputs [points, inputs] of a box, at random and at its corners."""
    random = torch.Generator().manual_seed(seed)
    share = torch.rand(count, network.inputs, generator=random, dtype=torch.float64)
    share[:_CORNERS] = share[:_CORNERS].round()
    points = box.lower + (box.upper - box.lower) * share
    return torch.minimum(torch.maximum(points, box.lower), box.upper)


def lowered(network: Network, box: Box, points: Tensor) -> Tensor:
    """Inputs [points, inputs] of the box with a lower output, by gradients with falling steps, or
    at random where there are none."""
    random = torch.Generator().manual_seed(0)
    side, best = box.upper - box.lower, points.clone()
    least = network(best)[:, 0]
    step = 0.1
    for _ in range(_DESCENT):
        moving = best.clone().requires_grad_()
        value = network(moving)[:, 0].sum() + 0 * moving.sum()  # of steps alone no gradient is left
        (slope,) = torch.autograd.grad(value, moving)
        aside = torch.randn(best.shape, generator=random, dtype=best.dtype)
        trial = best - step * side * torch.where(
            slope.isfinite() & (slope != 0), slope.sign(), aside
        )
        trial = torch.minimum(torch.maximum(trial, box.lower), box.upper)
        value = network(trial)[:, 0]
        better = value < least
        best = torch.where(better.unsqueeze(-1), trial, best)
        least = torch.where(better, value, least)
        step *= 0.7
    return best


def smooth_case(
    number: int, count: int = 4000, *, planted: tuple[float, ...] = (), softmax: bool = False
) -> SmoothCase:
    """A query whose least sampled value is a little above or below 0: by how much of the spread
    of all values is `planted`, one number after the other, and gradients have then lowered it."""
    network, box, names = smooth_network(number, softmax=softmax)
    points = sampled(network, box, count, number)
    if planted:
        y = network(points)[:, 0].nan_to_num(torch.inf)
        points = torch.cat([points, lowered(network, box, points[y.argsort()[:8]])])
    y = network(points)[:, 0]
    y = y[y.isfinite()]
    least, spread = float(y.min()), float(y.max() - y.min())
    shifts = planted or _USUAL
    shift = shifts[number % len(shifts)] * max(spread, 1e-3)
    output = network.output
    assert isinstance(output, Dense)
    raised = Dense(output.sources, output.weights, output.bias - least + shift)
    network = Network(network.layers, raised, network.inputs, network.activations)
    zero = torch.zeros(1, dtype=torch.long)
    query = Query(network, box, zero, torch.zeros(1, dtype=torch.bool), 1)
    seen = network(points)[:, 0]
    return SmoothCase(query, float(seen[seen.isfinite()].min()), names, points)
