"""Bounds many boxes of one property together, which often proves most of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fgp_vnn.base.rounding import below
from fgp_vnn.bounds.backward import Backward, backward
from fgp_vnn.bounds.forward import Forward, pays
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import boxes_at_once, parts
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.bounding import every_output
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.network.model import Combination, Network
from fgp_vnn.property.model import Case
from fgp_vnn.strategy import Strategy

Doubles = NDArray[np.float64]
Numbers = NDArray[np.int64]


def proved_at_once(
    network: Network, cases: Sequence[Case], budget: Budget, strategy: Strategy
) -> list[Doubles | None]:
    """Prove cases by plain linear bounds, a batch of boxes at a time until the deadline. Returns
    for each case the weights [rows] of its proof, 1 for one row of each conjunction and 0 for all
    other rows, or None if it is not proved.

    The cases share the rows of their unsafe sets, which are bounded once per box, and differ in
    limits: a row with lower bound `least` is not met if least > limit. With smooth activations,
    hidden neurons get interval bounds only, and boxes that are not proved are halved.
    """
    rows = np.concatenate([c.rows for case in cases for c in case.unsafe] or [np.zeros((0, 1))])
    directions, place = np.unique(rows, axis=0, return_inverse=True)
    counts = [sum(len(c.rows) for c in case.unsafe) for case in cases]
    if not len(rows) or len(directions) > 2 * max(counts):  # rows of other cases would cost more
        return [None] * len(cases)
    ends = np.cumsum([0, *counts])
    places = [place.reshape(-1)[begin:end] for begin, end in pairwise(ends)]
    matrix = torch.from_numpy(directions).to(network.device, network.dtype)
    output = Combination(network.output, matrix, torch.zeros_like(matrix[:, 0]))
    of_rows = replace(network, output=output)
    sides = (np.stack([getattr(c, side) for c in cases]) for side in ("lower", "upper"))
    boxes = _Boxes(np.arange(len(cases)), *sides)
    halvings = 0 if network.piecewise_linear else strategy.inputs.halvings
    found: dict[int, Doubles | None] = {}
    for turn in range(halvings + 1):
        least, pull = _least(of_rows, boxes, budget, strategy)
        shown = [_proving(cases[i], y[places[i]]) for i, y in zip(boxes.case, least, strict=True)]
        found |= dict(zip(boxes.case.tolist(), shown, strict=True))
        left = np.array([i for i, weights in enumerate(shown) if weights is None], dtype=np.int64)
        boxes = boxes.at(left)
        if not 0 < len(left) <= strategy.inputs.halves * len(cases) or turn == halvings:
            break
        boxes = boxes.halved(pull[left].argmax(-1))
    still_open = set(boxes.case.tolist())
    return [None if case in still_open else found[case] for case in range(len(cases))]


class _Boxes(NamedTuple):
    """Parts of the boxes of some cases."""

    case: Numbers  # [boxes] the case that each box is a part of
    lower: Doubles  # [boxes, inputs]
    upper: Doubles  # [boxes, inputs]

    def at(self, some: slice | Numbers) -> _Boxes:
        return _Boxes(self.case[some], self.lower[some], self.upper[some])

    def halved(self, dimension: Numbers) -> _Boxes:
        """The lower halves of all boxes, then the upper ones; `dimension` [boxes] is the input
        along which each box is halved."""
        count, number = len(self.case), (np.arange(len(self.case)), dimension)
        case, lower, upper = (np.concatenate([part, part]) for part in self)
        middle = self.lower[number] / 2 + self.upper[number] / 2
        upper[:count][number] = middle
        lower[count:][number] = middle
        return _Boxes(case, lower, upper)


def _least(
    network: Network, boxes: _Boxes, budget: Budget, strategy: Strategy
) -> tuple[Doubles, Doubles]:
    """Lower bounds [boxes, outputs] on the outputs in each box, -infinity if time is up, and the
    effect of each input [boxes, inputs] on the bounds."""
    forward = Forward(network) if pays(network, strategy.slopes.forward_factor) else None
    fit = min(strategy.inputs.batch, boxes_at_once(network, budget.at_once))
    least = np.full((len(boxes.case), network.outputs), -np.inf)
    pull = np.zeros_like(boxes.lower)
    for some in parts(len(boxes.case), fit):
        if budget.expired():
            break
        lower, upper = (torch.from_numpy(side[some]) for side in boxes[1:])
        box = Box(lower, upper).to(network.device, network.dtype)
        with torch.no_grad():
            passed = _pass(network, box, forward, budget)
        least[some] = below(passed.least).double().cpu().numpy()
        pull[some] = (passed.weight.abs().sum(-2) * box.radius).cpu().nan_to_num().numpy()
    return least, pull


def _pass(network: Network, box: Box, forward: Forward | None, budget: Budget) -> Backward:
    """A backward pass of all outputs in each box."""
    if forward is not None:
        bounds = forward.bounds(box)
    else:
        worth = None if network.piecewise_linear else ()  # no neuron
        bounds = root_bounds(network, box, worth=worth, budget=budget)
    rows = every_output(network)
    rounding = Rounding(network, box, bounds)
    return backward(network, box, len(network.layers), rows, bounds.lines(), rounding=rounding)


def _proving(case: Case, least: Doubles) -> Doubles | None:
    """Weights [rows] that mark one row per conjunction of the case that lower bounds [rows] prove
    unmet; None if a conjunction has no such row."""
    weights, begin = np.zeros(len(least)), 0
    for conjunction in case.unsafe:
        own = least[begin : begin + len(conjunction.limits)]
        unmet = np.where(conjunction.strict, own >= conjunction.limits, own > conjunction.limits)
        unmet &= own < np.inf  # an infinite or NaN bound proves nothing
        if not unmet.any():
            return None
        weights[begin + np.where(unmet, own - conjunction.limits, -1.0).argmax()] = 1
        begin += len(own)
    return weights


def box_of(case: Case) -> Box:
    """The box of a case, in float64."""
    return Box(torch.from_numpy(case.lower), torch.from_numpy(case.upper))


def log_box(log: NullLog, case: Case, weights: Doubles) -> None:
    """Log that the box of a case is proved as a whole, by the rows with weights [rows]."""
    box, every = box_of(case), torch.ones(1, dtype=torch.bool)
    rows = torch.from_numpy(weights).unsqueeze(0)
    log.boxes(box.lower.unsqueeze(0), box.upper.unsqueeze(0), rows, every)
    log.ended(proved=True, in_time=True)
