"""Tighter bounds of hidden neurons where a bundle's counterexamples can lie.

A counterexample of a bundle lies where the bundle's linear bound is at most 0: in a half-space,
which leaves less of the domain the nearer the bundle is to being closed. Over the domain cut by
this half-space, those lower and upper bounds of neurons ("sides") are recomputed that cost the
bundle's bound most, and the children of the bundle start from them.

In a domain of many inputs, neurons of the first layer keep their bounds over the whole domain: two
directions of so many are nearly always perpendicular, so that the half-space cuts little off them.
In a domain of few inputs (`Neurons.low`) it cuts much, and clipping costs little: there they are
clipped too, in every open bundle. Bundles and seconds of a search before | after this was done:

    safenlp, 119 neurons, 30 inputs           26,325 in 5.5 | 1,863 in 1.2
    safenlp, 125 neurons, 30 inputs         200,000 in 60, open | 8,836 in 3.6
    a random network of 30 inputs                1,373 in 1.4 | 468 in 1.0
    one of 100 inputs                        36,003 in 14.1 | 9,244 in 5.4
    another of 100 inputs              36,600 in 15, open | 30,907 in 15.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fgp_vnn.base.reading import read
from fgp_vnn.base.rounding import rounded_down, unit
from fgp_vnn.bounds.backward import Backward, backward_sides
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.lines import Lines
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import parts, rows_at_once
from fgp_vnn.domain.caps import Caps, left_of, recast
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.model import Network
from fgp_vnn.search.bundles import BoundedBundles, BundleContext
from fgp_vnn.strategy import Neurons

_HARDLY = 0.01  # part of the cost of chords that has to be gained
_COPIES = 2  # backward passes that take as much memory as a support over a cut domain


@dataclass(frozen=True, eq=False)
class Clipping:
    """The network and domain over whose caps a search bounds neurons: in float32 if possible, which
    takes half the time and loses little to rounding."""

    network: Network
    domain: Domain
    rounding: Rounding  # over the whole domain
    numbers: Neurons  # how many sides to recompute, and in which bundles
    first: int  # the first layer whose neurons are bounded

    @classmethod
    def of(cls, context: BundleContext, numbers: Neurons) -> Clipping | None:
        """The clipping of a search; None if it has no layer to clip."""
        network, domain = context.in_float32
        first = int(network.inputs > numbers.low)
        if not numbers.clipped or first >= len(context.bounds.lower):
            return None
        rounding = Rounding(network, domain, outwards(context.bounds, network))
        return cls(network, domain, rounding, numbers, first)

    @property
    def near(self) -> float:
        """The part of its bound's range by which a bundle that is clipped is below 0 at most."""
        return self.numbers.near if self.first else torch.inf

    @property
    def repeats(self) -> bool:
        """Whether a bundle may be bounded once more with its new bounds of hidden neurons."""
        return self.numbers.again < torch.inf


def clip_neurons(
    context: BundleContext, clipping: Clipping, bounded: BoundedBundles, at: Tensor
) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds [at, neurons] that hold at counterexamples of the bundles `at`, some
    sides of each recomputed. A bundle with lower > upper has no counterexample."""
    before, most, first = bounded.bounds.at(at), clipping.numbers.clipped, clipping.first
    bounds, caps = outwards(before, clipping.network), _caps(context, clipping.domain, bounded, at)
    losses = [_loss(bounded, at, layer, layer >= first) for layer in range(len(bounds.lower))]
    whole = torch.cat(losses, -1)
    # Without `looks` nothing is read back from the device: every layer gets the same number.
    each = max(1, most // (len(losses) - first))
    counts: list[float] = [min(each, loss.shape[-1]) for loss in losses]
    if context.ascent.looks:
        least = _threshold(whole, most, clipping.numbers.costly)
        counts = read(*(((loss > 0) & (loss >= least)).sum(-1).amax() for loss in losses))
    known = bounds.first(first)
    found = [  # of each layer [at, 2 n_k]: lower bounds of z, then of -z
        torch.cat([low, -high], -1) for low, high in zip(bounds.lower, bounds.upper, strict=True)
    ]
    for k in range(first, len(losses)):
        if counts[k] and not context.budget.expired():
            # The same number in each bundle: one that needs fewer gets its next sides too.
            sides = losses[k].topk(int(counts[k]), -1).indices
            least = _over_caps(clipping, caps, k, sides, known.lines(), context.budget)
            least = torch.fmax(found[k].gather(-1, sides), least)
            found[k] = found[k].scatter(-1, sides, least)
        low, high = found[k].chunk(2, -1)
        known = known.followed_by(low, torch.maximum(low, -high))
    ends = (side.chunk(2, -1) for side in found)
    lower, upper = (torch.cat(end, -1).to(whole.dtype) for end in zip(*ends, strict=True))
    low, high = (torch.cat(side, -1) for side in (before.lower, before.upper))
    return torch.maximum(lower, low), torch.minimum(-upper, high)


def outwards(bounds: LayerBounds, network: Network) -> LayerBounds:
    """The bounds in the network's precision, rounded outwards."""
    dtype = network.dtype
    lower = tuple(rounded_down(side, dtype) for side in bounds.lower)
    upper = tuple(-rounded_down(-side, dtype) for side in bounds.upper)
    return replace(bounds, lower=lower, upper=upper)


def _over_caps(
    clipping: Clipping,
    caps: Caps,
    k: int,
    sides: Tensor,
    lines: Sequence[Lines],
    budget: Budget,
) -> Tensor:
    """Lower bounds of some sides [at, m] of the neurons of map `k` (see `backward_sides`), each
    over its bundle's cap; as many at a time as fit into the memory, and infinite ones once time is
    up."""
    network, (bundles, count) = clipping.network, sides.shape
    fit = max(1, rows_at_once(network, k, _COPIES, budget.at_once))
    least = torch.full(sides.shape, -torch.inf, dtype=network.dtype, device=sides.device)
    for some in parts(bundles, fit // count):
        mine = caps.at(some)
        here = [line.at(some) for line in lines]
        for these in parts(count, fit):
            if not budget.expired():
                rounding = clipping.rounding.over(mine)
                least[some, these] = backward_sides(
                    network, mine, k, sides[some, these], here, rounding=rounding
                )
    return least


def _loss(bounded: BoundedBundles, at: Tensor, layer: int, clipped: bool) -> Tensor:
    """The cost of each neuron of a layer to the linear bound, divided between its lower and upper
    bounds [at, 2 n_k]; 0 in a layer that is not clipped.

    The cost is the height of the neuron's chord at z = 0 times minus its coefficient, if that is
    negative. A chord from l to u loses u^2 / (u - l)^2 of the height that l gains, and l^2 / (u -
    l)^2 of the one that u gains, so the bound nearer to 0 gets most of the cost.
    """
    low, high = (side[layer][at] for side in (bounded.bounds.lower, bounded.bounds.upper))
    coefficient = bounded.result.coefficients.get(layer + 1)
    if not clipped or coefficient is None:
        return torch.zeros_like(low).repeat(1, 2)
    intercept = bounded.bounds.lines()[layer].intercept[at]
    cost = (-coefficient[at].clamp(max=0) * intercept).squeeze(-2).nan_to_num()
    part = (high.square() / (low.square() + high.square())).nan_to_num(0.5)
    return torch.cat([cost * part, cost * (1 - part)], -1)


def _threshold(losses: Tensor, most: int, part: float) -> Tensor:
    """The smallest loss [at, 1] of a side worth recomputing, given the losses [at, sides]: the
    largest ones that make up `part` of their sum, and at most `most` of them."""
    highest = losses.topk(min(most, losses.shape[-1]), -1).values
    missing = highest.cumsum(-1) - highest < part * losses.sum(-1, keepdim=True)
    return highest.gather(-1, missing.sum(-1, keepdim=True).clamp(min=1) - 1)


def promised(bounded: BoundedBundles, after: LayerBounds, at: Tensor) -> Tensor:
    """How far the linear bounds of the bundles `at` [at] would rise by the lower chords of tighter
    bounds `after` of hidden neurons; 0 where the chords cost hardly less than before, so that no
    bundle is bounded again and again."""
    rise = torch.zeros_like(bounded.result.least[at, 0])
    cost = rise
    sides = zip(bounded.bounds.lines(), after.lines(), strict=True)
    for layer, (line, lower) in enumerate(sides, 1):
        coefficient = bounded.result.coefficients.get(layer)
        if coefficient is not None:
            weight, before = -coefficient[at].clamp(max=0), line.intercept[at]
            cost = cost + (weight * before).sum((-2, -1))
            rise = rise + (weight * (before - lower.intercept[at])).sum((-2, -1))
    return torch.where(rise > _HARDLY * cost, rise, 0.0).nan_to_num(0.0, 0.0, 0.0)


def _caps(context: BundleContext, domain: Domain, bounded: BoundedBundles, at: Tensor) -> Caps:
    """The caps that the bundles' linear bounds leave of the domain, which may be rounded."""
    weight, value = lowered(bounded.result.linear)
    return left_of(domain, *recast(context.query.domain, domain, weight[at], value[at]))


def lowered(linear: Backward) -> tuple[Tensor, Tensor]:
    """Weights [batch, inputs] and values [batch] of linear bounds of one row, around the centre of
    their domain, with the rounding error subtracted from the value."""
    weight, constant, least, nominal = (part.squeeze(1) for part in linear[:4])
    size_of = unit(constant.dtype)
    slack = nominal - least + size_of.share(4) * (constant.abs() + nominal.abs())
    return weight, constant - slack - 8 * size_of.underflow


def near(context: BundleContext, bounded: BoundedBundles, part: float) -> Tensor:
    """Which bundles [batch] are below 0 by at most this part of the range of their linear bound."""
    domain, linear = context.query.domain, bounded.result.linear
    if part == torch.inf:
        return torch.ones_like(linear.least.squeeze(-1), dtype=torch.bool)
    width = (domain.support(linear.weight) + domain.support(-linear.weight)).squeeze(-1)
    return -linear.least.squeeze(-1) <= part * width
