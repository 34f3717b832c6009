"""Tighter bounds of the hidden layers over the whole domain, by optimised slopes.

Each unstable neuron gets slopes of its own. Neurons that become stable are later dropped from the
network, so that everything after is both smaller and tighter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from fgp_vnn.base.spread import ALONE, Spread
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.slopes import Rows, ascend
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.model import AffineMap, Network
from fgp_vnn.query import Query
from fgp_vnn.strategy import Ascent, Slopes

# Takes a layer, some of its neurons [m], and for each earlier layer the slopes [2 m, n_k] that gave
# the lower bounds of z, then those of -z.
KeepSlopes = Callable[[int, Tensor, Sequence[Tensor]], None]
Proof = TypeVar("Proof")  # of bounds: slopes, or bundles that cover the domain


def refine_layers(
    query: Query,
    bounds: LayerBounds,
    slopes: Slopes,
    budget: Budget,
    keep: KeepSlopes | None = None,
    spread: Spread = ALONE,
) -> LayerBounds:
    """Tighten the bounds layer by layer from the second on, as many neurons at a time as fit into
    the memory; no bound gets looser."""
    how = _Ascents(query.coarse(), slopes.rows, budget, keep is not None)
    for k in range(1, len(bounds.lower)):
        if budget.expired():
            break
        crossing, known = torch.nonzero(bounds.unstable()[k][0]).flatten(), bounds.first(k)
        before = query.network.inputs + sum(query.network.widths[:k])
        fit = ascents_at_once(query.network, k, budget.at_once)
        rows = min(spread.ways * slopes.entries // max(1, before), fit)
        each = spread.fair(len(crossing), rows // 2)  # two rows for a neuron
        pieces = torch.split(crossing, each) if len(crossing) else ()
        bound = partial(_bound_neurons, query, known, k, how)
        bounds = with_pieces(bounds, k, pieces, spread(bound, pieces), keep)
    return bounds


def with_pieces(
    bounds: LayerBounds,
    k: int,
    pieces: Sequence[Tensor],
    found: Iterable[tuple[Tensor, Proof] | None],
    keep: Callable[[int, Tensor, Proof], None] | None,
) -> LayerBounds:
    """Copy with tighter bounds of layer k, over one domain. For each piece of its neurons [m],
    `found` has proved lower bounds [2 m] of z, then of -z, and their proof, which `keep` receives;
    None once time is up."""
    lower, upper = bounds.lower[k].clone(), bounds.upper[k].clone()
    for neurons, result in zip(pieces, found, strict=True):
        if result is None:
            break
        least, proof = result
        if keep is not None:
            keep(k, neurons, proof)
        low, high = least.chunk(2)
        lower[0, neurons] = torch.maximum(lower[0, neurons], low)
        upper[0, neurons] = torch.minimum(upper[0, neurons], -high)
    return bounds.with_layer(k, lower, upper)


def both_sides(layer: AffineMap, neurons: Tensor) -> Tensor:
    """Rows [2 m, n_k] that give z of the neurons [m] of a layer, then -z."""
    unit = layer.bias.new_zeros(len(neurons), layer.outputs)
    unit = unit.scatter(-1, neurons.unsqueeze(-1), 1)
    return torch.cat([unit, -unit])


class _Ascents(NamedTuple):
    """Options of the gradient ascents."""

    coarse: tuple[Network, Domain] | None
    ascent: Ascent
    budget: Budget
    kept: bool  # whether to return the slopes


def _bound_neurons(
    query: Query, known: LayerBounds, k: int, how: _Ascents, neurons: Tensor
) -> tuple[Tensor, Sequence[Tensor]] | None:
    """Lower bounds [2 m] of z, then of -z, for neurons [m] of layer k, and the slopes of earlier
    layers that give them (empty unless kept); None after the deadline."""
    if how.budget.expired():
        return None
    rows = both_sides(query.network.layers[k], neurons).unsqueeze(0)
    result = ascend(
        Rows(query.network, query.domain, k, rows, known),
        coarse=how.coarse,
        ascent=how.ascent,
        done=lambda least: how.budget.expired(),
    )
    kept = result.multipliers.alpha[:k] if how.kept else ()
    return result.least[0], [slope[0] for slope in kept]
