"""Boxes with few unstable neurons, decided by splitting neurons instead of inputs.

Halving a box makes every relaxation a little tighter; splitting a neuron makes one of them exact.
Where few neurons are unstable, a handful of them cause most of the loss, and a few neuron splits
decide a box that would take hundreds of halvings. Such boxes get a turn: the bundles of all of them
are bounded and split together, round by round. A box is decided once all its bundles are closed. A
box with too many open bundles, or with any after the last round, is halved as if nothing had been
tried.

The number of unstable neurons that counts as few is learned from the turns: it rises if a box was
decided by few bundles, and falls if it took many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.attack.descent import Near
from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.reading import cells, places, read
from fgp_vnn.base.rounding import positive
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.slopes import first_slopes
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query
from fgp_vnn.search.boxes import BoundedBoxes, Subdivision
from fgp_vnn.search.bundles import (
    BoundedBundles,
    BundleContext,
    Bundles,
    bound,
    children,
    context_and_root,
)
from fgp_vnn.search.choice import choose
from fgp_vnn.search.waiting_bounds import empty_ones
from fgp_vnn.strategy import Strategy

_BYTES = 32  # per neuron of a bundle: a sign, a slope and a multiplier, and room for a copy


class Boxes(NamedTuple):
    """Boxes whose neurons are split."""

    lower: Tensor  # [boxes, inputs]
    upper: Tensor  # [boxes, inputs]
    bounds: LayerBounds  # of the hidden neurons, [boxes, n_k]
    shut: Tensor  # [boxes, disjuncts] proved not to be met


class _Open(NamedTuple):
    """Bundles that are open."""

    bundles: Bundles
    owner: Tensor  # [bundles] the number of the box that each belongs to
    neuron: Tensor  # [bundles] to split next, -1 where none can be split

    def at(self, index: Tensor) -> _Open:
        """Some of the bundles."""
        return _Open(self.bundles.at(index), self.owner[index], self.neuron[index])

    def halved(self) -> _Open:
        """Both children of each bundle."""
        twice = (part.repeat(2) for part in (self.owner, self.neuron))
        return _Open(children(self.bundles, self.neuron), *twice)

    @staticmethod
    def joined(some: list[_Open]) -> _Open:
        """Several batches as one."""
        bundles, owner, neuron = zip(*some, strict=True)
        return _Open(Bundles.joined(bundles), torch.cat(owner), torch.cat(neuron))


@dataclass(eq=False)
class BoxNeurons:
    """Splits of neurons in many boxes at once."""

    query: Query
    confirm: Confirm
    budget: Budget
    strategy: Strategy
    few: float  # unstable neurons up to which a box gets a turn
    bundles: int = 0  # number of bundles bounded so far
    found: Counterexample | None = None

    @classmethod
    def of(
        cls, query: Query, confirm: Confirm, budget: Budget, how: Subdivision
    ) -> BoxNeurons | None:
        """Neuron splits for a ReLU network, if enabled; None otherwise."""
        if not (how.neurons and query.network.layers and query.network.piecewise_linear):
            return None
        return cls(query, confirm, budget, how.strategy, how.strategy.inputs.turn.few)

    def take(
        self, bounded: BoundedBoxes, open_: Tensor, budget: Budget
    ) -> tuple[BoundedBoxes, Counterexample | None, int]:
        """Give a turn to the open boxes (flags [boxes]) with few unstable neurons. Returns the
        boxes with the decided ones closed, a counterexample, and the number of bundles it took."""
        left, before, self.budget = bounded.left, self.bundles, budget
        flags = open_ & ((left.signs == 0).sum(-1) <= self.few)
        at = places(flags, *read(flags.sum()))[: self._fit]
        if len(at):
            boxes = Boxes(left.lower[at], left.upper[at], bounded.bounds.at(at), bounded.shut[at])
            closed = bounded.closed.index_copy(0, at, self.decided(boxes))
            bounded = bounded._replace(closed=closed)
        return bounded, self.found, self.bundles - before

    @property
    def _fit(self) -> int:
        """How many boxes fit into the memory if each has as many bundles as it may ever have."""
        bundles = max(2 * self.strategy.inputs.turn.open, self.query.disjuncts)
        return max(1, self.budget.waiting // (_BYTES * bundles * self.query.network.neurons))

    @cached_property
    def _context(self) -> BundleContext:
        """The context shared by all bundles; `_local` fills in domains, bounds and the budget."""
        ascent = replace(self.strategy.slopes.bundles, few=self.strategy.inputs.turn.steps)
        none, neurons = LayerBounds((), ()), self.strategy.neurons
        return context_and_root(self.query, none, self.budget, ascent, neurons)[0]

    def decided(self, boxes: Boxes) -> Tensor:
        """Which of the boxes [boxes] are proved to hold no counterexample."""
        numbers, failed = self.strategy.inputs.turn, torch.zeros_like(boxes.shut[:, 0])
        open_, before = self._first(boxes), self.bundles
        for turn in range(numbers.rounds):
            if self.budget.expired() or not len(open_.owner):
                break
            open_ = self._bounded(boxes, open_.halved() if turn else open_)
            if self.found is not None:
                return torch.zeros_like(failed)
            failed = failed | (_waiting(open_, len(failed), numbers.open) > numbers.open)
            going = ~failed[open_.owner]
            open_ = open_.at(places(going, *read(going.sum())))
        done = ~failed.index_fill(0, open_.owner, True)
        self._learn(self.bundles - before, *read(done.sum()))
        return done

    def _learn(self, bundles: int, decided: float) -> None:
        """Adjust how many unstable neurons count as few, by the bundles of the last turn."""
        numbers, each = self.strategy.inputs.turn, bundles / max(decided, 1)
        self.few *= numbers.more if each < numbers.cheap else 1.0
        self.few /= numbers.less if each > numbers.dear else 1.0

    def _first(self, boxes: Boxes) -> _Open:
        """One bundle with all neurons open for each box and each disjunct that may be met in it."""
        network, most = self.query.network, self._context.rows.shape[1]
        owner, disjunct = cells(~boxes.shut, *read((~boxes.shut).sum()))
        slopes = torch.cat(first_slopes(boxes.bounds), -1).to(network.dtype)
        signs = torch.zeros(len(owner), network.neurons, dtype=torch.int8, device=owner.device)
        beta = torch.zeros_like(signs, dtype=network.dtype)
        weights = slopes.new_full((len(owner), most), 1 / most)
        ends = slopes.new_zeros(len(owner), 2, 0)
        return _Open(Bundles(disjunct, signs, slopes[owner], beta, weights, ends), owner, owner)

    def _bounded(self, boxes: Boxes, asked: _Open) -> _Open:
        """The bundles that stay open; as many are bounded at a time as fit into the memory."""
        network = self.query.network
        some = ascents_at_once(network, len(network.layers), self.budget.at_once)
        numbers = torch.arange(len(asked.owner), device=asked.owner.device)
        left = []
        for part in torch.split(numbers, max(some, 1)):
            these = asked.at(part)
            late = self.budget.expired()  # bundles that are not bounded stay open
            left.append(these if late else self._left(boxes, these))
            if self.found is not None:
                break
        return _Open.joined(left)

    def _left(self, boxes: Boxes, asked: _Open) -> _Open:
        """Bound the bundles; returns those that stay open."""
        self.bundles += len(asked.owner)
        local = self._local(boxes, asked.owner)
        bounds = local.bounds.within(torch.split(asked.bundles.signs, local.widths, -1))
        empty = empty_ones(bounds, len(asked.owner), asked.owner.device)
        bounded = bound(replace(local, bounds=bounds.uncrossed()), asked.bundles)
        rest = ~(empty | positive(bounded.result.least.squeeze(-1)))
        points, how = bounded.result.points.flatten(0, 1), self.strategy.attack.in_boxes.offer
        near = Near.of(self.query, points, self.query.network(points), how)
        offered, count = read(near.flags.sum(), rest.sum())
        self.found = near.confirmed(self.confirm, offered, how)
        at = places(rest, count)
        neuron = self._neurons(boxes, asked.owner[at], bounded, at)
        return _Open(bounded.bundles.at(at), asked.owner[at], neuron)

    def _neurons(self, boxes: Boxes, owner: Tensor, bounded: BoundedBundles, at: Tensor) -> Tensor:
        """The neuron at which to split each of the bundles `at`; -1 where none can be split."""
        if not len(at):
            return at
        chosen = choose(self._local(boxes, owner.repeat(2)), bounded, at)
        return torch.where(bounded.crossing[at].any(-1), chosen, -1)

    def _local(self, boxes: Boxes, owner: Tensor) -> BundleContext:
        """The context of bundles that belong to the boxes `owner` [bundles]."""
        context, dtype = self._context, self.query.network.dtype
        box, coarse = Box(boxes.lower[owner].to(dtype), boxes.upper[owner].to(dtype)), None
        if context.coarse is not None:
            network = context.coarse[0]
            coarse = network, box.to(network.device, network.dtype)
        query, bounds = replace(self.query, domain=box), boxes.bounds.at(owner).to(dtype)
        return replace(context, query=query, bounds=bounds, coarse=coarse, budget=self.budget)


def _waiting(open_: _Open, count: int, most: int) -> Tensor:
    """Number of open bundles of each box [count]; more than `most` if one cannot be split."""
    weights = torch.where(open_.neuron < 0, most + 1, 1)
    return torch.zeros(count, dtype=torch.long, device=weights.device).index_add(
        0, open_.owner, weights
    )
