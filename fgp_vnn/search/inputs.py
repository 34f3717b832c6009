"""The split search along inputs: boxes halved until linear bounds decide each.

For inputs of few dimensions this beats splitting neurons: a smaller box makes every relaxation
tighter at once. Hidden bounds are computed anew for each box, but only for the neurons that were
unstable in the box it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.attack.descent import descend, offer
from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.bounds.backward import Backward, LayerBounds, Rounding, backward, root_bounds
from fgp_vnn.bounds.forward import Forward, pays
from fgp_vnn.bounds.joint_products import regain
from fgp_vnn.bounds.lines import gap
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import boxes_at_once
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.query import Query
from fgp_vnn.search.best_first import forget
from fgp_vnn.search.clipping import clip
from fgp_vnn.search.conjunctions import combine
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.last_boxes import Parts, last_boxes, walk_boxes
from fgp_vnn.search.walk.walk import Walk
from fgp_vnn.strategy import Strategy


@dataclass(frozen=True)
class Subdivision:
    """How to split boxes."""

    coarse: bool = True  # in float32 first
    lp: bool = False  # boxes that no split decides are walked through, with LPs at the end
    clip: bool = True  # boxes are cut down to where a counterexample can still be
    strategy: Strategy = field(default_factory=Strategy)


# Takes the corners [boxes, inputs] of boxes, the weights [boxes, rows] of the rows in the sums that
# prove those of them that are closed, and which ones are [boxes].
KeepBoxes = Callable[[Tensor, Tensor, Tensor, Tensor], None]


class _Bounded(NamedTuple):
    closed: Tensor  # [boxes] proved
    nominal: Tensor  # [boxes, rows] lower bounds of g before rounding is taken off
    points: Tensor  # [boxes, points, inputs] where the linear bounds are least
    left: Parts  # what the open disjuncts leave of each box
    pull: Tensor  # [boxes, inputs] what the relaxation loses by each input
    weights: Tensor  # [boxes, rows] of the rows in the sums that are positive where closed


def split_inputs(
    query: Query,
    confirm: Confirm,
    budget: Budget,
    subdivision: Subdivision,
    keep: KeepBoxes = forget,
) -> Outcome:
    """Search the query's box, halving sides until every part is decided.

    Bounds are computed in float32, with their rounding error; where only that keeps a box open,
    once more in the query's own precision.
    """
    # Forms carried forward add up rounding errors over the layers: too many for float32.
    numbers, attack = subdivision.strategy.inputs, subdivision.strategy.attack
    factor = subdivision.strategy.slopes.forward_factor
    forward = Forward(query.network) if pays(query.network, factor) else None
    in_float32 = subdivision.coarse and forward is None
    coarse = query.to(query.network.device, torch.float32) if in_float32 else query
    box = coarse.domain
    if not isinstance(box, Box):
        raise TypeError("inputs are split in boxes only")
    frontier = Frontier(budget.waiting)
    fit = min(numbers.batch, boxes_at_once(query.network, budget.at_once))
    signs = torch.zeros(1, query.network.neurons, dtype=torch.int8, device=box.lower.device)
    parts = Parts(box.lower.unsqueeze(0), box.upper.unsqueeze(0), signs)
    statistics = {"boxes": 0, "stuck": 0, **({"lps": 0} if subdivision.lp else {})}
    batches, reasons = 0, list[str]()
    while True:
        statistics["boxes"] += len(parts.lower)
        bounded = _bound(coarse, parts, forward, budget, subdivision)
        bounded = _exact(query, coarse, parts, bounded, budget, subdivision)
        keep(parts.lower, parts.upper, bounded.weights, bounded.closed)
        points = bounded.points.flatten(0, 1)
        found = offer(coarse, confirm, points, coarse.network(points), attack.in_boxes.offer)
        batches += 1
        if found is None and batches % attack.box_batches == 0:
            # The centres of the lowest boxes are where an attack starts best.
            starts = ((parts.lower + parts.upper) / 2).repeat(query.disjuncts, 1)
            found = descend(coarse, confirm, budget, attack.in_boxes, starts)
        if found is None and subdivision.lp:
            rest = last_boxes(box, bounded.left, bounded.closed, numbers)
            boxes = Parts(*(part[rest] for part in bounded.left))
            walk = Walk(
                lp=True,
                numbers=subdivision.strategy.walk,
                projections=subdivision.strategy.projections,
            )
            found = walk_boxes(query, boxes, confirm, budget, walk, statistics, reasons)
            bounded = bounded._replace(closed=bounded.closed.index_fill(0, rest, True))
        if found is not None:
            return Outcome("sat", found, statistics=statistics)
        _keep_open(query, frontier, bounded)
        if budget.expired() and len(frontier):
            reason = f"time is up with {len(frontier)} boxes open"
            return Outcome("timeout", reason=reason, statistics=statistics)
        parts = _next(frontier, fit, statistics)
        if not len(parts.lower):
            break
    return _ended(statistics, reasons, budget)


def _ended(statistics: dict[str, int], reasons: list[str], budget: Budget) -> Outcome:
    """The outcome when no box waits any longer."""
    if statistics["stuck"] and budget.expired():
        return Outcome("timeout", reason="time is up in the last boxes", statistics=statistics)
    if statistics["stuck"]:
        reason = f"{statistics['stuck']} boxes are too small to be split further"
        if reasons:
            reason = f"{statistics['stuck']} boxes could not be settled; in the last {reasons[-1]}"
        return Outcome("unknown", reason=reason, statistics=statistics)
    return Outcome("unsat", statistics=statistics)


def _bound(
    query: Query, parts: Parts, forward: Forward | None, budget: Budget, subdivision: Subdivision
) -> _Bounded:
    """Bounds of every row in each box, by hidden bounds of its own."""
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
    rounding = Rounding(network, box, bounds)
    passed = _whole(_pass(query, box, bounds, rounding), len(parts.lower))
    left: dict[int, Tensor] = {}
    if box.lower.shape[-1] <= subdivision.strategy.inputs.together:
        passed, left = regain(network, box, bounds, passed, rounding)
    numbers = subdivision.strategy.inputs
    combined = combine(query, box, passed, numbers)
    points = box.maximiser(-passed.weight)
    if combined.points is not None:
        points = torch.cat([points, combined.points], dim=1)
    rest, closed = box, combined.closed
    if subdivision.clip:
        rest, closed = clip(query, box, passed, closed)
    shares = {k: combined.weights * part for k, part in left.items()}
    pull = _loss(query, box, bounds, passed, combined.weights, shares, numbers.corners)
    signs = _signs(bounds, parts.signs)
    kept = Parts(rest.lower, rest.upper, signs)
    weights = _proving(query, passed.least, combined.weights)
    return _Bounded(closed.all(-1), passed.nominal, points, kept, pull, weights)


def _pass(query: Query, box: Box, bounds: LayerBounds, rounding: Rounding) -> Backward:
    """A backward pass of all rows, each of which is taken once, however many disjuncts share it."""
    network, (first, place) = query.network, query.distinct
    rows = torch.eye(network.outputs, dtype=box.lower.dtype, device=box.lower.device)[first]
    depth, lines = len(network.layers), bounds.lines()
    passed = backward(network, box, depth, rows.unsqueeze(0), lines, rounding=rounding)
    if len(first) == len(place):
        return passed
    coefficients = {k: part[:, place] for k, part in passed.coefficients.items()}
    return Backward(*(part[:, place] for part in passed[:4]), coefficients)


def _proving(query: Query, least: Tensor, weights: Tensor) -> Tensor:
    """The weights [boxes, rows], but one row alone where that is enough for its disjunct."""
    best = query.worst(least)[..., query.disjunct]
    return torch.where(best > 0, (least >= best).to(weights.dtype), weights)


def _whole(passed: Backward, count: int) -> Backward:
    """A pass of one row for all boxes, as happens without hidden layers, made one for each."""
    weight, constant, least, nominal = (p.expand(count, *p.shape[1:]) for p in passed[:4])
    return Backward(weight, constant, least, nominal, passed.coefficients)


def _exact(
    query: Query,
    coarse: Query,
    parts: Parts,
    bounded: _Bounded,
    budget: Budget,
    subdivision: Subdivision,
) -> _Bounded:
    """Bound again in float64 the boxes that only rounding, or the range of float32, kept open."""
    if coarse is query:
        return bounded
    shut = query.closed(bounded.nominal).all(-1) | ~bounded.nominal.isfinite().all(-1)
    again = torch.nonzero(~bounded.closed & shut).flatten()
    if not len(again):
        return bounded
    lower, upper = (s[again].to(query.network.dtype) for s in (parts.lower, parts.upper))
    boxes = Parts(lower, upper, parts.signs[again])
    exact = _bound(query, boxes, None, budget, subdivision)
    return bounded._replace(
        closed=bounded.closed.index_copy(0, again, exact.closed),
        weights=bounded.weights.index_copy(0, again, exact.weights.to(bounded.weights.dtype)),
    )


def _loss(
    query: Query,
    box: Box,
    bounds: LayerBounds,
    passed: Backward,
    weights: Tensor,
    shares: dict[int, Tensor],
    corners: float,
) -> Tensor:
    """What the relaxation loses, shared out over the inputs [boxes, inputs] that cause it; rows
    count with their weights [boxes, rows], or with what takes the place of these at some layers.

    A neuron loses up to (its coefficient) times the height of its triangle; it is unstable because
    inputs move it, each by the part that its slope at the centre says.
    """
    network = query.network
    inputs = box.lower.shape[-1]
    eye = torch.eye(inputs, dtype=box.lower.dtype, device=box.lower.device)
    columns = [eye * box.radius.unsqueeze(-2)]  # [boxes, inputs, n]
    before = network.preactivations(box.center)
    # Where nothing is lost, rows that are least at different corners still keep a box open.
    total = corners * (passed.weight.abs() * box.radius.unsqueeze(-2)).sum(-2)
    for k, layer in enumerate(network.layers):
        moved = layer.linear([columns[s] for s in layer.sources])  # [boxes, inputs, n_k]
        if k + 1 in passed.coefficients:
            line, f = bounds.lines()[k], network.activations[k]
            height = gap(f, line, bounds.lower[k], bounds.upper[k])
            weighed = passed.coefficients[k + 1].abs() * shares.get(k, weights).unsqueeze(-1)
            lost = (weighed * height).sum(-2, keepdim=True)
            share = network.activations[k].expand(moved).abs()
            share = share.reshape(*share.shape[:-1], -1, lost.shape[-1]).sum(-2)
            share = share / share.sum(-2, keepdim=True).clamp(min=1e-30)
            # What has no bounds yet says nothing of where to split.
            total = total + (share * lost).sum(-1).nan_to_num(0.0, 0.0, 0.0)
        columns.append(network.activations[k].push(before[k].unsqueeze(-2), moved))
    return total


def _signs(bounds: LayerBounds, like: Tensor) -> Tensor:
    parts = [like[:, :0]]
    triples = zip(bounds.activations, bounds.lower, bounds.upper, strict=True)
    for activation, lower, upper in triples:
        sign = (lower >= 0).to(torch.int8) - ((upper <= 0) & (lower < 0)).to(torch.int8)
        sign = sign if activation is RELU else torch.zeros_like(sign)
        parts.append(sign.expand(len(like), -1))
    return torch.cat(parts, -1)


def _score(query: Query, least: Tensor) -> Tensor:
    """How far a box [boxes] is from being decided: its worst disjunct's best row."""
    return query.worst(least).amin(-1)


def _keep_open(query: Query, frontier: Frontier, bounded: _Bounded) -> None:
    open_ = torch.nonzero(~bounded.closed).flatten()
    frontier.push(
        _score(query, bounded.nominal)[open_],
        lower=bounded.left.lower[open_],
        upper=bounded.left.upper[open_],
        signs=bounded.left.signs[open_],
        pull=bounded.pull[open_],
    )


def _next(frontier: Frontier, batch: int, statistics: dict[str, int]) -> Parts:
    """The halves of the lowest boxes; none if no box is left that can be split."""
    while len(frontier):
        parts = _halve(frontier.pop(max(batch // 2, 1)), statistics)
        if len(parts.lower):
            return parts
    nothing = torch.zeros(0, 0)
    return Parts(nothing, nothing, nothing)


def _halve(taken: dict[str, Tensor], statistics: dict[str, int]) -> Parts:
    """Both halves of each box along the input that the relaxation loses most by."""
    parts = Parts(taken["lower"], taken["upper"], taken["signs"])
    middle = (parts.lower + parts.upper) / 2
    splits = (parts.lower < middle) & (middle < parts.upper)  # [boxes, inputs]
    able = splits.any(-1)
    statistics["stuck"] += int((~able).sum())
    parts = Parts(*(t[able] for t in parts))
    pull = torch.where(splits, taken["pull"], -torch.inf)[able]
    return _cut(parts, pull.argmax(-1))


def _cut(parts: Parts, dimension: Tensor) -> Parts:
    """The lower and then the upper halves of the boxes along one input [boxes] each."""
    index = dimension.unsqueeze(-1)
    middle = (parts.lower + parts.upper).gather(-1, index) / 2
    lower = torch.cat([parts.lower, parts.lower.scatter(-1, index, middle)])
    upper = torch.cat([parts.upper.scatter(-1, index, middle), parts.upper])
    return Parts(lower, upper, torch.cat([parts.signs, parts.signs]))
