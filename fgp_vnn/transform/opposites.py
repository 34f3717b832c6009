"""Merging of neurons that are equal up to the sign: z_i = -z_j or z_i = z_j.

relu(z) = z + relu(-z), so a relu(z_i) + b relu(z_j) with z_i = -z_j is -a z_j + (a + b) relu(z_j):
a linear term and one neuron in place of two. Where a + b = 0, only the linear term is left. A
relaxation that bounds the two neurons separately cannot find this.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.bounds.backward import add_parts
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.maps.matrix import most_in_a_row
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query


class _Pairs(NamedTuple):
    """Neurons i of a layer that are equal to a neuron j up to the sign."""

    gone: Tensor  # [pairs] i
    kept: Tensor  # [pairs] j
    sign: Tensor  # [pairs] +1 where z_i = z_j, -1 where z_i = -z_j


def merge_opposites(
    query: Query, bounds: LayerBounds, rounded_away: float
) -> tuple[Query, LayerBounds] | None:
    """The query with one neuron in place of each such pair; None if there is no pair.

    Only matrices are examined, and rows match only if they agree in every digit. Where |a + b| is
    at most `rounded_away` times the terms of both, it counts as rounding error of 0 and goes to the
    defect.
    """
    found = False
    for k in range(len(query.network.layers)):
        pairs = _pairs(query.network, k)
        if pairs is not None:
            query, bounds = _merge(query, bounds, k, pairs, rounded_away)
            found = True
    return (query, bounds) if found else None


def _pairs(network: Network, k: int) -> _Pairs | None:
    layer = network.layers[k]
    if network.activations[k] is not RELU:
        return None
    if not all(isinstance(affine, Dense) for affine in network.maps[k:] if _reads(affine, k)):
        return None
    if not isinstance(layer, Dense) or not bool(layer.bias.abs().sort().values.diff().eq(0).any()):
        return None  # equal rows have the same bias
    rows = torch.cat([*layer.weights, layer.bias.unsqueeze(-1)], -1)
    first = (rows != 0).to(torch.int8).argmax(-1, keepdim=True)
    sign = rows.gather(-1, first).squeeze(-1).sign()
    leader = _first_equal(rows * sign.unsqueeze(-1))
    order = torch.arange(len(rows), device=rows.device)
    gone = torch.nonzero(leader < order).flatten()
    if not len(gone):
        return None
    return _Pairs(gone, leader[gone], sign[gone] * sign[leader[gone]])


def _first_equal(rows: Tensor) -> Tensor:
    """For each row [n, m], the index of the first row equal to it.

    Rows are sorted by a weighted sum, which is the same for equal rows, and neighbours are compared
    in full. A different row with the same sum can hide a pair, but never create one.
    """
    mix = torch.linspace(1, 2, rows.shape[-1], dtype=rows.dtype, device=rows.device)
    order = (rows * mix).sum(-1).argsort(stable=True)
    same = (rows[order[1:]] == rows[order[:-1]]).all(-1)
    group = torch.cat([same.new_zeros(1), ~same]).cumsum(0)
    first = torch.full_like(order, len(rows)).scatter_reduce(0, group, order, "amin")
    return torch.empty_like(order).scatter(0, order, first[group])


def _reads(affine: object, k: int) -> bool:
    return k + 1 in getattr(affine, "sources", ())


def _merge(
    query: Query, bounds: LayerBounds, k: int, pairs: _Pairs, rounded_away: float
) -> tuple[Query, LayerBounds]:
    network = query.network
    layer = network.layers[k]
    if not isinstance(layer, Dense):
        raise AssertionError("pairs are found in matrices only")
    most = torch.maximum(-bounds.lower[k], bounds.upper[k])[0].clamp(min=0)
    maps = list(network.maps)
    stays = torch.zeros(layer.outputs, dtype=torch.bool, device=network.device)
    for t, affine in enumerate(maps):
        if isinstance(affine, Dense) and _reads(affine, k):
            maps[t] = merged = _without(affine, layer, k, pairs, most, rounded_away)
            stays |= (merged.weights[merged.sources.index(k + 1)] != 0).any(0)
    stays[pairs.gone] = False
    if not bool(stays.any()):
        stays[pairs.kept[:1]] = True  # a layer has at least one neuron
    rest = torch.nonzero(stays).flatten()
    maps[k] = layer.select(rest)
    maps = [_columns(a, k, rest) if isinstance(a, Dense) and _reads(a, k) else a for a in maps]
    small = replace(network, layers=tuple(maps[:-1]), output=maps[-1])
    sides = bounds.lower[k][:, rest], bounds.upper[k][:, rest]
    return replace(query, network=small), bounds.with_layer(k, *sides)


def _without(
    affine: Dense, layer: Dense, k: int, pairs: _Pairs, most: Tensor, rounded_away: float
) -> Dense:
    """The map with the weights of the removed neurons moved to the kept ones.

    Rows that are equal digit by digit stand for values that are equal up to the errors of both
    rows. What rounding has lost in them is counted by their terms, and |a| times their defects go
    to the map's own defect. So does a remainder that is dropped, times the bound `most` on |z|.
    """
    weights, terms, offset = _parts(affine)
    _, own, own_offset = _parts(layer)
    moved, size = weights[k + 1][:, pairs.gone], terms[k + 1][:, pairs.gone]  # [outputs, pairs]
    through = torch.where(pairs.sign < 0, -moved, torch.zeros_like(moved))
    add_parts(weights, layer.sources, [through @ part[pairs.kept] for part in layer.weights])
    both = partial(_of_both, size, pairs, exact=layer.terms is None)
    add_parts(terms, layer.sources, [both(own[source]) for source in layer.sources])
    weights[k + 1] = weights[k + 1].index_add(1, pairs.kept, moved)
    terms[k + 1] = terms[k + 1].index_add(1, pairs.kept, size)
    offset = offset + both(own_offset)
    defect = torch.zeros_like(offset) if affine.defect is None else affine.defect
    size_of, count, width = unit(offset.dtype), len(pairs.gone), most.shape[-1]
    rounded = affine.rounded + layer.rounded + most_in_a_row(moved) + 4
    if layer.defect is not None:
        each = layer.defect[pairs.gone] + 2 * layer.defect[pairs.kept]
        defect = defect + (size + size_of.underflow) @ (each + size_of.underflow)
    left = weights[k + 1].abs() <= rounded_away * terms[k + 1]
    lost = 2 * count * size_of.underflow
    gone = weights[k + 1].abs() + size_of.share(rounded) * terms[k + 1] + lost
    defect = defect + torch.where(left, gone, 0.0) @ most
    defect = size_of.grow(count + width + 8) * defect + 4 * (count + width) * size_of.underflow
    weights[k + 1] = torch.where(left, 0.0, weights[k + 1])
    terms[k + 1] = torch.where(left, 0.0, terms[k + 1])
    # `grain` adds an entry's underflow error, of any size, to its terms.
    order = tuple(sorted(weights))
    largest = max(float(part.max()) for part in (size, *own.values(), own_offset))
    grain = 4 * (count + 1) * (1 + 2 * largest) * size_of.underflow / size_of.eps
    return Dense(
        order,
        tuple(weights[s] for s in order),
        affine.bias + through @ layer.bias[pairs.kept],
        defect,
        (*(terms[s] + grain for s in order), offset + grain),
        rounded,
    )


def _of_both(moved: Tensor, pairs: _Pairs, terms: Tensor, exact: bool) -> Tensor:
    """The terms [outputs, ...] that rows of pairs add, given the terms of a layer's rows and those
    [outputs, pairs] of the weights moved: those of the kept rows. If rows were rounded, two that
    agree may have lost different parts: kept rows count once more, and removed ones too."""
    kept = moved @ terms[pairs.kept]
    return kept if exact else 2 * kept + moved @ terms[pairs.gone]


def _parts(affine: Dense) -> tuple[dict[int, Tensor], dict[int, Tensor], Tensor]:
    """Weights by source, magnitudes of their terms by source, and magnitudes of the bias terms."""
    sizes = affine.terms or (*(w.abs() for w in affine.weights), affine.bias.abs())
    weights = dict(zip(affine.sources, affine.weights, strict=True))
    return weights, dict(zip(affine.sources, sizes, strict=False)), sizes[-1]


def _columns(affine: Dense, k: int, rest: Tensor) -> Dense:
    """The map that reads only the neurons `rest` of layer k."""
    at = affine.sources.index(k + 1)
    weights = list(affine.weights)
    weights[at] = weights[at][:, rest].contiguous()
    terms = None if affine.terms is None else list(affine.terms)
    if terms is not None:
        terms[at] = terms[at][:, rest].contiguous()
    return replace(affine, weights=tuple(weights), terms=None if terms is None else tuple(terms))
