"""What an engine reports, and how it hands over a candidate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from fgp_vnn.query import Query
from fgp_vnn.verdict import Counterexample

NEAR = 1e-5  # how far above 0, relative to its size, the g of a point worth a run may be

# Takes points [points, inputs] of the query's domain; gives the first that is a real
# counterexample: in the domain as float32, and confirmed by running the network itself.
Confirm = Callable[[Tensor], Counterexample | None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """A status, its evidence and what it cost."""

    status: Literal["sat", "unsat", "unknown", "timeout"]
    counterexample: Counterexample | None = None
    reason: str = ""
    statistics: dict[str, int] = field(default_factory=dict)


def offer(query: Query, confirm: Confirm, points: Tensor) -> Counterexample | None:
    """Hand over those of the points [points, inputs] that meet a disjunct, or almost do."""
    outputs = query.network(points)
    worst = query.worst(outputs).amin(-1)
    size = outputs.abs().amax(-1).clamp(min=1)
    near = torch.nonzero(worst <= NEAR * size).flatten()
    if not len(near):
        return None
    return confirm(points[near[worst[near].argsort()][:8]])
