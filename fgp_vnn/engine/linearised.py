"""A ReLU network that stands for a smooth one, with errors small enough for a search."""

from __future__ import annotations

import torch

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.bounding import every_output, is_large, tighten_worthwhile
from fgp_vnn.engine.problem import Problem
from fgp_vnn.query import Query
from fgp_vnn.transform.stable import linearise


def nearly_affine(problem: Problem, budget: Budget) -> tuple[Query, LayerBounds] | None:
    """The linearised query of a problem; None if its errors are too large to prove anything.

    In a large network, most neurons have interval bounds only. As long as errors take up most of
    the rows' values above 0, and tightening pays, more smooth neurons get linear bounds.
    """
    numbers, before = problem.strategy.hidden, torch.inf
    count, patience = numbers.worthwhile, budget.share(numbers.worth_share)
    enough, gain = numbers.errors
    while (found := linearise(problem.query, problem.bounds, budget=budget)) is not None:
        share = _error(*found)
        pays = share <= (1 - gain) * before
        if share <= enough or not pays or not is_large(problem) or patience.expired():
            return found if share < 1 else None
        before, count = share, 2 * count
        tighten_worthwhile(problem, count, patience, smooth_only=True)
    return None


def _error(query: Query, bounds: LayerBounds) -> float:
    """The error's largest share of a disjunct's greatest row, at the centre and at the minimisers
    of the linear bounds; at least 1 if a search cannot close the disjunct."""
    network, domain = query.network, query.domain
    passed = backward(network, domain, len(network.layers), every_output(network), bounds.lines())
    values = network(torch.cat([domain.center.unsqueeze(0), domain.maximiser(-passed.weight)[0]]))
    defect = network.output.defect
    if defect is None:
        raise AssertionError("a network that stands for another has errors")
    whole, sure = query.worst(values), query.worst(values - defect)
    return float(torch.where(whole > 0, 1 - sure / whole, torch.inf).max())
