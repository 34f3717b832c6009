"""Tighter bounds of hidden neurons, by the split search run on the neurons themselves.

The goal is a *value*: a lower bound of z and of -z for every unstable neuron, until its sign is
known. Neurons whose sign becomes known are left out of the network in all later steps; tighter
bounds of the others tighten everything that is bounded through them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.reading import read
from fgp_vnn.base.spread import ALONE, Spread
from fgp_vnn.bounds.cone import inputs_read, neighbours
from fgp_vnn.bounds.hidden import both_sides, with_pieces
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query, ask_values
from fgp_vnn.search.best_first import BestFirst, Cover, keep_nothing
from fgp_vnn.search.bundles import BundleContext, Bundles, context_and_root
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.value import Signs
from fgp_vnn.strategy import Hidden, Strategy
from fgp_vnn.transform.inputs import drop_unread
from fgp_vnn.transform.stable import collapse

_RECORD = 2 * (8 + 8 + 1)  # bytes per neuron of slopes, multipliers and signs, while copied
# Receives a layer, some of its neurons [m], and the bundles that cover the domain for each of 2 m
# rows: z of the neurons, then -z.
KeepCover = Callable[[int, Tensor, Bundles], None]


class Turn(NamedTuple):
    """The work of one turn of sharpening."""

    rounds: int  # splits of each row of a neuron
    number: int = 0  # number of turns before this one

    def waits(self, layer: int, layers: int) -> bool:
        """Whether this turn skips a layer. If there are more than two layers, the second one
        (number 1) is skipped every other turn: the bounds below it never change, and its splits
        start from scratch."""
        return layer == 1 and layers > 2 and self.number % 2 == 1

    def rounds_of(self, layer: int) -> int:
        """Splits of each row in a layer: twice as many in the second one, which is skipped every
        other turn."""
        return 2 * self.rounds if layer == 1 else self.rounds

    def next(self) -> Turn:
        """The turn after this one."""
        return Turn(2 * self.rounds, self.number + 1)


def sharpen_layers(
    query: Query,
    bounds: LayerBounds,
    turn: Turn,
    budget: Budget,
    strategy: Strategy,
    keep: KeepCover = keep_nothing,
    spread: Spread = ALONE,
) -> LayerBounds:
    """Tighten bounds (never loosen them), layer by layer from the second on; as many neurons at a
    time as fit into the memory.

    If covers are not kept, each layer of a dense network is bounded in a network without the
    neurons below it that are stable by then.
    """
    dense = all(isinstance(layer, Dense) for layer in query.network.layers)
    for k in range(1, len(bounds.lower)):
        if turn.waits(k, len(bounds.lower)):
            continue
        rounds = turn.rounds_of(k)
        neurons = torch.nonzero(_worth(query, bounds, k)).flatten()
        each = spread.fair(len(neurons), _at_once(query, k, rounds, budget))
        kept = keep is not keep_nothing
        local = dense and not kept and _cheap(query.network, k, strategy.shrinking.products)
        pieces = _pieces(query, k, neurons, each, strategy.hidden, local=local)
        how = _Splits(rounds, dense, kept, budget, strategy, spread.ways)
        sharpen = partial(_sharpened, query, bounds.first(k), how)
        bounds = with_pieces(bounds, k, pieces, spread(sharpen, pieces), keep)
    return bounds


class _Splits(NamedTuple):
    """How the neurons of a layer are bounded."""

    rounds: int
    dense: bool  # whether stable neurons can be left out
    kept: bool  # whether the covering bundles are kept
    budget: Budget
    strategy: Strategy
    ways: int  # processes that share the budget at the same time


def _sharpened(
    query: Query, before: LayerBounds, how: _Splits, neurons: Tensor
) -> tuple[Tensor, Bundles] | None:
    """Lower bounds [2 m] of z and then of -z for neurons [m] of the layer after those in `before`,
    and the bundles that cover the domain for each row, if kept; None when time is up."""
    if how.budget.expired():
        return None
    strategy, k, network = how.strategy, len(before.lower), query.network
    # The network up to layer k, whose outputs are z_j and then -z_j of the neurons j.
    asked = ask_values(network, query.domain, k, both_sides(network.layers[k], neurons))
    if how.dense and not how.kept:
        asked, before = collapse(asked, before, budget=how.budget, hidden=True)
        asked = drop_unread(asked)
    splits = replace(strategy.neurons, candidates=strategy.hidden.candidates)
    begun = context_and_root(asked, before, how.budget, strategy.slopes.signs, splits)
    return _least(*begun, how)


def _cheap(network: Network, k: int, products: int) -> bool:
    """Whether finding the inputs that the neurons of layer k read takes at most `products`
    products, during which the deadline is not checked."""
    inner = (
        weight.numel()
        for layer in network.layers[: k + 1]
        if isinstance(layer, Dense)
        for source, weight in zip(layer.sources, layer.weights, strict=True)
        if source
    )
    return network.inputs * sum(inner) <= products


def _pieces(
    query: Query, k: int, neurons: Tensor, most: int, numbers: Hidden, *, local: bool
) -> Sequence[Tensor]:
    """The neurons [m] of layer k in parts of at most `most`. With `local`, neighbours that read
    only a part of the input are grouped, so that the network can be cut down to that part."""
    if not len(neurons):
        return ()
    if local:
        reads = inputs_read(query.network, k)[neurons]
        groups = neighbours(reads, min(most, numbers.together), numbers.growth)
        if len(groups) > 1 and not bool(reads.all()):
            return [neurons[group] for group in groups]
    return torch.split(neurons, most)


def _worth(query: Query, bounds: LayerBounds, k: int) -> Tensor:
    """Which neurons [n_k] of a layer are worth splitting: the unstable ones; in the last layer,
    only those whose chord the bound of an output uses."""
    unstable, network = bounds.unstable()[k][0], query.network
    if k + 1 < len(network.layers) or k + 1 not in network.output.sources:
        return unstable
    rows = torch.eye(network.outputs, dtype=network.dtype, device=network.device)
    part = network.output.adjoint(rows)[network.output.sources.index(k + 1)]
    return unstable & (part < 0).any(0)


def _chord_heights(lower: Tensor, upper: Tensor) -> Tensor:
    """The heights of ReLU chords at z = 0: the largest error of their relaxation."""
    heights = -lower.clamp(max=0) * upper.clamp(min=0) / (upper - lower)
    return heights.nan_to_num(0.0, 0.0, 0.0)


def _at_once(query: Query, k: int, rounds: int, budget: Budget) -> int:
    """Number of neurons of layer k to bound at once: both sides of each are bounded, in two
    children, and every round leaves one more bundle per side."""
    network = query.network
    record = _RECORD * sum(network.widths[:k])
    waiting = budget.waiting // max(1, 2 * (rounds + 1) * record)
    return max(1, min(waiting, ascents_at_once(network, k, budget.at_once) // 4))


def _least(context: BundleContext, root: Bundles, how: _Splits) -> tuple[Tensor, Bundles]:
    """Lower bounds of the rows of a context, and the bundles that cover the domain for each row, if
    kept."""
    hidden, rows, network = how.strategy.hidden, len(root.signs), context.query.network
    goal, cover = Signs(context, how.rounds, hidden.one_in), Cover()
    frontier = Frontier(how.budget.waiting)
    fit = ascents_at_once(network, len(network.layers), how.budget.at_once // how.ways)
    keep = cover.keep if how.kept else keep_nothing
    search = BestFirst(goal, frontier, max(rows, min(hidden.batch, fit)), keep)
    search.begin(root, {})
    tried = False  # whether the gain of the first splits has been checked

    def height() -> float:
        low, high = goal.least(frontier).chunk(2)
        return read(_chord_heights(low, -high).sum())[0]

    begun, after = height(), rows * (1 + 2 * max(1, how.rounds // hidden.early))

    def enough() -> bool:
        nonlocal tried
        if how.budget.expired():
            return True
        if tried or search.bundles < after:
            return False
        tried = True
        return height() > (1 - hidden.pays / hidden.early) * begun

    search.run(enough)
    covers = [*cover.parts, *search.waiting()] if how.kept else [root.at(root.disjunct[:0])]
    return goal.least(frontier), Bundles.joined(covers)
