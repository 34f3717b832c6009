"""Small random networks in normal form, domains around them, and what their tests measure with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.network.model import AffineMap, Combination, Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query
from tests.helpers.extreme_networks import dot
from tests.helpers.met import is_met

KINDS = ("chain", "residual", "degenerate")
DOMAINS = ("box", "l2", "l1", "clipped l2", "clipped l1", "thin box")
WHOLE = (1 << 31) - 1


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(seed: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=seed, dtype=torch.float64)


def random_network(
    seed: int,
    kind: str = "chain",
    *,
    inputs: int = 2,
    widths: Sequence[int] = (4, 3),
    outputs: int = 2,
    scale: float = 1.0,
) -> Network:
    """A network with weights of about `scale`.

    `chain`: each map reads the layer before it. `residual`: maps read the input and all earlier
    layers. `degenerate`: a chain with a zero row, a constant, a duplicated and a negated neuron.
    """
    source = generator(seed)
    sizes = (inputs, *widths)
    maps: list[AffineMap] = []
    for k, size in enumerate((*widths, outputs)):
        sources = tuple(range(k + 1)) if kind == "residual" else (k,)
        weights = [scale * normal(source, size, sizes[s]) / sizes[s] ** 0.5 for s in sources]
        bias = scale * 0.5 * normal(source, size)
        if kind == "degenerate" and k < len(widths):
            _degrade(weights[0], bias)
        maps.append(Dense(sources, tuple(weights), bias))
    return Network(tuple(maps[:-1]), maps[-1], inputs)


def _degrade(weight: Tensor, bias: Tensor) -> None:
    """As far as there are neurons: z_0 = 0, z_1 constant, z_2 = z_3 where wide, -z_3 where not."""
    weight[0], bias[0] = 0, 0
    if len(bias) > 2:
        weight[1] = 0
    if len(bias) > 3:
        weight[2], bias[2] = weight[3], bias[3]
    elif len(bias) > 2:
        weight[2], bias[2] = -weight[0], -bias[0]


def output_rows(network: Network) -> Tensor:
    """Each output from below and from above [1, 2 outputs, outputs]."""
    eye = torch.eye(network.outputs, dtype=network.dtype)
    return torch.cat([eye, -eye]).unsqueeze(0)


def random_domain(seed: int, kind: str = "box", *, inputs: int = 2, size: float = 1.0) -> Domain:
    source = generator(seed + 1000)
    center = normal(source, inputs)
    radii = size * (0.2 + torch.rand(inputs, generator=source, dtype=torch.float64))
    box = Box(center - radii * torch.rand(inputs, generator=source, dtype=torch.float64) * 0.9,
              center + radii * 0.7)  # fmt: skip
    if kind == "box":
        return box
    if kind == "thin box":
        return Box(box.lower, torch.where(torch.arange(inputs) % 2 == 0, box.upper, box.lower))
    ball = (L2Ball if kind.endswith("l2") else L1Ball)(center, size)
    return Clipped(ball, box) if kind.startswith("clipped") else ball


def sample(domain: Domain, count: int = 400, seed: int = 0) -> Tensor:
    """Points of the domain [at least count, inputs]: inside, on its faces and at its centre."""
    box = domain.box()
    inputs = box.lower.shape[-1]
    noise = 2 * torch.rand((count, inputs), generator=generator(seed), dtype=torch.float64) - 1
    noise[1::2] = noise[1::2].sign()
    inside = domain.project(box.center + noise * box.radius)
    extreme = domain.maximiser(normal(generator(seed + 1), count // 4, inputs))
    return torch.cat([domain.center.unsqueeze(0), inside, extreme])


def random_rows(seed: int, outputs: int, *counts: int, strict: bool = False) -> list[Conjunction]:
    """A disjunction with conjunctions of so many random rows each."""
    source = np.random.default_rng(seed)
    return [
        Conjunction(
            source.normal(size=(count, outputs)),
            source.normal(size=count) * 0.5,
            np.full(count, strict),
        )
        for count in counts
    ]


def confirm_in(query: Query) -> Callable[[Tensor], Counterexample | None]:
    """Accepts points of the domain that meet a disjunct, as the network computes in float64."""

    def confirm(points: Tensor) -> Counterexample | None:
        points = points.to(query.domain.center.dtype)
        inside = query.domain.project(points)
        near = (inside - points).abs().amax(-1) <= 1e-6  # as far as float32 may be off
        met = is_met(query, query.network(inside)).any(-1) & near
        if not bool(met.any()):
            return None
        x = inside[met][0]
        y = query.network(x.unsqueeze(0))[0]
        return Counterexample(x.numpy(), y.numpy())

    return confirm


def grid_weights(network: Network, steps: int = 4) -> Network:
    """The same network with weights rounded to multiples of 1/steps: exact ties get likely."""

    def rounded(affine: AffineMap) -> Dense:
        assert isinstance(affine, Dense)
        weights = tuple((w * steps).round() / steps for w in affine.weights)
        return replace(affine, weights=weights, bias=(affine.bias * steps).round() / steps)

    return replace(
        network,
        layers=tuple(rounded(layer) for layer in network.layers),
        output=rounded(network.output),
    )


def defect_of(query: Query) -> float:
    """The greatest difference that the maps admit, carried on by |W|."""
    total: list[Tensor] = [torch.zeros(query.network.inputs, dtype=torch.float64)]
    for affine in query.network.maps:
        spread = affine.spread([total[s] for s in affine.sources])
        total.append(spread if affine.defect is None else spread + affine.defect)
    return float(total[-1].max())


def exact_preactivations(network: Network, x: Sequence[Fraction]) -> list[list[Fraction]]:
    """z_1, ..., z_K and y in rational arithmetic: the network as the real numbers have it."""
    values = [list(x)]
    result = []
    for affine in network.maps:
        z = _exact(affine, values)
        result.append(z)
        values.append([max(v, Fraction(0)) for v in z])
    return result


def _exact(affine: AffineMap, values: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    if isinstance(affine, Combination):
        inner = _exact(affine.inner, values)
        sums = _product(affine.rows, inner)
        return [s + Fraction(b) for s, b in zip(sums, affine.offset.tolist(), strict=True)]
    assert isinstance(affine, Dense)
    total = [Fraction(b) for b in affine.bias.tolist()]
    for source, weight in zip(affine.sources, affine.weights, strict=True):
        part = _product(weight, values[source])
        total = [t + p for t, p in zip(total, part, strict=True)]
    return total


def _product(matrix: Tensor, vector: Sequence[Fraction]) -> list[Fraction]:
    return [dot([Fraction(w) for w in row], vector) for row in matrix.tolist()]


def rationals(point: Tensor) -> list[Fraction]:
    return [Fraction(v) for v in point.tolist()]
