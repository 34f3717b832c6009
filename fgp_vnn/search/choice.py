"""The choice of the neuron at which to split a bundle: among those with the best scores, the one
whose children are expected to take the fewest bundles.

The work on a bundle grows exponentially with how far its bound is below 0: a child that is x times
as far below as its parent counts exp(c x) - 1, c being `Neurons.growth`. So it is better to close
one child than to raise both half of the way. Bundles of eight searches of mnist_fc, if the sum of
the children's bounds is maximised | if the work is minimised:

    110 | 100    670 | 555    265 | 269    87 | 101
    428 | 391    over 12,000 | 422    836 | 176    3,469 | 2,716

Searches of oval21 take as many in both ways.

The choice needs no proof, so all of it is made in the lower precision.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.lines import Lines
from fgp_vnn.bounds.slopes import Rows
from fgp_vnn.search.bundles import BoundedBundles, BundleContext, Bundles, children, cut


def choose(context: BundleContext, bounded: BoundedBundles, at: Tensor) -> Tensor:
    """The neuron to split in each of the bundles `at`; the bounds of the context are one per child
    (first all off, then all on), or the same for all."""
    # A score that overflows is still preferred to a neuron that cannot be split.
    gains = context.score(context, bounded, at).nan_to_num()
    score = torch.where(bounded.crossing[at], gains, -torch.inf)
    count = min(context.candidates, score.shape[-1])
    top = score.topk(count, dim=-1)
    if count == 1:
        return top.indices[:, 0]
    candidates = top.indices.unbind(-1)
    if context.query.network.piecewise_linear:
        parents = _Parents.of(context, bounded.bundles.at(at))
        found = [_of_relus(context, parents, neuron) for neuron in candidates]
    else:
        found = [_of_intervals(context, bounded, at, neuron) for neuron in candidates]
    work = torch.stack([_work(context, bounded, at, least) for least in found], -1)
    work = torch.where(top.values > -torch.inf, work, torch.inf)
    return top.indices.gather(-1, work.argmin(-1, keepdim=True)).squeeze(-1)


def _work(context: BundleContext, bounded: BoundedBundles, at: Tensor, least: Tensor) -> Tensor:
    """The work [at] that both children of each bundle are expected to take, given the bounds
    [2 at] that they start with."""
    least = least.view(2, -1)
    lacks = -bounded.result.least[at, 0].to(least.dtype)
    left = -least / lacks.clamp(min=torch.finfo(least.dtype).tiny)
    return torch.expm1(context.growth * left.nan_to_num(1.0).clamp(0, 1)).sum(0)


def _of_intervals(
    context: BundleContext, bounded: BoundedBundles, at: Tensor, neuron: Tensor
) -> Tensor:
    """The bounds [2 at] that both children start with; smooth neurons have new lines in them."""
    network, domain = context.in_float32
    widths, dtype = context.widths, network.dtype
    both = children(bounded.bundles.at(at), neuron, cut(context, bounded, at, neuron))
    signs, ends = torch.split(both.signs, widths, -1), both.intervals(widths)
    bounds = context.bounds.to(dtype).within(signs, ends)
    rows = context.rows[both.disjunct].to(dtype)
    asked = Rows(network, domain, len(widths), rows, bounds, signs, ends=ends)
    least = asked.backward(context.multipliers(both).to(dtype)).least.squeeze(-1)
    # A bound of a bundle holds in its children, whatever their lines.
    return torch.fmax(least, bounded.result.least[at, 0].to(dtype).repeat(2))


class _Parents(NamedTuple):
    """Bundles of a ReLU network that are to be split."""

    lines: list[Lines]  # [bundles or 1, 1, n_k]
    rows: Tensor  # [bundles, 1, outputs]
    beta: list[Tensor]  # [bundles, 1, n_k] signed

    @classmethod
    def of(cls, context: BundleContext, bundles: Bundles) -> _Parents:
        network, _ = context.in_float32
        some = torch.arange(len(bundles.signs), device=bundles.signs.device)
        signs = torch.split(bundles.signs, context.widths, -1)
        begin = context.multipliers(bundles).to(network.dtype)
        # Both children of a bundle have its bounds, up to the sign of one neuron.
        lines = context.bounds.at(some).to(network.dtype).within(signs).lines(begin.alpha)
        rows = begin.mix(context.rows[bundles.disjunct].to(network.dtype))
        beta = [b * s.unsqueeze(-2) for b, s in zip(begin.beta, signs, strict=True)]
        return cls(lines, rows, beta)


def _of_relus(context: BundleContext, parents: _Parents, neuron: Tensor) -> Tensor:
    """The bounds [2 bundles] that both children start with; only one neuron has new lines."""
    network, domain = context.in_float32
    count, depth = len(neuron), len(context.widths)
    signs = torch.zeros(2, count, 1, network.neurons, dtype=torch.int8, device=neuron.device)
    index = neuron.view(1, -1, 1, 1).expand(2, -1, -1, -1)
    signs.scatter_(-1, index, signs.new_tensor([-1, 1]).view(2, 1, 1, 1).expand_as(index))
    pairs = zip(parents.lines, torch.split(signs, context.widths, -1), strict=True)
    lines = [_closed(line, sign) for line, sign in pairs]
    rows, *beta = (torch.cat([part, part]) for part in (parents.rows, *parents.beta))
    return backward(network, domain, depth, rows, lines, beta=beta).least.squeeze(-1)


def _closed(lines: Lines, sign: Tensor) -> Lines:
    """The lines [2 bundles, 1, n] of ReLUs, with a ReLU off or on where its sign [2, bundles, 1, n]
    is -1 or +1."""
    still, on = sign == 0, (sign > 0).to(lines.low.dtype)
    low, chord = (torch.where(still, part, on).flatten(0, 1) for part in lines[:2])
    return Lines(low, chord, (lines.intercept * still).flatten(0, 1))
