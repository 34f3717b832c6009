"""The boxes of a property bounded together, where it has many: most are often proved by that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fgp_vnn.base.rounding import below
from fgp_vnn.bounds.backward import Rounding, backward, root_bounds
from fgp_vnn.bounds.forward import Forward, pays
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import boxes_at_once, parts
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Combination, Network
from fgp_vnn.property.model import Array, Case
from fgp_vnn.strategy import Strategy


def proved_at_once(
    network: Network, cases: Sequence[Case], budget: Budget, strategy: Strategy
) -> list[Array | None]:
    """Which cases plain linear bounds prove, a batch of boxes at a time, none after the deadline:
    the weights [rows] of their rows that show it, 1 for one row of each conjunction and else 0.

    The cases share the rows of their unsafe sets, each of which is bounded once in each box, and
    differ in limits: a row of at least `least` is not met where least > limit.
    """
    rows = np.concatenate([c.rows for case in cases for c in case.unsafe] or [np.zeros((0, 1))])
    directions, place = np.unique(rows, axis=0, return_inverse=True)
    most = max((sum(len(c.rows) for c in case.unsafe) for case in cases), default=0)
    if not len(rows) or len(directions) > 2 * most:  # others' rows would cost more than they save
        return [None] * len(cases)
    matrix = torch.from_numpy(directions).to(network.device, network.dtype)
    output = Combination(network.output, matrix, torch.zeros_like(matrix[:, 0]))
    asked = replace(network, output=output)
    forward = Forward(asked) if pays(asked, strategy.slopes.forward_factor) else None
    fit = min(strategy.inputs.batch, boxes_at_once(asked, budget.at_once))
    result: list[Array | None] = []
    used = 0
    for some in parts(len(cases), fit):
        if budget.expired():
            break
        batch = cases[some]
        least = _least(asked, batch, forward, budget).double().cpu().numpy()
        for case, bound in zip(batch, least, strict=True):
            count = sum(len(c.rows) for c in case.unsafe)
            result.append(_proving(case, bound[place.reshape(-1)[used : used + count]]))
            used += count
    return result + [None] * (len(cases) - len(result))


def _least(
    network: Network, cases: Sequence[Case], forward: Forward | None, budget: Budget
) -> Tensor:
    """Lower bounds [cases, outputs] of the outputs in each box."""
    lower, upper = (np.stack([getattr(c, side) for c in cases]) for side in ("lower", "upper"))
    box = Box(torch.from_numpy(lower), torch.from_numpy(upper)).to(network.device, network.dtype)
    with torch.no_grad():
        if forward is not None:
            bounds = forward.bounds(box)
        else:
            bounds = root_bounds(network, box, budget=budget)
        rows = torch.eye(network.outputs, dtype=network.dtype, device=network.device)
        rounding = Rounding(network, box, bounds)
        last = len(network.layers)
        passed = backward(network, box, last, rows[None], bounds.lines(), rounding=rounding)
    return below(passed.least).expand(len(cases), -1)


def _proving(case: Case, least: Array) -> Array | None:
    """The rows that lower bounds [rows] of all rows of a case show not to be met, one of each of
    its conjunctions: 1 for these, else 0; None where a conjunction has no such row."""
    weights, begin = np.zeros(len(least)), 0
    for conjunction in case.unsafe:
        own = least[begin : begin + len(conjunction.limits)]
        unmet = np.where(conjunction.strict, own >= conjunction.limits, own > conjunction.limits)
        unmet &= own < np.inf  # a bound that overflowed, or is none, proves nothing
        if not unmet.any():
            return None
        weights[begin + np.where(unmet, own - conjunction.limits, -1.0).argmax()] = 1
        begin += len(own)
    return weights
