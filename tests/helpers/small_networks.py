"""Small random fully connected networks, and their balls, for the tests of the searches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Box, Domain, L1Ball, L2Ball
from fgp_vnn.engine.classifier import margins
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from tests.helpers.network_models import Builder


def random_network(widths: Sequence[int], seed: int) -> Network:
    """Layers of these widths, inputs first and outputs last, with float32 weights."""
    generator = torch.Generator().manual_seed(seed)
    maps = []
    for k, (before, after) in enumerate(pairwise(widths)):
        weight = torch.randn(after, before, generator=generator) / before**0.5 * 1.5
        bias = torch.randn(after, generator=generator) / 4
        maps.append(Dense((k,), (weight.double(),), bias.double()))
    return Network(tuple(maps[:-1]), maps[-1], widths[0])


def random_point(inputs: int, seed: int) -> NDArray[np.float64]:
    values: NDArray[np.float64] = (
        np.random.default_rng(seed).uniform(0, 1, inputs).astype(np.float32).astype(np.float64)
    )
    return values


def balls(x: NDArray[np.float64], epsilon: float) -> dict[str, Domain]:
    """One domain of every kind around a point."""
    center = torch.from_numpy(x)
    tight = Box(center - 0.3 * epsilon, center + 2 * epsilon)  # a centre near one corner
    return {
        "l2": L2Ball(center, epsilon),
        "l1": L1Ball(center, 2 * epsilon),
        "linf": Box(center - epsilon / 2, center + epsilon / 2),
        "clipped": Clipped(L2Ball(center, epsilon), tight),
    }


def robustness_query(network: Network, domain: Domain) -> Query:
    """Can another class reach the output of the centre's class?"""
    label = int(network(domain.center.unsqueeze(0)).argmax())
    others = network.outputs - 1
    wide = Network(network.layers, margins(network.output, label), network.inputs)
    return Query(wide, domain, torch.arange(others), torch.zeros(others, dtype=torch.bool), others)


def bounds_of(query: Query) -> LayerBounds:
    return root_bounds(query.network, query.domain, budget=UNLIMITED)


def sample(domain: Domain, count: int, seed: int) -> torch.Tensor:
    """Points of a domain, many of them on its edge; [count, inputs]."""
    generator = torch.Generator().manual_seed(seed)
    box = domain.box()
    noise = 2 * torch.rand(count, len(box.lower), generator=generator, dtype=torch.float64) - 1
    return domain.project(box.center + 2 * noise * box.radius)


def save_onnx(network: Network, path: Path) -> Path:
    """The network as an ONNX file of Gemm and Relu."""
    builder = Builder([1, network.inputs])
    value = "x"
    for k, affine in enumerate(network.maps):
        if not isinstance(affine, Dense):
            raise TypeError("a network of matrices is expected")
        weight = builder.const(affine.weights[0].numpy())
        value = builder.op("Gemm", value, weight, builder.const(affine.bias.numpy()), transB=1)
        if k < len(network.layers):
            value = builder.op("Relu", value)
    return builder.save(path, value)
