"""Conjunctions of several rows: a proof that they are never met together, even if none of them is
positive everywhere.

Each row has a linear lower bound w_j . (x - c) + v_j in a bundle. If for some weights m >= 0 the
sum of m_j times these is positive on the whole domain, then at every point some g_j > 0, and the
disjunct is not met. This is a zero-sum game between the weights and x. For two rows, tangents find
the best weights. For more, multiplicative updates move weight towards the rows that are greatest
where the sum is least, and the average point is a candidate.
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


class WeighedRows(NamedTuple):
    """Bounds that the rows of each disjunct give together."""

    closed: Tensor  # [batch, disjuncts] proved not to be met
    almost: Tensor  # [batch, disjuncts] the same, ignoring rounding errors
    weights: Tensor  # [batch, rows] of the rows within their disjunct
    points: Tensor | None  # [batch, disjuncts of several rows, inputs] candidates


def weigh_rows(query: Query, box: Box, passed: Backward, numbers: Inputs) -> WeighedRows:
    """Weigh the rows of each disjunct against each other in a batch of boxes [batch, inputs].

    Only disjuncts that no single row closes are weighed; the others have weights of 0.
    """
    closed, almost = query.closed(passed.least), query.closed(passed.nominal)
    weights = (~closed).to(passed.least.dtype)[:, query.disjunct]
    if not query.conjunctions:
        return WeighedRows(closed, almost, weights, None)
    points = box.center.unsqueeze(-2).repeat(1, query.disjuncts, 1)
    for disjuncts, rows in query.conjunctions:
        which, number = torch.nonzero(~closed[:, disjuncts], as_tuple=True)  # [pairs] each
        if not len(which):
            continue
        disjunct, pairs = disjuncts[number], (which.unsqueeze(-1), rows[number])
        game = _Game(box.at(which), passed, pairs)
        best, point = (_of_two if rows.shape[-1] == 2 else _of_several)(game, numbers)
        closed[which, disjunct] = positive(best.least)
        almost[which, disjunct] |= best.nominal > 0
        weights[pairs] = best.share * game.scale
        points[which, disjunct] = point
    several = torch.cat([disjuncts for disjuncts, _ in query.conjunctions]).sort().values
    return WeighedRows(closed, almost, weights, points[:, several])


class _Played(NamedTuple):
    """Weights of rows, and the point where the sum that they give is least."""

    share: Tensor  # [pairs, m]
    least: Tensor  # [pairs] proved lower bound of the weighted sum
    nominal: Tensor  # [pairs] the same before the rounding error is subtracted
    point: Tensor  # [pairs, inputs]
    rows: Tensor  # [pairs, m] scaled values of the rows at this point


class _Game:
    """The game of the m rows of each pair of a box and a disjunct against the points of the box,
    by the rows' linear lower bounds."""

    def __init__(self, box: Box, passed: Backward, pairs: tuple[Tensor, Tensor]) -> None:
        weight, value = passed.weight[pairs], passed.constant[pairs]  # [pairs, m, ...]
        error = (passed.nominal - passed.least)[pairs]  # of rounding
        size_of, count = unit(value.dtype), value.shape[-1]
        self.box, self._weight, self._value = box, weight, value
        # The underflow of this difference is subtracted before it is scaled.
        self._level = value - (error + size_of.underflow)
        # A support is at least `lost`, so this does not divide by 0.
        self.scale = 1 / (box.outer_support(weight) + value.abs())
        # After scaling, the sizes of all terms sum to 1. A term is rounded in its product and
        # scale, in the sum over the rows, and in a support. Where the sum is positive, the errors
        # subtracted from it are smaller than the values, so twice the roundings of the values are
        # enough for both.
        steps = weight.shape[-1] + 2 * count + 20
        widths = (box.upper - box.lower).sum(-1)
        self._small = size_of.share(steps) + size_of.underflow * (6 * count + 8) * (1 + widths)

    def play(self, share: Tensor) -> _Played:
        """Play weights [pairs, m] against the points that minimise their sums."""
        weight, value, mixed = self._weight, self._value, share * self.scale
        total = (mixed.unsqueeze(-1) * weight).sum(-2, keepdim=True)
        support = self.box.support(-total).squeeze(-1)
        least = below((mixed * self._level).sum(-1) - support - self._small)
        nominal = (mixed * value).sum(-1) - support
        point = self.box.maximiser(-total).squeeze(-2)
        rows = (weight * (point - self.box.center).unsqueeze(-2)).sum(-1) + value
        return _Played(share, least, nominal, point, rows * self.scale)


def _of_two(game: _Game, numbers: Inputs) -> tuple[_Played, Tensor]:
    """The best weights of two rows, and a point at which both are about equal. The minimum is
    concave and piecewise linear in the weight of the second row, with few pieces: the next weight
    to try is where the tangents at two weights meet."""
    first = torch.zeros_like(game.scale)
    first[:, 0] = 1
    low, high = game.play(first), game.play(1 - first)
    best = _better(low, high)
    for _ in range(numbers.tangents):
        rise, fall = ((end.rows[:, 1] - end.rows[:, 0]) for end in (low, high))
        meet = (high.rows[:, 0] - low.rows[:, 0]) / (rise - fall)
        second = torch.where((rise > 0) & (fall < 0), meet, 0.5).nan_to_num(0.5).clamp(0, 1)
        tried = game.play(torch.stack([1 - second, second], -1))
        up = tried.rows[:, 1] > tried.rows[:, 0]
        low, high, best = _pick(up, tried, low), _pick(up, high, tried), _better(tried, best)
    rise, fall = ((end.rows[:, 1] - end.rows[:, 0]) for end in (low, high))
    part = (rise / (rise - fall)).nan_to_num(0.5).clamp(0, 1).unsqueeze(-1)
    return best, low.point + part * (high.point - low.point)


def _of_several(game: _Game, numbers: Inputs) -> tuple[_Played, Tensor]:
    """The best weights that multiplicative updates find, and the average of the minimisers."""
    played = game.play(torch.full_like(game.scale, 1 / game.scale.shape[-1]))
    best, average = played, played.point
    for turn in range(1, numbers.mixing):
        raised = torch.exp(played.rows.clamp(-30, 30) * (numbers.mixing_rate / turn**0.5))
        share = played.share * raised
        played = game.play(share / share.sum(-1, keepdim=True))
        best = _better(played, best)
        average = average + (played.point - average) / (turn + 1)
    return best, average


def _better(one: _Played, other: _Played) -> _Played:
    return _pick(one.least > other.least, one, other)


def _pick(first: Tensor, one: _Played, other: _Played) -> _Played:
    """Pick `one` where `first` [pairs] is true, else `other`."""
    wide = first.unsqueeze(-1)
    parts = zip(one, other, strict=True)
    return _Played(*(torch.where(first if a.dim() == 1 else wide, a, b) for a, b in parts))
