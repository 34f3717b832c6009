"""Batches of bundles: bounded together, and split at the most promising neuron.

A bundle has a sign for each ReLU that was split, and an interval, perhaps unbounded on one side,
for each smooth neuron that was split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.bounds.constraints import width
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.slopes import Ascended, Multipliers, Rows, ascend, first_slopes
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.network.model import Network
from fgp_vnn.query import Query
from fgp_vnn.search import neuron_rules
from fgp_vnn.search.rules import find_rule
from fgp_vnn.search.split_points import divisible, split_points
from fgp_vnn.strategy import Ascent, Neurons

# A split rule: scores [at, neurons] of the neurons of the bundles `at`, the best highest.
Score = Callable[["BundleContext", "BoundedBundles", Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class BundleContext:
    """What all bundles of a search share: the question, and how they are bounded and split."""

    query: Query
    bounds: LayerBounds  # over the whole domain
    rows: Tensor  # [disjuncts, most rows, outputs] unit rows of g, the last one repeated
    coarse: tuple[Network, Domain] | None
    budget: Budget
    ascent: Ascent
    candidates: int  # neurons whose children are looked at before one is chosen
    growth: float  # of the work with a bound's distance to 0, for that choice: see `choice`
    score: Score  # the split rule that ranks the candidates

    @property
    def in_float32(self) -> tuple[Network, Domain]:
        """The network and the domain in float32, for choices that need no proof."""
        return self.coarse or (self.query.network, self.query.domain)

    @property
    def widths(self) -> list[int]:
        """The number of neurons in each layer."""
        return list(self.query.network.widths)

    @cached_property
    def columns(self) -> Tensor:
        """For each smooth neuron [neurons] with a value of its own, the index of this value among
        the values of all layers; -1 for the others."""
        network, begin, found = self.query.network, 0, [self.rows.new_zeros(0).long()]
        for activation, count, values in zip(
            network.activations, network.widths, network.value_widths, strict=True
        ):
            own = torch.arange(begin, begin + count, device=self.rows.device)
            alone = activation is not RELU and activation.operands == 1
            found.append(own if alone else torch.full_like(own, -1))
            begin += values
        return torch.cat(found)

    def multipliers(self, bundles: Bundles) -> Multipliers:
        """The slopes, multipliers and row weights from which an ascent starts."""
        network = self.query.network
        values, pairs = network.value_widths, zip(network.activations, network.widths, strict=True)
        counts = [width(activation, neurons) for activation, neurons in pairs]
        alpha, beta = (
            tuple(part.unsqueeze(-2) for part in torch.split(side, sizes, -1))
            for side, sizes in ((bundles.alpha, list(values)), (bundles.beta, counts))
        )
        return Multipliers(alpha, beta, bundles.weights)


@dataclass(frozen=True, eq=False)
class Bundles:
    """A batch of patterns, the disjunct of each, and the starting point of its bounds."""

    disjunct: Tensor  # [bundles]
    # [bundles, neurons] int8: -1, +1, 0 for open; of a smooth neuron, the side of its latest cut
    signs: Tensor
    alpha: Tensor  # [bundles, values of all layers]
    beta: Tensor  # [bundles, constraints of all layers] one for a ReLU, two for other neurons
    weights: Tensor  # [bundles, most rows] of the disjunct's rows in the sum that is bounded
    # [bundles, 2, neurons] lower and upper ends of smooth neurons' intervals, float32 numbers,
    # infinite where a neuron was not split; [bundles, 2, 0] if there are only ReLUs
    ends: Tensor

    def at(self, index: Tensor) -> Bundles:
        """Some of the bundles."""
        return Bundles(*(part[index] for part in self.parts()))

    def intervals(self, widths: Sequence[int]) -> tuple[Tensor, ...] | None:
        """The ends [bundles, 2, n_k] of each layer; None if there are only ReLUs."""
        return torch.split(self.ends, list(widths), -1) if self.ends.shape[-1] else None

    def parts(self) -> tuple[Tensor, ...]:
        """All tensors, in the order of the fields."""
        return tuple(getattr(self, name) for name in PARTS)

    @staticmethod
    def joined(some: Sequence[Bundles]) -> Bundles:
        """Several batches as one."""
        parts = zip(*(bundles.parts() for bundles in some), strict=True)
        return Bundles(*(torch.cat(part) for part in parts))


PARTS = tuple(part.name for part in fields(Bundles))


def context_and_root(
    query: Query, bounds: LayerBounds, budget: Budget, ascent: Ascent, neurons: Neurons
) -> tuple[BundleContext, Bundles]:
    """The context of a search, and its root: one bundle per disjunct with all neurons open."""
    numbers = [query.rows_of(d) for d in range(query.disjuncts)]
    most = max(len(n) for n in numbers)
    padded = torch.tensor([n + [n[-1]] * (most - len(n)) for n in numbers])
    eye = torch.eye(query.network.outputs, dtype=query.network.dtype)
    rows = eye[padded].to(query.network.device)
    score: Score = find_rule(neuron_rules, neurons.rule)
    if query.network.device.type != "cpu":
        ascent = ascent.on_device()
    context = BundleContext(
        query,
        bounds,
        rows,
        query.coarse(),
        budget,
        ascent,
        candidates=neurons.candidates,
        growth=neurons.growth,
        score=score,
    )
    slopes = torch.cat([rows.new_zeros(0), *(slope[0] for slope in first_slopes(bounds))])
    alpha = slopes.expand(len(numbers), -1).contiguous()
    signs = torch.zeros(len(numbers), query.network.neurons, dtype=torch.int8, device=rows.device)
    disjunct = torch.arange(len(numbers), device=rows.device)
    weights = rows.new_full((len(numbers), most), 1 / most)
    network = query.network
    pairs = zip(network.activations, network.widths, strict=True)
    beta = alpha.new_zeros(len(numbers), sum(width(f, n) for f, n in pairs))
    smooth = 0 if network.piecewise_linear else network.neurons
    ends = alpha.new_tensor([-torch.inf, torch.inf]).reshape(1, 2, 1)
    ends = ends.expand(len(numbers), -1, smooth)
    return context, Bundles(disjunct, signs, alpha, beta, weights, ends)


def bundles_at_once(context: BundleContext, most: int) -> int:
    """How many bundles fit into the memory at once, at most `most`."""
    network = context.query.network
    return min(most, ascents_at_once(network, len(network.layers), context.budget.at_once))


def rounding_of(context: BundleContext) -> Rounding | None:
    """Rounding errors of backward passes over the whole domain, valid for every bundle; None for
    smooth networks, where lines in a bundle can be steeper than over the whole domain."""
    network, domain = context.query.network, context.query.domain
    return Rounding(network, domain, context.bounds) if network.piecewise_linear else None


def children(bundles: Bundles, neuron: Tensor, cut: Cut | None = None) -> Bundles:
    """Both children of each bundle: first all with their neuron [bundles] off, then all with it on.
    With a `cut`, the neuron is at most at the cut point in the first and at least in the second."""
    index = neuron.unsqueeze(-1)
    signs = torch.cat([bundles.signs.scatter(-1, index, sign) for sign in (-1, 1)])
    both = replace(Bundles(*(torch.cat([part, part]) for part in bundles.parts())), signs=signs)
    if cut is None:
        return both
    lower, upper = bundles.ends.unbind(-2)
    point = cut.point.to(lower.dtype).unsqueeze(-1)
    first = torch.stack([lower, upper.scatter(-1, index, point)], -2)
    last = torch.stack([lower.scatter(-1, index, point), upper], -2)
    # A split smooth neuron has new lines; the middle one is a good start.
    place = cut.column.clamp(min=0).unsqueeze(-1)
    slope = torch.where(cut.column.unsqueeze(-1) < 0, bundles.alpha.gather(-1, place), 0.5)
    alpha = bundles.alpha.scatter(-1, place, slope)
    return replace(both, ends=torch.cat([first, last]), alpha=torch.cat([alpha, alpha]))


class Cut(NamedTuple):
    """The points at which neurons are split, for networks that have smooth neurons."""

    point: Tensor  # [bundles] float32 numbers; 0 for a ReLU
    column: Tensor  # [bundles] the index of a smooth neuron's value, -1 if it has none of its own


def cut(context: BundleContext, bounded: BoundedBundles, at: Tensor, neuron: Tensor) -> Cut | None:
    """Where the neurons [at] of the bundles `at` are split; None if all are ReLUs."""
    if context.query.network.piecewise_linear:
        return None
    return Cut(split_points(bounded.bounds.at(at), neuron), context.columns[neuron])


@dataclass(frozen=True, eq=False)
class BoundedBundles:
    """A batch of bundles with its bounds."""

    bundles: Bundles  # with the multipliers that were found
    bounds: LayerBounds
    result: Ascended
    crossing: Tensor  # [bundles, neurons] that can be split: unstable ReLUs, and wide intervals

    def regions(self, at: Tensor) -> Tensor:
        """The patterns [at, neurons] of the bundles `at`, which have no open neuron."""
        signs = self.bundles.signs[at]
        lowers = (lo.expand(len(self.crossing), -1)[at] for lo in self.bounds.lower)
        lower = torch.cat([self.bundles.alpha[at, :0], *lowers], -1)
        stable = torch.where(lower >= 0, 1, -1).to(torch.int8)
        return torch.where(signs == 0, stable, signs)


def bound(
    context: BundleContext, bundles: Bundles, rounding: Rounding | None = None
) -> BoundedBundles:
    """Optimised bounds of each bundle's rows; `rounding` is that of the whole domain, if known."""
    query, widths = context.query, context.widths
    signs, ends = torch.split(bundles.signs, widths, -1), bundles.intervals(widths)
    bounds = context.bounds.within(signs, ends)
    rows = context.rows[bundles.disjunct]
    result = ascend(
        Rows(query.network, query.domain, len(widths), rows, bounds, signs, rounding, ends),
        begin=context.multipliers(bundles),
        coarse=context.coarse,
        ascent=_for_depth(context.ascent, bundles),
        done=lambda least: context.budget.expired(),
    )
    alpha, beta, weights = result.multipliers
    found = replace(
        bundles,
        alpha=torch.cat([bundles.alpha[:, :0], *(a.squeeze(-2) for a in alpha)], -1),
        beta=torch.cat([bundles.beta[:, :0], *(b.squeeze(-2) for b in beta)], -1),
        weights=bundles.weights if weights is None else weights,
    )
    none = torch.zeros_like(bundles.signs[:, :0], dtype=torch.bool)
    masks = (mask.expand(len(none), -1) for mask in divisible(bounds))
    crossing = torch.cat([none, *masks], -1)
    return BoundedBundles(found, bounds, result, crossing)


def _for_depth(ascent: Ascent, bundles: Bundles) -> Ascent:
    """The ascent, with fewer steps where few neurons are closed: there multipliers matter little,
    and bundles are soon split."""
    if not ascent.looks or ascent.steps <= ascent.few or not bundles.signs.numel():
        return ascent
    part = float(bundles.signs.count_nonzero()) / bundles.signs.numel()
    more = (ascent.steps - ascent.few) * min(1.0, part / ascent.many)
    return replace(ascent, steps=ascent.few + round(more))
