"""The same query on the unstable neurons only.

A neuron whose sign is known over the whole domain is linear there: it passes its value on or stops
it. Composing these linear pieces leaves a network of the unstable neurons alone, whose maps read
the input and all earlier unstable layers. It is equal to the old network on the domain, has the
same linear bounds, and is often a hundred times smaller.

A neuron without a path to any output is removed as well.

`linearise` also removes the smooth neurons: each is affine up to the error of its strip, which is
added to the defects of the maps that read it. The result is a ReLU network that stands for all
networks with such errors, including the original: where it cannot meet a disjunct, neither can the
original.

Where z >= l with l just below 0, relu(z) is z up to -l; where z <= u with u just above 0, it is 0
up to u. So a neuron whose sign is known up to rounding counts as stable, with this error as defect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.bounds.backward import add_parts
from fgp_vnn.bounds.cone import seen
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.strips import Strip, strip
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import rows_at_once
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.query import Query

_FORMS = 3  # copies of a matrix: one in each precision, and one while it is built


def collapse(
    query: Query,
    bounds: LayerBounds,
    *,
    budget: Budget,
    left: list[Tensor] | None = None,
    hidden: bool = False,
) -> tuple[Query, LayerBounds]:
    """Remove the stable neurons; returns the old query if the new one would not be smaller, would
    overflow, or would exceed the memory or the time left. `left` is the result of `left_over`, if
    it is known.

    With `hidden`, only the hidden layers have to become smaller: the output map may grow, but with
    many outputs, each bounded by itself, every bound then costs less.
    """
    masks = left_over(query, bounds) if left is None else left
    if budget.expired():
        return query, bounds
    neurons = [torch.nonzero(mask).flatten() for mask in masks]
    return _made_of(query, bounds, neurons, [None] * len(masks), budget, hidden) or (query, bounds)


def linearise(
    query: Query, bounds: LayerBounds, *, budget: Budget
) -> tuple[Query, LayerBounds] | None:
    """Relax the query to a ReLU network of unstable neurons: where this query can be met, so can
    the relaxed one. None if no neuron would be left, or for the reasons given in `collapse`."""
    left, strips = [], list[Strip | None]()
    parts = zip(bounds.activations, bounds.envelopes, bounds.lower, bounds.upper, strict=True)
    for mask, (activation, envelope, low, up) in zip(undecided(bounds), parts, strict=True):
        kept = mask if envelope is None else torch.zeros_like(mask)
        left.append(torch.nonzero(kept).flatten())
        strips.append(None if envelope is None else strip(activation, envelope, low[0], up[0]))
    if not any(len(neurons) for neurons in left):
        return None
    return _made_of(query, bounds, left, strips, budget)


def _made_of(
    query: Query,
    bounds: LayerBounds,
    unstable: list[Tensor],
    strips: list[Strip | None],
    budget: Budget,
    hidden: bool = False,
) -> tuple[Query, LayerBounds] | None:
    """The query on the neurons `unstable` [m] of each layer; None for the reasons given in
    `collapse`."""
    network, signs = query.network, _signs(bounds)
    kept = [k for k, neurons in enumerate(unstable) if len(neurons)]
    if not any(len(left) < width for left, width in zip(unstable, network.widths, strict=True)):
        return None
    size = _size(network, unstable, kept, network.outputs)
    if hidden:
        smaller = _size(network, unstable, kept, 0) < _entries(network.layers)
    else:
        smaller = size < _entries(network.maps)
    if not smaller or _FORMS * 8 * size > budget.matrices:
        return None
    rounding = Rounding(network, query.domain, bounds)
    pieces = _Pieces(query, signs, strips, rounding, unstable, kept, budget)
    every = torch.arange(network.outputs, device=network.device)
    wanted = [*((k, unstable[k]) for k in kept), (len(network.layers), every)]
    composed: list[Dense] = []
    for target, outputs in wanted:
        small = _compose(pieces, target, outputs)
        if small is None or not all(bool(part.isfinite().all()) for part in _numbers(small)):
            return None
        composed.append(small)
    lower = tuple(bounds.lower[k][:, unstable[k]] for k in kept)
    upper = tuple(bounds.upper[k][:, unstable[k]] for k in kept)
    activations = tuple(network.activations[k] for k in kept)
    network = Network(tuple(composed[:-1]), composed[-1], network.inputs, activations)
    return replace(query, network=network), LayerBounds(lower, upper, activations)


def left_over(query: Query, bounds: LayerBounds) -> list[Tensor]:
    """Masks [n_k] of the neurons of each layer that `collapse` keeps: undecided, and with a path to
    an output."""
    if not query.network.piecewise_linear:
        return undecided(bounds)
    return [mask & ways for mask, ways in zip(undecided(bounds), seen(query.network), strict=True)]


def undecided(bounds: LayerBounds) -> list[Tensor]:
    """Masks [n_k] of the undecided neurons of each layer: ReLUs whose sign is open by more than
    rounding, and all neurons of other activations."""
    return [~(sign.on | sign.off) for sign in _signs(bounds)]


def _signs(bounds: LayerBounds) -> list[_Signs]:
    triples = zip(bounds.activations, bounds.lower, bounds.upper, strict=True)
    return [_Signs(lo[0], up[0], activation is RELU) for activation, lo, up in triples]


class _Signs:
    """Which neurons are on or off, with a bound on |relu(z) - z| if on and on |relu(z)| if off."""

    def __init__(self, lower: Tensor, upper: Tensor, is_relu: bool) -> None:
        if not is_relu:
            self.on = self.off = torch.zeros_like(lower, dtype=torch.bool)
            self.defect = torch.zeros_like(lower)
            return
        size_of, none = unit(lower.dtype), torch.zeros_like(lower)
        nearly = 0.1 * size_of.eps**0.5
        known = lower.isfinite() & upper.isfinite()
        # The bounds of a neuron without weights differ only by underflow.
        room = nearly * upper.clamp(min=0) + size_of.negligible
        self.on = lower >= -torch.where(known, room, none)
        slack = torch.where(known, nearly * (-lower).clamp(min=0), none)
        self.off = ~self.on & (upper <= slack)
        self.defect = torch.where(self.on, (-lower).clamp(min=0), none)
        self.defect = torch.where(self.off, upper.clamp(min=0), self.defect)


class _Pieces(NamedTuple):
    """The parts from which `_compose` builds a map."""

    query: Query
    signs: list[_Signs]
    strips: list[Strip | None]  # of smooth layers that are removed
    rounding: Rounding
    unstable: list[Tensor]
    kept: list[int]  # the layers with unstable neurons
    budget: Budget


def _compose(pieces: _Pieces, target: int, outputs: Tensor) -> Dense | None:
    """Some outputs of map number `target` as a map of x and the earlier unstable neurons; None if
    time is up or `_compose_rows` fails."""
    some = rows_at_once(pieces.query.network, target, 1, pieces.budget.matrices)
    parts: list[Dense] = []
    for rows in torch.split(outputs, some):
        if pieces.budget.expired():
            return None
        part = _compose_rows(pieces, target, rows)
        if part is None:
            return None
        parts.append(part)
    if len(parts) == 1:
        return parts[0]
    weights = tuple(torch.cat(side) for side in zip(*(p.weights for p in parts), strict=True))
    defect = torch.cat([part.defect for part in parts if part.defect is not None])
    return Dense(parts[0].sources, weights, torch.cat([p.bias for p in parts]), defect)


def _compose_rows(pieces: _Pieces, target: int, outputs: Tensor) -> Dense | None:
    """`_compose` for a batch of outputs that fits into memory; None if an output reads an undecided
    neuron that is not kept."""
    query, signs, strips, rounding, unstable, kept = pieces[:6]
    maps = query.network.maps
    constant = maps[target].bias[outputs]
    defect = rounding.of_neurons(target, outputs.unsqueeze(0))
    rows = (part.squeeze(0) for part in maps[target].rows_at(outputs.unsqueeze(0)))
    waiting = dict(zip(maps[target].sources, rows, strict=True))
    sources: list[int] = []
    weights: list[Tensor] = []
    for k in range(target, 0, -1):
        coefficient = waiting.pop(k, None)
        if coefficient is None:
            continue
        activation, own = query.network.activations[k - 1], strips[k - 1]
        if activation is not RELU and own is None:
            sources.append(kept.index(k - 1) + 1)
            weights.append(coefficient)
            continue
        size = coefficient.abs()
        defect = rounding.of_layer(k, size.unsqueeze(0), onto=defect)
        if own is not None:
            through = activation.gather(_tiled(coefficient, own) * own.slope, maps[k - 1].outputs)
            constant = constant + coefficient @ own.centre
            defect = defect + _lost(size, own, target)
        else:
            dropped = coefficient[:, ~(signs[k - 1].on | signs[k - 1].off)].count_nonzero()
            if dropped > coefficient[:, unstable[k - 1]].count_nonzero():
                return None  # a neuron that was taken to have no path to an output
            if len(unstable[k - 1]):
                sources.append(kept.index(k - 1) + 1)
                weights.append(coefficient[:, unstable[k - 1]].contiguous())
            through = coefficient * signs[k - 1].on
            defect = defect + size @ signs[k - 1].defect
        constant = constant + through @ maps[k - 1].bias
        add_parts(waiting, maps[k - 1].sources, maps[k - 1].adjoint(through))
    start = waiting.get(0, constant.new_zeros(len(constant), query.network.inputs))
    order = (0, *reversed(sources))
    # The length of the longest sum in a defect.
    width = max(*query.network.widths, *query.network.value_widths, 0)
    defect = unit(defect.dtype).grow(width + 2 * target + 4) * defect.reshape(-1)
    return Dense(order, (start, *reversed(weights)), constant, defect)


def _tiled(coefficient: Tensor, own: Strip) -> Tensor:
    """Coefficients [rows, n] of values, repeated for each of their operands."""
    return torch.cat([coefficient] * (len(own.slope) // len(own.half)), -1)


def _lost(size: Tensor, own: Strip, target: int) -> Tensor:
    """Error [rows] from the strips of a layer, for coefficients of these magnitudes [rows, n]: the
    half-width of each strip, and the rounding of the sum of the centres, with two sums for each
    layer and three more."""
    size_of, count = unit(size.dtype), len(own.half)
    none = ~own.half.isfinite()
    half = torch.where(none, 0.0, own.half)
    each = half + size_of.share(count + 2 * target + 8) * own.centre.abs()
    found = size @ each + size_of.underflow * 4 * count
    return torch.where((size[:, none] != 0).any(-1), torch.inf, found)


def _numbers(small: Dense) -> tuple[Tensor, ...]:
    """All numbers of a composed map."""
    return (*small.weights, small.bias, *([] if small.defect is None else [small.defect]))


def _size(network: Network, unstable: list[Tensor], kept: list[int], outputs: int) -> int:
    """Number of matrix entries of the collapsed network with this many outputs."""
    values = [*network.value_widths, 0]
    before = network.inputs
    total = 0
    for k in (*kept, len(network.layers)):
        count = outputs if k == len(network.layers) else len(unstable[k])
        total += count * before
        smooth = k < len(network.layers) and network.activations[k] is not RELU
        before += values[k] if smooth else count
    return total


def _entries(maps: Iterable[AffineMap]) -> float:
    """Number of matrix entries of dense maps; infinite if a map is an operator."""
    total = 0.0
    for affine in maps:
        inner = getattr(affine, "inner", affine)
        if not isinstance(inner, Dense):
            return float("inf")
        total += sum(weight.numel() for weight in inner.weights)
    return total
