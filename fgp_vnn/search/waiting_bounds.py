"""Bounds of hidden neurons, stored compactly with their waiting bundle."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fgp_vnn.base.rounding import rounded_down
from fgp_vnn.search.bundles import BundleContext


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
