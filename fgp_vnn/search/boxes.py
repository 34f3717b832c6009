"""Linear bounds of a batch of boxes, and scores of the inputs along which to halve each.

Bounds of hidden neurons are recomputed for each box, but only for the neurons that were unstable
in its parent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.bounds.backward import Backward, backward
from fgp_vnn.bounds.forward import Forward
from fgp_vnn.bounds.joint_products import regain
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query
from fgp_vnn.search import input_rules
from fgp_vnn.search.clipping import clip_boxes
from fgp_vnn.search.conjunctions import weigh_rows
from fgp_vnn.search.last_boxes import Parts
from fgp_vnn.search.rules import find_rule
from fgp_vnn.strategy import Inputs, Strategy


@dataclass(frozen=True)
class Subdivision:
    """How to split boxes."""

    coarse: bool = True  # bound in float32 first
    lp: bool = False  # boxes that no split decides are walked through, with LPs at the end
    clip: bool = True  # boxes are cut down to where a counterexample can still be
    neurons: bool = True  # boxes with few unstable neurons are decided by neuron splits
    attacks: bool = True  # between batches of boxes
    whole: bool = False  # a box that is too small to be split ends the search: only unsat is of use
    strategy: Strategy = field(default_factory=Strategy)


# A split rule of `input_rules`.
Pull = Callable[[Query, Box, LayerBounds, Backward, Tensor, Inputs], Tensor]


class BoundedBoxes(NamedTuple):
    """A batch of boxes with its bounds."""

    closed: Tensor  # [boxes] proved to hold no counterexample
    nominal: Tensor  # [boxes, rows] lower bounds of g before the rounding error is subtracted
    points: Tensor  # [boxes, points, inputs] where the linear bounds are least
    left: Parts  # the part of each box in which an open disjunct can still be met
    pull: Tensor  # [boxes, inputs] loss of the relaxation that each input causes
    weights: Tensor  # [boxes, rows] of the rows in the sums that are positive where closed
    shut: Tensor  # [boxes, disjuncts] proved not to be met
    bounds: LayerBounds  # of the hidden neurons, [boxes or 1, n_k]
    almost: Tensor  # [boxes] closed but for rounding error, or with bounds that overflow


def bound_boxes(
    query: Query, parts: Parts, forward: Forward | None, budget: Budget, subdivision: Subdivision
) -> BoundedBoxes:
    """Bounds of every row in each box, by bounds of hidden neurons in that box."""
    network = query.network
    box = Box(parts.lower, parts.upper)
    known = torch.split(parts.signs, list(network.widths), -1)
    prior = None
    if network.layers:
        prior = LayerBounds.of_signs(known, box.lower.dtype, network.activations)
    if forward is not None:
        bounds = forward.bounds(box, prior)
    else:
        bounds = root_bounds(network, box, prior=prior, budget=budget)
    numbers, rounding = subdivision.strategy.inputs, Rounding(network, box, bounds)
    passed = _whole(_pass(query, box, bounds, rounding), len(parts.lower))
    seen = passed
    if box.lower.shape[-1] <= numbers.together:
        passed, seen = regain(network, box, bounds, passed, rounding)
    combined = weigh_rows(query, box, passed, numbers)
    points = box.maximiser(-passed.weight)
    if combined.points is not None:
        points = torch.cat([points, combined.points], dim=1)
    left, closed = box, combined.closed
    if subdivision.clip:
        left, closed = clip_boxes(query, box, passed, closed)
    rule: Pull = find_rule(input_rules, numbers.rule)
    pull = rule(query, box, bounds, seen, combined.weights, numbers)
    signs = bounds.signs(len(parts.signs)) if network.layers else parts.signs
    kept = Parts(left.lower, left.upper, signs)
    weights = _proving(query, passed.least, combined.weights)
    nominal = passed.nominal
    almost = (closed | combined.almost).all(-1) | ~nominal.isfinite().all(-1)
    done = closed.all(-1)
    return BoundedBoxes(done, nominal, points, kept, pull, weights, closed, bounds, almost)


def _pass(query: Query, box: Box, bounds: LayerBounds, rounding: Rounding) -> Backward:
    """Backward pass of all rows; a row that several disjuncts share is computed once."""
    network, (first, place) = query.network, query.distinct
    rows = torch.eye(network.outputs, dtype=box.lower.dtype, device=box.lower.device)[first]
    depth, lines = len(network.layers), bounds.lines()
    passed = backward(network, box, depth, rows.unsqueeze(0), lines, rounding=rounding)
    return passed if len(first) == len(place) else passed.at((slice(None), place))


def _proving(query: Query, least: Tensor, weights: Tensor) -> Tensor:
    """The weights [boxes, rows], with the best row alone where it closes its disjunct."""
    best = query.worst(least)[..., query.disjunct]
    return torch.where(best > 0, (least >= best).to(weights.dtype), weights)


def _whole(passed: Backward, count: int) -> Backward:
    """Expand a pass shared by all boxes (of a network without hidden layers) to one per box."""
    weight, constant, least, nominal = (p.expand(count, *p.shape[1:]) for p in passed[:4])
    return Backward(weight, constant, least, nominal, passed.coefficients)


def can_be_split(parts: Parts) -> Tensor:
    """Which sides [boxes, inputs] have a number strictly between their ends."""
    middle = (parts.lower + parts.upper) / 2
    return (parts.lower < middle) & (middle < parts.upper)


def halves(parts: Parts, dimension: Tensor) -> Parts:
    """The lower and then the upper halves of the boxes, each along its own input [boxes]."""
    index = dimension.unsqueeze(-1)
    middle = (parts.lower + parts.upper).gather(-1, index) / 2
    lower = torch.cat([parts.lower, parts.lower.scatter(-1, index, middle)])
    upper = torch.cat([parts.upper.scatter(-1, index, middle), parts.upper])
    return Parts(lower, upper, torch.cat([parts.signs, parts.signs]))


def bound_exactly(
    query: Query,
    parts: Parts,
    bounded: BoundedBoxes,
    again: Tensor,
    budget: Budget,
    subdivision: Subdivision,
) -> BoundedBoxes:
    """Copy of `bounded` with the boxes `again` bounded in the query's own precision."""
    lower, upper = (s[again].to(query.network.dtype) for s in (parts.lower, parts.upper))
    boxes = Parts(lower, upper, parts.signs[again])
    exact = bound_boxes(query, boxes, None, budget, subdivision)
    return bounded._replace(
        closed=bounded.closed.index_copy(0, again, exact.closed),
        weights=bounded.weights.index_copy(0, again, exact.weights.to(bounded.weights.dtype)),
    )


def score(query: Query, least: Tensor) -> Tensor:
    """Level of each box [boxes]: the best row of its worst disjunct."""
    return query.worst(least).amin(-1)


def open_boxes(bounded: BoundedBoxes) -> Tensor:
    """Which boxes [boxes] are open and can be split."""
    return ~bounded.closed & can_be_split(bounded.left).any(-1)


def left_open(bounded: BoundedBoxes, share: Tensor) -> tuple[Tensor, ...]:
    """Number of open boxes that can be split, number of open boxes that cannot, and the sum of
    `share` [boxes] over the closed boxes."""
    open_ = open_boxes(bounded)
    return open_.sum(), (~bounded.closed & ~open_).sum(), (share * bounded.closed).sum()
