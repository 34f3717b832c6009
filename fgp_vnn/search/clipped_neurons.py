"""Tighter bounds of hidden neurons where a bundle's counterexamples can lie.

A counterexample of a bundle lies where the bundle's linear bound is at most 0: in a half-space that
is the thinner, the nearer the bundle is to being closed. The neurons that cost the bound most are
bounded over the domain cut by it, and the halves of the bundle start from there. Neurons of the
first layer are left out: their bounds, and what they see of the cut, are exact already.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.base.reading import read
from fgp_vnn.base.rounding import unit
from fgp_vnn.bounds.backward import Backward, Rounding, backward_neurons
from fgp_vnn.budget.capacity import rows_at_once
from fgp_vnn.domain.caps import Caps, left_of
from fgp_vnn.search.bundles import BoundedBundles, Setting

_COPIES = 2  # as many as in a backward pass that a support over a cut domain makes


def clip_neurons(
    setting: Setting,
    bounded: BoundedBundles,
    at: Tensor,
    most: int,
    rounding: Rounding | None = None,
) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds [at, neurons] that hold at counterexamples of the bundles numbered
    `at`, with those of `most` neurons of each made anew; lower > upper where there are none."""
    network, limit = setting.query.network, setting.budget.at_once
    fit = rows_at_once(network, len(network.layers), 2 * most, limit) // _COPIES
    rounding = rounding or Rounding(network, setting.query.domain, setting.bounds)
    parts = torch.split(at, max(1, fit))
    found = [_clipped(setting, bounded, some, most, rounding) for some in parts]
    lower, upper = (torch.cat(side) for side in zip(*found, strict=True))
    return lower, upper


def _clipped(
    setting: Setting, bounded: BoundedBundles, at: Tensor, most: int, rounding: Rounding
) -> tuple[Tensor, Tensor]:
    network, bounds = setting.query.network, bounded.bounds.at(at)
    caps = _caps(setting, bounded, at)
    rounding = rounding.over(caps)
    losses = [_loss(bounded, at, layer) for layer in range(len(bounds.lower))]
    whole = torch.cat(losses, -1)
    least = whole.topk(min(most, whole.shape[-1]), -1).values[:, -1:]
    chosen = [torch.where(loss >= least, loss, 0.0) for loss in losses]
    counts: list[float] = [min(most, loss.shape[-1]) for loss in losses]
    if setting.ascent.looks:
        counts = read(*((loss > 0).sum(-1).amax() for loss in chosen))
    known = bounds.first(1)
    lowers, uppers = list(bounds.lower), list(bounds.upper)
    for k in range(1, len(losses)):
        if counts[k] and not setting.budget.expired():
            neurons = chosen[k].topk(int(counts[k]), -1).indices
            low, high = backward_neurons(
                network, caps, k, neurons, known.lines(), rounding=rounding
            )
            low = torch.fmax(lowers[k].gather(-1, neurons), low)
            high = torch.fmin(uppers[k].gather(-1, neurons), high)
            lowers[k] = lowers[k].scatter(-1, neurons, low)
            uppers[k] = uppers[k].scatter(-1, neurons, high)
        known = known.followed_by(lowers[k], torch.maximum(lowers[k], uppers[k]))
    return torch.cat(lowers, -1), torch.cat(uppers, -1)


def _loss(bounded: BoundedBundles, at: Tensor, layer: int) -> Tensor:
    """What each neuron of a layer [at, n_k] costs the linear bound: how far its chord is above 0,
    times its coefficient, where that is negative."""
    coefficient = bounded.result.coefficients.get(layer + 1)
    if layer == 0 or coefficient is None:
        return torch.zeros_like(bounded.bounds.lower[layer][at])
    intercept = bounded.bounds.lines()[layer].intercept[at]
    return (-coefficient[at].clamp(max=0) * intercept).squeeze(-2).nan_to_num()


def _caps(setting: Setting, bounded: BoundedBundles, at: Tensor) -> Caps:
    """The parts of the domain that the bundles' linear bounds leave."""
    weight, value = lowered(linear_of(bounded))
    return left_of(setting.query.domain, weight[at], value[at])


def linear_of(bounded: BoundedBundles) -> Backward:
    """The proved linear bounds of bundles."""
    if bounded.result.linear is None:
        raise AssertionError("a proved bound has its linear function")
    return bounded.result.linear


def lowered(linear: Backward) -> tuple[Tensor, Tensor]:
    """Weights [batch, inputs] and values [batch] of linear bounds of one row, around the centre of
    their domain, with all that rounding may have added taken off the value."""
    weight, constant, least, nominal = (part.squeeze(1) for part in linear[:4])
    size_of = unit(constant.dtype)
    slack = nominal - least + size_of.share(4) * (constant.abs() + nominal.abs())
    return weight, constant - slack - 8 * size_of.lost


def near(setting: Setting, bounded: BoundedBundles, part: float) -> Tensor:
    """Which bundles [batch] lack at most this part of the range of their linear bound."""
    linear = linear_of(bounded)
    domain, weight = setting.query.domain, linear.weight
    width = (domain.support(weight) + domain.support(-weight)).squeeze(-1)
    return -linear.least.squeeze(-1) <= part * width
