"""The split search along inputs: boxes halved until linear bounds decide each.

For inputs of few dimensions this beats splitting neurons: a smaller box makes every relaxation
tighter at once, and hidden bounds are computed anew for each box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.bounds import LayerBounds, Rounding, backward, interval_step
from fgp_vnn.deadline import Deadline
from fgp_vnn.domain import Box
from fgp_vnn.falsify import offer
from fgp_vnn.network.model import Network
from fgp_vnn.query import Query
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.outcome import Confirm, Outcome


@dataclass(frozen=True)
class Subdivision:
    """How to split boxes."""

    batch: int = 512
    budget: int = 2 << 30  # bytes for waiting boxes
    trials: int = 64  # while at most so many boxes are split at once, both halves are tried


class Bounded(NamedTuple):
    """What is known of a batch of boxes."""

    least: Tensor  # [boxes, rows] lower bounds of g
    points: Tensor  # [boxes, rows, inputs] where the linear bounds are least
    pull: Tensor  # [boxes, inputs] how much each input moves what the relaxation loses


def split_inputs(
    query: Query, confirm: Confirm, deadline: Deadline, subdivision: Subdivision
) -> Outcome:
    """Search the query's box, whose sides are halved until every part is decided."""
    box = query.domain
    if not isinstance(box, Box):
        raise TypeError("inputs are split in boxes only")
    frontier = Frontier(subdivision.budget)
    frontier.push(_zeros(box, 1), lower=box.lower.unsqueeze(0), upper=box.upper.unsqueeze(0))
    statistics = {"boxes": 0}
    parts = Box(box.lower.unsqueeze(0), box.upper.unsqueeze(0))
    while True:
        if deadline.expired():
            return Outcome("timeout", reason="time is up in the split search", statistics=statistics)
        bounded = bound_boxes(query.network, parts)
        statistics["boxes"] += len(parts.lower)
        found = offer(query, confirm, bounded.points.flatten(0, 1))
        if found is not None:
            return Outcome("sat", found, statistics=statistics)
        open_ = torch.nonzero(~query.closed(bounded.least).all(-1)).flatten()
        break
    del frontier, open_
    raise NotImplementedError


def _zeros(box: Box, count: int) -> Tensor:
    return box.lower.new_zeros(count)
