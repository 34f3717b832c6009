"""When a point is a counterexample, by the definition."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.query import Query


def is_met(query: Query, g: Tensor) -> Tensor:
    """Which disjuncts [..., disjuncts] are met at points with the values g [..., rows]."""
    unmet = ~torch.where(query.strict, g < 0, g <= 0)
    counts = torch.zeros((*g.shape[:-1], query.disjuncts), dtype=torch.int64, device=g.device)
    return counts.index_add(-1, query.disjunct, unmet.long()) == 0
