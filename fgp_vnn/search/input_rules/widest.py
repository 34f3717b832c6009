"""Split rule: the longest side of each box, whatever the network is."""

from __future__ import annotations

from torch import Tensor

from fgp_vnn.bounds.backward import Backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query
from fgp_vnn.strategy import Inputs


def sides(
    query: Query, box: Box, bounds: LayerBounds, passed: Backward, weights: Tensor, numbers: Inputs
) -> Tensor:
    """Half of the length of each side [boxes, inputs]."""
    return box.radius


RULE = sides
