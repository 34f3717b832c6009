"""A second check of evidence, by a backward pass through its region.

The rounding error of a region's forms grows with every layer, and can exceed a small margin of the
evidence. A backward pass of the weighted sum itself, with the region's signs as slopes and the
multipliers as beta, weighs each layer's rounding by the bounds of the layer below: this error does
not grow with depth.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive
from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import Budget
from fgp_vnn.query import Query


class Refuter:
    """A second proof attempt with less rounding; layer bounds are computed on first use."""

    def __init__(self, query: Query, budget: Budget, bounds: LayerBounds | None = None) -> None:
        self._query, self._budget, self._bounds = query, budget, bounds

    def __call__(self, signs: Tensor, multipliers: Tensor) -> bool:
        """Whether the multipliers [neurons + outputs] prove that the region with these signs
        [neurons] misses the rows j with m_j > 0: sum m_j g_j > sum m_u s_u z_u >= 0 in it."""
        network, domain = self._query.network, self._query.domain
        if self._bounds is None:
            self._bounds = root_bounds(network, domain, budget=self._budget)
        widths = list(network.widths)
        pattern = torch.split(signs.unsqueeze(0), widths, -1)
        *weights, rows = torch.split(
            multipliers.clamp(min=0).reshape(1, 1, -1), [*widths, network.outputs], -1
        )
        bounds = self._bounds.within(pattern)
        passed = backward(
            network,
            domain,
            len(widths),
            rows,
            bounds.lines(),
            beta=[m * sign.unsqueeze(-2) for m, sign in zip(weights, pattern, strict=True)],
            rounding=Rounding(network, domain, bounds),
        )
        return bool(positive(passed.least))
