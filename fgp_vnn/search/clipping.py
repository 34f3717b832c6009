"""The part of a box in which a disjunct can still be met.

At a counterexample each row of the disjunct is at most 0, and so is its linear lower bound
w . (x - c) + v. Along input i the other inputs can make up for at most sum_{l != i} |w_l| r_l, so

    w_i (x_i - c_i) <= -v + sum_{l != i} |w_l| r_l = (h - v) - |w_i| r_i,

and everything beyond can be cut off, as unit propagation does in a SAT solver.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.bounds.backward import Backward
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query


def clip_boxes(query: Query, box: Box, passed: Backward, closed: Tensor) -> tuple[Box, Tensor]:
    """The smallest boxes around the points at which open disjuncts can be met, and `closed` [boxes,
    disjuncts] with the disjuncts added for which nothing is left.
    """
    lower, upper = _limits(box, passed)  # [boxes, rows, inputs]
    index = query.disjunct[:, None].expand_as(lower)
    shape = (len(lower), query.disjuncts, lower.shape[-1])  # [boxes, disjuncts, inputs]
    low = box.lower.unsqueeze(1).expand(shape).scatter_reduce(1, index, lower, "amax")
    high = box.upper.unsqueeze(1).expand(shape).scatter_reduce(1, index, upper, "amin")
    closed = closed | (low > high).any(-1)
    gone = closed.unsqueeze(-1)
    low = torch.where(gone, torch.inf, low).amin(1)
    high = torch.where(gone, -torch.inf, high).amax(1)
    shut = closed.all(-1, keepdim=True)
    return Box(torch.where(shut, box.lower, low), torch.where(shut, box.upper, high)), closed


def _limits(box: Box, passed: Backward) -> tuple[Tensor, Tensor]:
    """Lower and upper limits of each row on each input, rounded outwards."""
    room = (-passed.least).clamp(min=0).unsqueeze(-1)  # h - v, including all rounding errors
    weight, radius = passed.weight, box.radius.unsqueeze(-2)
    center = box.center.unsqueeze(-2)
    size_of = unit(weight.dtype)
    reach = room / weight.abs()  # infinite or NaN where the row does not depend on the input
    spare = size_of.share(5) * (reach + radius + center.abs()) + 5 * size_of.underflow
    limit = reach - radius + spare  # a quotient and three sums
    nothing = torch.full_like(limit, torch.inf)
    upper = torch.where(weight > 0, center + limit, nothing)
    lower = torch.where(weight < 0, center - limit, -nothing)
    return torch.where(lower.isnan(), -nothing, lower), torch.where(upper.isnan(), nothing, upper)
