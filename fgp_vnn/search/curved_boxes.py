"""Bounds of a batch of boxes by second-order forms, and scores of the inputs to halve each along.

Disjuncts that no single row closes are tried by weighted sums of their rows, as in `conjunctions`:
second-order parts of rows add up as the rows do, and where one curves down another may curve up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive, unit
from fgp_vnn.bounds.backward import Backward
from fgp_vnn.bounds.curved_forms import reach
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.quadratics import Curved, bottom, least, straight, without_symbols
from fgp_vnn.bounds.second_order import Carried, SecondOrder
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query
from fgp_vnn.search.boxes import BoundedBoxes
from fgp_vnn.search.clipping import clip_boxes
from fgp_vnn.search.last_boxes import Parts
from fgp_vnn.strategy import Inputs


class CurvedRows:
    """The distinct rows of a query as second-order forms."""

    def __init__(self, query: Query, numbers: Inputs) -> None:
        first, self.place = query.distinct
        network = query.network
        self.query, self.numbers = query, numbers
        distinct = replace(network, output=network.output.select(first))
        self.forms = SecondOrder(distinct, numbers.symbols)
        self.groups = _groups(query)
        # The index of each distinct row's bend; rows without a bend share the last index.
        bent, count = self.forms.bent, distinct.outputs
        self.bends = bent.new_full((count,), len(bent)).index_copy(
            0, bent, torch.arange(len(bent), device=bent.device)
        )


def _groups(query: Query) -> list[tuple[Tensor, Tensor]]:
    """Groups of disjuncts [g] with the same number m of rows, and these rows [g, m]."""
    alone = [d for d in range(query.disjuncts) if len(query.rows_of(d)) == 1]
    numbers = query.disjunct.new_tensor
    single = [(numbers(alone), numbers([query.rows_of(d) for d in alone]))] if alone else []
    return [*single, *query.conjunctions]


class _Mixed(NamedTuple):
    """What weighted sums of rows prove in each box."""

    closed: Tensor  # [boxes, disjuncts]
    point: Tensor  # [boxes, inputs] y where the disjunct farthest from closed has its minimum
    pull: Tensor  # [boxes, inputs] loss of this disjunct that each input causes


def bound_curved(rows: CurvedRows, parts: Parts, *, cut: bool) -> BoundedBoxes:
    """Bounds of every row in each box. With `cut`, boxes are cut down to where a counterexample can
    still be."""
    query = rows.query
    box = Box(parts.lower, parts.upper)
    carried = rows.forms.rows(box, parts.signs)
    tangents, alone = _alone(rows, box, carried)
    bound = alone[:, rows.place]
    left, closed = box, query.closed(bound)
    if cut:
        left, closed = clip_boxes(query, box, tangents, closed)
    mixed = _mix(rows, carried, alone, closed)
    point = box.center + reach(box) * mixed.point
    point = torch.minimum(torch.maximum(point, box.lower), box.upper).unsqueeze(1)
    kept = Parts(left.lower, left.upper, carried.signs)
    weights = torch.zeros_like(bound)
    # Without finite bounds there are no scores: halve the longest side.
    pull = torch.where((mixed.pull > 0).any(-1, keepdim=True), mixed.pull, box.radius)
    shut, none = mixed.closed, LayerBounds((), ())
    closed = shut.all(-1)
    return BoundedBoxes(closed, bound, point, kept, pull, weights, shut, none, closed)


def _alone(rows: CurvedRows, box: Box, carried: Carried) -> tuple[Backward, Tensor]:
    """Tangents at the centre as linear bounds of all rows, and the best bound [boxes, distinct
    rows] of each single row."""
    shape, bent = rows.forms.shape, rows.forms.bent
    slope, level = straight(carried.flat, carried.error, shape)
    form = without_symbols(
        carried.flat[:, bent], carried.bend[:, :-1], carried.error[:, bent], shape
    )
    found = least(form, rows.numbers.descent)
    slope, level = slope.index_copy(1, bent, form.slope), level.index_copy(1, bent, found.level)
    floor = bottom(slope, level)
    alone = floor.index_copy(1, bent, torch.maximum(floor[:, bent], found.bound))
    weight = slope / reach(box).unsqueeze(-2)
    weight = torch.where(weight.isfinite(), weight, 0.0)  # a weight of 0 cuts nothing
    weight, level, floor = (part[:, rows.place] for part in (weight, level, floor))
    return Backward(weight, level, floor, floor, {}), alone


def _mix(rows: CurvedRows, carried: Carried, alone: Tensor, closed: Tensor) -> _Mixed:
    """Weigh the rows of each open disjunct against each other."""
    closed, inputs = closed.clone(), rows.forms.shape.inputs
    point, pull = (alone.new_zeros(len(alone), inputs) for _ in range(2))
    lowest = torch.full_like(point[:, 0], torch.inf)
    for disjuncts, numbers in rows.groups:
        which, number = torch.nonzero(~closed[:, disjuncts], as_tuple=True)  # [pairs] each
        if not len(which):
            continue
        box, row = which.unsqueeze(-1), rows.place[numbers[number]]
        flat, bend = carried.flat[box, row], carried.bend[box, rows.bends[row]]
        best = _weigh(rows, _Pairs(flat, bend, carried.error[box, row], alone[box, row]))
        proved = positive(best.bound)
        closed[which, disjuncts[number]] = proved
        level = torch.where(proved, torch.inf, best.bound)
        lowest = lowest.scatter_reduce(0, which, level, "amin")
        worst = torch.nonzero(~proved & (level <= lowest[which])).flatten()
        point[which[worst]] = best.point[worst]
        pull[which[worst]] = _pull(rows, carried, which[worst], best, worst)
    return _Mixed(closed, point, pull)


class _Pairs(NamedTuple):
    """The m rows of pairs of a box and a disjunct."""

    flat: Tensor  # [pairs, m, 1 + s]
    bend: Tensor  # [pairs, m, pairs + products]
    error: Tensor  # [pairs, m]
    alone: Tensor  # [pairs, m] the bound of each single row


class _Best(NamedTuple):
    """The weighted sum of rows with the greatest bound, for each pair."""

    bound: Tensor  # [pairs] of rows scaled to size 1
    point: Tensor  # [pairs, inputs]
    slope: Tensor  # [pairs, inputs]
    sag: Tensor  # [pairs, inputs]
    lost: Tensor  # [pairs, symbols]
    error: Tensor  # [pairs, 1]


def _weigh(rows: CurvedRows, given: _Pairs) -> _Best:
    """Weigh rows by multiplicative updates towards those that are greatest where the sum is
    least."""
    shape, numbers, size_of = rows.forms.shape, rows.numbers, unit(given.flat.dtype)
    count, rate = given.flat.shape[1], numbers.curved_rate
    size = given.flat.abs().sum(-1) + given.bend.abs().sum(-1)
    scale = 1 / (size + given.error)
    single = without_symbols(given.flat, given.bend, given.error, shape)
    exponent = _tame(rate * given.alone * scale)
    # All sizes sum to 1: the rounding error of the products and sums here is a share of that.
    spare = size_of.share(2 * count + shape.columns + 16)
    spare = spare + size_of.underflow * 8 * count * shape.columns
    best: _Best | None = None
    for turn in range(1, (numbers.curved_mixing if count > 1 else 1) + 1):
        weights = torch.softmax(exponent, -1) * scale  # [pairs, m]
        flat, bend = ((weights.unsqueeze(1) @ part).squeeze(1) for part in (given.flat, given.bend))
        error = size_of.grow(count + 8) * (weights * given.error).sum(-1) + spare
        form = without_symbols(flat, bend, error, shape)
        found = least(form, numbers.descent, None if best is None else best.point)
        fresh = _Best(
            found.bound, found.point, form.slope, found.sag, form.lost, form.error.unsqueeze(-1)
        )
        best = fresh if best is None else _better(best, fresh)
        exponent = exponent + _tame(_values(single, found.point) * scale * (rate / turn**0.5))
    if best is None:
        raise AssertionError("there is a turn at least")
    return best


def _tame(exponent: Tensor) -> Tensor:
    return exponent.nan_to_num(0.0, 0.0, 0.0).clamp(-30, 30)


def _better(best: _Best, fresh: _Best) -> _Best:
    up = fresh.bound > best.bound
    wide = up.unsqueeze(-1)
    rest = (torch.where(wide, b, a) for a, b in zip(best[1:], fresh[1:], strict=True))
    return _Best(torch.where(up, fresh.bound, best.bound), *rest)


def _values(form: Curved, point: Tensor) -> Tensor:
    """Lower bound of each row [pairs, m] at a point y [pairs, inputs]."""
    y = point.unsqueeze(1)
    bent = (form.matrix @ y.unsqueeze(-1)).squeeze(-1)
    return form.value + ((form.slope + bent) * y).sum(-1) - form.error


def _pull(rows: CurvedRows, carried: Carried, box: Tensor, best: _Best, which: Tensor) -> Tensor:
    """The loss of the sums `which` that each input causes, [pairs, inputs].

    The loss of a symbol is caused by the inputs that move its ReLU. Even where nothing is lost,
    rows that are least at different corners keep a box open.
    """
    moved, blame = carried.moved[box], carried.blame[box]
    shares = moved / moved.sum(-2, keepdim=True).clamp(min=1e-300)
    lost = (shares @ best.lost[which].unsqueeze(-1)).squeeze(-1)
    errors = best.error[which] * blame / blame.sum(-1, keepdim=True).clamp(min=1e-300)
    corners = rows.numbers.curved_corners * best.slope[which].abs()
    return (corners + best.sag[which] + lost + errors).nan_to_num(0.0, 0.0, 0.0)
