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
from fgp_vnn.domain.sets import Domain
from fgp_vnn.query import Query
from fgp_vnn.strategy import Inputs


class Combined(NamedTuple):
    """What the rows of each disjunct give together."""

    closed: Tensor  # [batch, disjuncts] proved not to be met
    weights: Tensor  # [batch, rows] of the rows within their disjunct
    points: Tensor | None  # [batch, disjuncts of several rows, inputs] candidates


def weigh_rows(query: Query, domain: Domain, passed: Backward, numbers: Inputs) -> Combined:
    """Weigh the rows of each disjunct against each other in a batch of bundles."""
    closed = query.closed(passed.least)
    weights = torch.ones_like(passed.least)
    points: list[Tensor] = []
    for disjunct, rows in enumerate(query.members):
        if len(rows) < 2:
            continue
        best, share, point = _weigh(domain, passed, rows, numbers)
        closed[:, disjunct] |= positive(best)
        weights[:, rows] = share
        points.append(point)
    return Combined(closed, weights, torch.stack(points, 1) if points else None)


def _weigh(
    domain: Domain, passed: Backward, rows: Tensor, numbers: Inputs
) -> tuple[Tensor, Tensor, Tensor]:
    """The best proved least value [batch], its weights [batch, m] and the average point."""
    weight, value = passed.weight[:, rows], passed.constant[:, rows]
    size_of, box = unit(value.dtype), domain.box()
    # What the differences lose to underflow counts before it is scaled.
    rounding = (passed.nominal - passed.least)[:, rows] + size_of.lost
    scale = 1 / (domain.outer_support(weight) + value.abs())  # a support is no less than `lost`
    # Scaled, the sizes of all terms sum to 1. A term is rounded in its product and scale, in the
    # sum over the rows, and in a support; where the sum is positive, the errors that are taken off
    # it weigh less than the values, so that twice the roundings of these are enough for both.
    steps = weight.shape[-1] + 2 * len(rows) + 20
    widths = (box.upper - box.lower).sum(-1)
    small = size_of.share(steps) + size_of.lost * (6 * len(rows) + 8) * (1 + widths)
    share = torch.full_like(value, 1 / len(rows))
    best = torch.full_like(value[:, 0], -torch.inf)
    chosen, average = share, torch.zeros_like(weight[:, 0])
    center = domain.center
    for turn in range(1, numbers.mixing + 1):
        mixed = share * scale  # [batch, m]
        total = (mixed.unsqueeze(-1) * weight).sum(-2, keepdim=True)
        level = (mixed * (value - rounding)).sum(-1)
        least = below(level - domain.support(-total).squeeze(-1) - small)
        better = least > best
        best = torch.where(better, least, best)
        chosen = torch.where(better.unsqueeze(-1), mixed, chosen)
        point = domain.maximiser(-total).squeeze(-2)
        average = average + (point - average) / turn
        at = (weight * (point - center).unsqueeze(-2)).sum(-1) + value
        share = share * torch.exp((at * scale).clamp(-30, 30) * (numbers.mixing_rate / turn**0.5))
        share = share / share.sum(-1, keepdim=True)
    return best, chosen, average
