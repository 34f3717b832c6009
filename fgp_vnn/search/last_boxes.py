"""The last open boxes of a search that splits inputs: walked region by region, with LPs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query
from fgp_vnn.search.walk.walk import WalkOptions, walk_regions
from fgp_vnn.strategy import Inputs


class Parts(NamedTuple):
    """A batch of boxes and the known signs of their neurons."""

    lower: Tensor  # [boxes, inputs]
    upper: Tensor  # [boxes, inputs]
    signs: Tensor  # [boxes, neurons] -1 or +1 where stable, else 0


def last_boxes(root: Box, parts: Parts, closed: Tensor, numbers: Inputs) -> Tensor:
    """The open boxes that are better decided region by region than split once more.

    Without unstable neurons, a smaller box makes nothing tighter. A box that is small and still
    open lies at a boundary that halving never gets past.
    """
    lower, upper, signs = parts
    middle = (lower + upper) / 2
    stuck = ~((lower < middle) & (middle < upper)).any(-1)
    unstable = (signs == 0).sum(-1)
    tiny = torch.finfo(lower.dtype).tiny
    size = ((upper - lower) / (root.upper - root.lower).clamp(min=tiny)).amax(-1)
    few = (size < numbers.small) & (unstable <= numbers.unstable)
    last = stuck | few | (size < numbers.smallest) | (unstable == 0)
    return torch.nonzero(~closed & last).flatten()


def walk_boxes(
    query: Query, parts: Parts, confirm: Confirm, budget: Budget, walk: WalkOptions
) -> Iterator[Outcome]:
    """The outcomes of walks through the regions of boxes, in the query's own precision.

    Single precision rounded the domain outwards: the part outside of it is cut off again.
    """
    dtype, root = query.network.dtype, query.domain.box()
    walk = replace(walk, alternate=False)  # for one box at a time, an LP is faster
    for lower, upper, signs in zip(*parts, strict=True):
        if budget.expired():
            yield Outcome("timeout")
            continue
        box = Box(
            torch.maximum(lower.to(dtype), root.lower), torch.minimum(upper.to(dtype), root.upper)
        )
        if bool((box.lower > box.upper).any()):
            continue
        known = torch.split(signs.unsqueeze(0), list(query.network.widths), -1)
        bounds = LayerBounds.of_signs(known, dtype)
        yield walk_regions(replace(query, domain=box), bounds, confirm, budget, walk)
