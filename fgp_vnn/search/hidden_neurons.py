"""Tighter bounds of hidden neurons, by the split search run on the neurons themselves.

The goal is a *value*: a hidden neuron's least value is the lowest level of bundles that cover the
domain. Each round splits, for every neuron and side at once, the bundle whose level is lowest.
Neurons whose sign becomes known this way are left out of the network for everything that follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from fgp_vnn.bounds.backward import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once
from fgp_vnn.network.model import Combination, Network
from fgp_vnn.query import Query
from fgp_vnn.search.best_first import Batch, BestFirst, Cover, Goal, Held, Visited, forget
from fgp_vnn.search.bundles import Bundles, Setting, bound, set_out
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.strategy import Strategy

_RECORD = 2 * (8 + 8 + 1)  # bytes of a bundle's slopes, multipliers and signs, while copied
# Takes a layer, neurons of it [m], and the bundles that cover the domain for each of 2 m rows,
# z of the neurons and then -z.
KeepCover = Callable[[int, Tensor, Bundles], None]


def sharpen_layers(
    query: Query,
    bounds: LayerBounds,
    rounds: int,
    budget: Budget,
    strategy: Strategy,
    keep: KeepCover = forget,
) -> LayerBounds:
    """Bounds that are never looser, layer by layer from the second on; as many neurons at a
    time as fit into the memory."""
    lower, upper = ([b.clone() for b in side] for side in (bounds.lower, bounds.upper))
    for k in range(1, len(lower)):
        known = replace(bounds, lower=tuple(lower), upper=tuple(upper))
        neurons = torch.nonzero(known.unstable()[k][0]).flatten()
        for some in torch.split(neurons, _at_once(query, k, rounds, budget)):
            if budget.expired() or not len(some):
                break
            before = known.first(k)
            ascent, candidates = strategy.slopes.bundles, strategy.neurons.candidates
            asked = set_out(_ask_neurons(query, k, some), before, budget, ascent, candidates)
            least, cover = _least(*asked, rounds)
            keep(k, some, cover)
            low, high = least.chunk(2)
            lower[k][0, some] = torch.maximum(lower[k][0, some], low)
            upper[k][0, some] = torch.minimum(upper[k][0, some], -high)
    return replace(bounds, lower=tuple(lower), upper=tuple(upper))


def _at_once(query: Query, k: int, rounds: int, budget: Budget) -> int:
    """Neurons of layer k: both sides of each are bounded, in two halves, and every round leaves
    one more bundle of each side."""
    network = query.network
    record = _RECORD * sum(network.widths[:k])
    waiting = budget.waiting // max(1, 2 * (rounds + 1) * record)
    return max(1, min(waiting, ascents_at_once(network, k, budget.at_once) // 4))


def _ask_neurons(query: Query, k: int, neurons: Tensor) -> Query:
    """The network up to layer k, whose outputs are z_j and then -z_j of the neurons j."""
    network = query.network
    layer = network.layers[k]
    unit = layer.bias.new_zeros(len(neurons), layer.outputs)
    unit = unit.scatter(-1, neurons.unsqueeze(-1), 1)
    rows = torch.cat([unit, -unit])
    output = Combination(layer, rows, torch.zeros_like(rows[:, 0]))
    return replace(
        query,
        network=Network(network.layers[:k], output, network.inputs, network.activations[:k]),
        disjunct=torch.arange(len(rows), device=network.device),
        strict=torch.zeros(len(rows), dtype=torch.bool, device=network.device),
        disjuncts=len(rows),
    )


class Value(Goal):
    """How small the value of each row can be.

    A row's bundles cover the domain, so that the lowest level among them is proved of the row. Of
    each row the lowest bundle is split, unless it is closed: no other raises what is proved.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        rows = setting.rows
        self._closed = rows.new_full((len(rows),), torch.inf)  # lowest levels of closed bundles

    def visit(self, batch: Batch) -> Visited:
        bounded = bound(self.setting, batch.bundles)
        least = bounded.result.least.squeeze(-1)
        level = torch.where(least.isfinite(), least, -torch.inf)  # what overflowed is no bound
        if not self.setting.ascent.storable:
            # What holds in a bundle holds in its halves, also where few steps find less.
            level = torch.maximum(level, batch.level)
        closed = level > 0
        self._close(batch.bundles.disjunct[closed], level[closed])
        return Visited(bounded, level, closed, {})

    def settle(self, visited: Visited, at: Tensor) -> Bundles:
        """A region has no neuron to be split: its level stays as it is."""
        regions = visited.bounded.bundles.at(at)
        self._close(regions.disjunct, visited.level[at])
        return regions

    def take(self, frontier: Frontier, count: int) -> Held:
        """The lowest bundle of each row in which no closed one is as low."""
        waiting = frontier.everything()
        row, level = waiting["disjunct"], waiting["key"]
        lowest = torch.nonzero(level <= self.least(frontier)[row]).flatten()
        first = torch.full_like(self._closed, len(level), dtype=torch.long)
        first = first.scatter_reduce(0, row[lowest], lowest, "amin")
        return frontier.take(first[first < len(level)])

    def least(self, frontier: Frontier) -> Tensor:
        """The lowest level of each row [rows]."""
        if not len(frontier):
            return self._closed
        waiting = frontier.everything()
        return self._closed.scatter_reduce(0, waiting["disjunct"], waiting["key"], "amin")

    def _close(self, row: Tensor, level: Tensor) -> None:
        self._closed = self._closed.scatter_reduce(0, row, level, "amin")


def _least(setting: Setting, root: Bundles, rounds: int) -> tuple[Tensor, Bundles]:
    """Lower bounds of the rows of a setting, and bundles that cover the domain for each of them."""
    goal, cover = Value(setting), Cover()
    search = BestFirst(goal, Frontier(setting.budget.waiting), len(root.signs), cover.keep)
    search.begin(root, {})
    left = iter(range(rounds))
    search.run(lambda: setting.budget.expired() or next(left, None) is None)
    return goal.least(search.frontier), Bundles.joined([*cover.parts, *search.waiting()])
