"""Bounds of the hidden neurons of single bundles: recomputed where counterexamples can be, and
stored compactly while a bundle waits.

A counterexample of a bundle lies in the bundle's cap, so bounds over the cap are enough for it. The
thinner the cap, the tighter they are, and the next linear bound cuts the cap again.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, rounded_down, unit
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.caps import Caps
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.search.bundles import BundleContext


def over_caps(
    network: Network, caps: Caps, bounds: LayerBounds, at: Tensor, budget: Budget
) -> LayerBounds:
    """The bounds [batch, n_k], with those of the bundles `at` recomputed over their caps."""
    mine = caps.at(at)
    prior = _first_layer(network, mine, bounds.at(at))
    made = root_bounds(network, mine, prior=prior, budget=budget)
    lower, upper = (
        tuple(old.index_copy(0, at, new) for old, new in zip(before, after, strict=True))
        for before, after in ((bounds.lower, made.lower), (bounds.upper, made.upper))
    )
    return replace(bounds, lower=lower, upper=upper)


def _first_layer(network: Network, caps: Caps, bounds: LayerBounds) -> LayerBounds:
    """The bounds, with the first layer bounded over the caps, each side by its own support."""
    first = network.layers[0]
    if not isinstance(first, Dense) or first.sources != (0,):
        return bounds
    rows = first.weights[0].expand(len(caps.normal), -1, -1)
    box = caps.whole.box()
    sizes = [box.sizes]
    size_of = unit(rows.dtype)
    error = size_of.share(first.operations + 8) * first.magnitude(sizes)
    error = error + size_of.underflow * (2 * first.underflows(sizes).forward + 8)
    error = error if first.defect is None else error + size_of.grow(4) * first.defect
    middle, high, low = first([caps.center]), caps.support(rows), caps.support(-rows)
    error = error + caps.unsure(rows, torch.maximum(high.abs(), low.abs()))
    upper = torch.minimum(bounds.upper[0], above(middle + high + error))
    lower = torch.maximum(bounds.lower[0], below(middle - low - error))
    return bounds.with_layer(0, lower, upper)


def empty_ones(bounds: LayerBounds, count: int, device: torch.device) -> Tensor:
    """Which bundles [batch] are empty: a neuron's bounds contradict each other."""
    result = torch.zeros(count, dtype=torch.bool, device=device)
    for lower, upper in zip(bounds.lower, bounds.upper, strict=True):
        result = result | (lower > upper).any(-1)
    return result


def waiting_bounds(lower: Tensor, upper: Tensor) -> dict[str, Tensor]:
    """Bounds [bundles, neurons] in float32, rounded outwards."""
    single = torch.float32
    return {"lower": rounded_down(lower, single), "upper": -rounded_down(-upper, single)}


def with_waiting(context: BundleContext, waiting: dict[str, Tensor]) -> BundleContext:
    """The context with the bundles' own bounds, which are never wider than those of the whole
    domain, for which rounding errors were computed."""
    dtype, widths = context.rows.dtype, context.widths
    lower, upper = (torch.split(waiting[s].to(dtype), widths, -1) for s in ("lower", "upper"))
    lower = tuple(map(torch.maximum, lower, context.bounds.lower))
    upper = tuple(map(torch.minimum, upper, context.bounds.upper))
    return replace(context, bounds=replace(context.bounds, lower=lower, upper=upper))
