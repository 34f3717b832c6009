"""Tighter bounds of hidden neurons, by the split search run on the neurons themselves.

A hidden neuron's least value is the least of its bounds over bundles that cover the domain. Each
round splits, for every neuron and side at once, the bundle whose bound is lowest. Neurons whose
sign becomes known this way are left out of the network for everything that follows.
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
from fgp_vnn.search.bundles import Bundles, Splitting, bound, choose, halves, set_out

_RECORD = 2 * (8 + 8 + 1)  # bytes of a bundle's slopes, multipliers and signs, while copied
# Takes a layer, neurons of it [m], and the bundles that cover the domain for each of 2 m rows,
# z of the neurons and then -z.
KeepCover = Callable[[int, Tensor, Bundles], None]


def sharpen_layers(
    query: Query,
    bounds: LayerBounds,
    rounds: int,
    budget: Budget,
    splitting: Splitting,
    keep: KeepCover | None = None,
) -> LayerBounds:
    """Bounds that are at least as tight, layer by layer from the second on; as many neurons at a
    time as fit into the memory."""
    lower, upper = ([b.clone() for b in side] for side in (bounds.lower, bounds.upper))
    for k in range(1, len(lower)):
        known = LayerBounds(tuple(lower), tuple(upper))
        neurons = torch.nonzero(known.unstable()[k][0]).flatten()
        for some in torch.split(neurons, _at_once(query, k, rounds, budget)):
            if budget.expired() or not len(some):
                break
            asked = _ask_neurons(query, k, some)
            records = _sharpen(asked, known, rounds, budget, splitting)
            if keep is not None:
                keep(k, some, records.bundles)
            low, high = records.least(asked.disjuncts).chunk(2)
            # What overflowed to NaN is no bound, and fmax and fmin pass it over.
            lower[k][0, some] = torch.fmax(lower[k][0, some], low)
            upper[k][0, some] = torch.fmin(upper[k][0, some], -high)
    return LayerBounds(tuple(lower), tuple(upper))


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
        network=Network(network.layers[:k], output, network.inputs),
        disjunct=torch.arange(len(rows), device=network.device),
        strict=torch.zeros(len(rows), dtype=torch.bool, device=network.device),
        disjuncts=len(rows),
    )


def _sharpen(
    query: Query, bounds: LayerBounds, rounds: int, budget: Budget, splitting: Splitting
) -> _Records:
    """Bundles that cover the domain for each of the query's outputs."""
    depth = len(query.network.layers)
    before = LayerBounds(bounds.lower[:depth], bounds.upper[:depth])
    setting, root = set_out(query, before, budget, splitting)
    bounded = bound(setting, root)
    records = _Records(root.at(root.disjunct[:0]), query.network.dtype)
    records.add(
        bounded.bundles,
        bounded.result.least.squeeze(-1),
        choose(setting, bounded, root.disjunct),
        bounded.crossing.any(-1),
    )
    for _ in range(rounds):
        worst = records.worst(query.disjuncts)
        if not len(worst) or budget.expired():
            break
        parents, neuron, before_split = records.take(worst)
        bounded = bound(setting, halves(parents, neuron))
        every = torch.arange(len(bounded.bundles.signs), device=worst.device)
        least = bounded.result.least.squeeze(-1)
        if not splitting.ascent.storable:
            # What holds in a bundle holds in its halves, also where few steps find less.
            least = torch.maximum(least, before_split.repeat(2))
        records.add(
            bounded.bundles,
            least,
            choose(setting, bounded, every),
            bounded.crossing.any(-1),
        )
    return records


class _Records:
    """The bundles that cover the domain for each row, with their bounds."""

    def __init__(self, none: Bundles, dtype: torch.dtype) -> None:
        self._bundles = none
        device = none.signs.device
        self._bound = torch.zeros(0, dtype=dtype, device=device)
        self._neuron = torch.zeros(0, dtype=torch.long, device=device)
        self._open = torch.zeros(0, dtype=torch.bool, device=device)

    @property
    def bundles(self) -> Bundles:
        return self._bundles

    def add(self, bundles: Bundles, bound: Tensor, neuron: Tensor, splits: Tensor) -> None:
        """Put bundles in; those above 0 or with nothing to split stay as they are."""
        pairs = zip(self._bundles.parts(), bundles.parts(), strict=True)
        self._bundles = Bundles(*(torch.cat(pair) for pair in pairs))
        self._bound = torch.cat([self._bound, bound])
        self._neuron = torch.cat([self._neuron, neuron])
        self._open = torch.cat([self._open, splits & (bound <= 0)])

    def worst(self, rows: int) -> Tensor:
        """The lowest bundle of each row that is worth splitting: if it can be, and no other
        bundle of the row keeps the row's bound where it is."""
        lowest = self.least(rows)[self._bundles.disjunct]
        chosen = torch.nonzero(self._open & (self._bound <= lowest)).flatten()
        row = self._bundles.disjunct[chosen]
        first = torch.full((rows,), len(self._bound), device=row.device)
        first = first.scatter_reduce(0, row, chosen, "amin")
        return first[first < len(self._bound)]

    def take(self, index: Tensor) -> tuple[Bundles, Tensor, Tensor]:
        """Remove bundles, to be replaced by their halves; also their neurons and bounds."""
        taken = self._bundles.at(index), self._neuron[index], self._bound[index]
        kept = torch.ones(len(self._bound), dtype=torch.bool, device=index.device)
        kept[index] = False
        rest = torch.nonzero(kept).flatten()
        self._bundles = self._bundles.at(rest)
        self._bound, self._neuron = self._bound[rest], self._neuron[rest]
        self._open = self._open[rest]
        return taken

    def least(self, rows: int) -> Tensor:
        """The lowest bound of each row [rows]."""
        start = torch.full((rows,), torch.inf, dtype=self._bound.dtype, device=self._bound.device)
        return start.scatter_reduce(0, self._bundles.disjunct, self._bound, "amin")
