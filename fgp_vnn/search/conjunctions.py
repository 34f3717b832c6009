"""Conjunctions of several rows: no row need be positive everywhere for all to fail together.

Each row has a linear lower bound w_j . (x - c) + v_j in a bundle. If for some weights m >= 0 the
sum of m_j times these is positive on the whole domain, then at every point some g_j > 0, and the
disjunct is not met. The weights are found by multiplicative updates towards the rows that are
greatest where the sum is least: a game between them and x, whose average point is a candidate.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import below, positive, unit
from fgp_vnn.bounds.backward import Backward
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query
from fgp_vnn.strategy import Inputs


class Combined(NamedTuple):
    """Bounds that the rows of each disjunct give together."""

    closed: Tensor  # [batch, disjuncts] proved not to be met
    weights: Tensor  # [batch, rows] of the rows within their disjunct
    points: Tensor | None  # [batch, disjuncts of several rows, inputs] candidates


def weigh_rows(query: Query, box: Box, passed: Backward, numbers: Inputs) -> Combined:
    """Weigh the rows of each disjunct against each other in a batch of boxes [batch, inputs].

    Only what no row closes by itself is weighed; a disjunct that is closed by one has no weights.
    """
    closed = query.closed(passed.least)
    weights = (~closed).to(passed.least.dtype)[:, query.disjunct]
    if not query.conjunctions:
        return Combined(closed, weights, None)
    points = box.center.unsqueeze(-2).repeat(1, query.disjuncts, 1)
    for disjuncts, rows in query.conjunctions:
        which, number = torch.nonzero(~closed[:, disjuncts], as_tuple=True)  # [pairs] each
        if not len(which):
            continue
        disjunct, pairs = disjuncts[number], (which.unsqueeze(-1), rows[number])
        best, share, point = _weigh(box.at(which), _Rows.of(passed, *pairs), numbers)
        closed[which, disjunct] = positive(best)
        weights[pairs] = share
        points[which, disjunct] = point
    several = torch.cat([disjuncts for disjuncts, _ in query.conjunctions]).sort().values
    return Combined(closed, weights, points[:, several])


class _Rows(NamedTuple):
    """Linear lower bounds of the m rows of each pair of a box and a disjunct."""

    weight: Tensor  # [pairs, m, inputs]
    value: Tensor  # [pairs, m]
    error: Tensor  # [pairs, m] of rounding

    @staticmethod
    def of(passed: Backward, boxes: Tensor, rows: Tensor) -> _Rows:
        error = (passed.nominal - passed.least)[boxes, rows]
        return _Rows(passed.weight[boxes, rows], passed.constant[boxes, rows], error)


def _weigh(box: Box, given: _Rows, numbers: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """The best proved least value [pairs], its weights [pairs, m] and the average point."""
    weight, value, error = given
    size_of, count = unit(value.dtype), value.shape[-1]
    # What the differences lose to underflow counts before it is scaled.
    rounding = error + size_of.lost
    scale = 1 / (box.outer_support(weight) + value.abs())  # a support is no less than `lost`
    # Scaled, the sizes of all terms sum to 1. A term is rounded in its product and scale, in the
    # sum over the rows, and in a support; where the sum is positive, the errors that are taken off
    # it weigh less than the values, so that twice the roundings of these are enough for both.
    steps = weight.shape[-1] + 2 * count + 20
    widths = (box.upper - box.lower).sum(-1)
    small = size_of.share(steps) + size_of.lost * (6 * count + 8) * (1 + widths)
    share = torch.full_like(value, 1 / count)
    best = torch.full_like(value[:, 0], -torch.inf)
    chosen, average = share, torch.zeros_like(weight[:, 0])
    center = box.center
    for turn in range(1, numbers.mixing + 1):
        mixed = share * scale  # [pairs, m]
        total = (mixed.unsqueeze(-1) * weight).sum(-2, keepdim=True)
        level = (mixed * (value - rounding)).sum(-1)
        least = below(level - box.support(-total).squeeze(-1) - small)
        better = least > best
        best = torch.where(better, least, best)
        chosen = torch.where(better.unsqueeze(-1), mixed, chosen)
        point = box.maximiser(-total).squeeze(-2)
        average = average + (point - average) / turn
        at = (weight * (point - center).unsqueeze(-2)).sum(-1) + value
        share = share * torch.exp((at * scale).clamp(-30, 30) * (numbers.mixing_rate / turn**0.5))
        share = share / share.sum(-1, keepdim=True)
    return best, chosen, average
