"""Bounds of all layers: intervals, then linear bounds of the neurons that are still unstable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.spread import ALONE, Spread
from fgp_vnn.bounds.backward import Begun, backward_neurons, descend
from fgp_vnn.bounds.intervals import interval_step
from fgp_vnn.bounds.layers import LayerBounds, unsteady
from fgp_vnn.bounds.patches import PatchPass
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import rows_at_once
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Dense, Network


def root_bounds(
    network: Network,
    domain: Domain,
    *,
    known: LayerBounds | None = None,
    prior: LayerBounds | None = None,
    worth: Sequence[Tensor] | None = None,
    budget: Budget,
    spread: Spread = ALONE,
) -> LayerBounds:
    """Bounds of every layer over the domain: intervals first, then one backward pass for the
    neurons that the intervals leave unstable, as many at a time as fit into the memory.

    `known` are already computed bounds of the first layers, and `prior` are valid bounds of all
    layers to intersect with. If the masks `worth` [n_k] are given, only their neurons get a
    backward pass; none do if there are no masks. Those of a single domain are distributed by
    `spread`. After the deadline, the remaining neurons keep their intervals, and the remaining
    layers get their prior bounds or infinite ones.
    """
    bounds, rounding, most = known or LayerBounds((), ()), None, None
    passes = worth is None or len(worth) > 0
    if prior is not None and passes and prior.lower:
        most = prior.most_unstable()
    for k in range(len(bounds.lower), len(network.layers)):
        if budget.expired():
            return _with_prior(network, bounds, prior)
        lower, upper = interval_step(network, domain, bounds, k)
        lower, upper = (b.reshape(-1, b.shape[-1]) for b in (lower, upper))
        if prior is not None:
            lower = torch.maximum(lower, prior.lower[k])
            upper = torch.minimum(upper, prior.upper[k])
        # Intervals of an operator only use the box around a ball, so they are not exact.
        exact = k == 0 and (isinstance(network.maps[0], Dense) or isinstance(domain, Box))
        if passes and not exact:
            rounding = Rounding(network, domain, bounds, rounding)
            wanted = None if worth is None else worth[k]
            sides = _Sides(lower, upper, wanted, None if most is None else most[k])
            work = _Layer(network, rounding, bounds, k, budget, spread)
            lower, upper = _tighten(work, sides)
        bounds = bounds.followed_by(lower, upper, network.activations[k])
    return bounds


def _with_prior(network: Network, bounds: LayerBounds, prior: LayerBounds | None) -> LayerBounds:
    """The bounds of the first layers, followed by prior or infinite bounds of the others."""
    for k in range(len(bounds.lower), len(network.layers)):
        endless = network.output.bias.new_full((1, network.widths[k]), torch.inf)
        sides = (-endless, endless) if prior is None else (prior.lower[k], prior.upper[k])
        bounds = bounds.followed_by(*sides, network.activations[k])
    return bounds


class _Sides(NamedTuple):
    """A layer's bounds before its backward pass."""

    lower: Tensor  # [batch, n_k]
    upper: Tensor  # [batch, n_k]
    wanted: Tensor | None  # [n_k] the neurons that are worth a pass; None: all
    most: int | None  # upper bound on the number of unstable neurons in a bundle


class _Layer(NamedTuple):
    """A layer whose neurons get backward passes."""

    network: Network
    rounding: Rounding
    bounds: LayerBounds  # of the layers before it
    k: int
    budget: Budget
    spread: Spread


def _tighten(layer: _Layer, sides: _Sides) -> tuple[Tensor, Tensor]:
    """Tighten the bounds of the unstable neurons of each bundle by a backward pass of each."""
    lower, upper, wanted, most = sides
    crossing = unsteady(layer.network.activations[layer.k], lower, upper)  # [batch, n_k]
    if wanted is not None:
        crossing = crossing & wanted
    if len(crossing) == 1:
        chosen = torch.nonzero(crossing[0]).T  # [1, most]
    else:
        if most is None:
            most = int(crossing.sum(-1).max()) if len(crossing) else 0
        # A bundle with fewer unstable neurons than another also gets some stable ones bounded.
        chosen = crossing.to(torch.int8).topk(most, dim=-1).indices  # [batch, most]
    if not chosen.shape[-1] or layer.budget.expired():
        return lower, upper
    pieces: Sequence[Tensor] = [chosen]
    if len(crossing) == 1:
        pieces, found = _by_pieces(layer, chosen[0])
    else:
        found = [_pass_back(layer, chosen)]
    lower, upper = lower.clone(), upper.clone()
    for part, (low, high) in zip(pieces, found, strict=True):
        part, low, high = (t.reshape(len(lower), -1) for t in (part, low, high))
        lower.scatter_(-1, part, torch.maximum(lower.gather(-1, part), low))
        upper.scatter_(-1, part, torch.minimum(upper.gather(-1, part), high))
    return lower, upper


def _by_pieces(
    layer: _Layer, neurons: Tensor
) -> tuple[Sequence[Tensor], Iterable[tuple[Tensor, Tensor]]]:
    """Split neurons [m] of one bundle into pieces and bound each piece, by windows of a convolution
    (patches) where that is faster."""
    spread, patches = layer.spread, _patch_pass(layer)
    budget = replace(layer.budget, memory=layer.budget.memory // spread.ways)
    if patches.pays:
        neurons, work = patches.by_place(neurons), partial(patches.bounds, budget=budget)
    else:
        work = partial(_pass_back, layer._replace(budget=budget))
    pieces = torch.split(neurons, spread.fair(len(neurons), len(neurons)))
    return pieces, spread(work, pieces)


def _pass_back(layer: _Layer, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Proved bounds of neurons [batch, m], or [m] of one bundle; infinite after the deadline."""
    network, rounding, bounds, k, budget, _ = layer
    chosen = chosen.reshape(-1, chosen.shape[-1])
    some = rows_at_once(network, k, 2 * len(chosen), budget.at_once)  # two rows for a neuron
    lines, domain = bounds.lines(), rounding.domain
    found: list[tuple[Tensor, Tensor]] = []
    for part in torch.split(chosen, some, dim=-1):
        if found and budget.expired():
            endless = bounds.lower[0].new_full(part.shape, torch.inf)
            found.append((-endless, endless))
        else:
            found.append(backward_neurons(network, domain, k, part, lines, rounding=rounding))
    low, high = (torch.cat(side, -1) for side in zip(*found, strict=True))
    return low, high


def _patch_pass(layer: _Layer) -> PatchPass:
    network, rounding, bounds, k, *_ = layer
    lines = bounds.lines()

    def rest(source: int, waiting: dict[int, Tensor], constant: Tensor, error: Tensor) -> Tensor:
        begun = Begun(source, waiting, constant, error)
        return descend(network, rounding.domain, begun, lines, None, rounding).least

    return PatchPass(network, k, lines, rounding, rest)
