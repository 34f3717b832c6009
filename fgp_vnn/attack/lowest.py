"""Lowest sampled values of the rows of a query."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fgp_vnn.attack.descent import descent_starts, step_down
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import parts, points_at_once
from fgp_vnn.query import Query
from fgp_vnn.strategy import Descent


@dataclass(eq=False)
class Lowest:
    """The lowest value found so far for each row of a query, and the point that attains it."""

    value: Tensor  # [rows]
    points: Tensor  # [rows, inputs]

    @classmethod
    def of(cls, query: Query) -> Lowest:
        """The values at the centre of the domain."""
        center = query.domain.center
        return cls(query.network(center.unsqueeze(0))[0], center.repeat(query.network.outputs, 1))

    def look(self, points: Tensor, query: Query) -> None:
        """Update the lowest values from points [points, inputs] of the domain."""
        if not len(points):
            return
        values = query.network(points)  # [points, rows]
        # Ignore infinite and NaN values, and all values at points with infinite or NaN inputs.
        good = values.isfinite() & points.isfinite().all(-1, keepdim=True)
        least, at = torch.where(good, values, torch.inf).min(0)
        lower = least < self.value
        self.value = torch.where(lower, least, self.value)
        self.points = torch.where(lower.unsqueeze(-1), points[at], self.points)


def lowest_by_descent(query: Query, lowest: Lowest, budget: Budget, attack: Descent) -> None:
    """Lower the values of each row by gradient steps, in batches of rows (or of one row's starts)
    that fit into memory."""
    fit = points_at_once(query.network, budget.at_once)

    for some in parts(query.disjuncts, fit // attack.restarts):
        part = query.only(range(query.disjuncts)[some])

        def look(x: Tensor, values: Tensor) -> bool:
            lowest.look(x, query)
            return False

        begin = descent_starts(part.domain, part.disjuncts, attack)
        for points in torch.split(begin, fit) if len(begin) else ():
            step_down(part, look, budget, attack, points)
            if budget.expired():
                return
