"""Linear bounds of a problem: first plain bounds of all neurons and outputs, then tighter ones.

There are two ways to compute plain bounds. A chain of matrices, or a network with few inputs that
the domain does not fix, is bounded and condensed to its unstable neurons in one forward pass. Any
other network takes a backward pass for each layer. Both give the same linear bounds up to rounding,
and the single pass is faster. Milliseconds per input on the paper's networks (l2 at 0.25 | linf at
0.02; mean of 20 inputs, one thread; stable neurons removed):

    network            one pass        backward
    mnist20x3          1.9 |  2.7      2.5 |  3.1
    mnist20x9         13.3 | 13.7     16.5 | 14.9
    fmnist200x6-mmr   10.3 | 20.4     18.9 | 32.2
    fmnist100x20-mmr  14.4 | 34.4     51.3 | 73.2
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive
from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.cone import seen
from fgp_vnn.bounds.forward import Forward, pays
from fgp_vnn.bounds.hidden import refine_layers
from fgp_vnn.bounds.intervals import interval_step
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.slopes import Rows, ascend, plain_multipliers
from fgp_vnn.bounds.worth import worthwhile
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once, parts, rows_at_once
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.problem import Problem
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.strategy import Ascent
from fgp_vnn.transform.chains import condense, fits, is_chain
from fgp_vnn.transform.columns import condense_columns, moving


def bound_root(problem: Problem) -> Tensor:
    """Bound all neurons by plain linear bounds; returns lower bounds [rows] on the outputs."""
    query, budget = problem.query, problem.budget
    if _condensable(problem):
        problem.condensed = condense(query, budget, problem.strategy.shrinking)
        if problem.condensed is not None:
            return problem.condensed.least
    known, worth = None, None
    if not query.network.piecewise_linear:
        least = _by_intervals(problem)
        if is_large(problem) or not open_disjuncts(problem, least):
            return least
    elif _few_columns(problem):
        found = condense_columns(query, budget, problem.strategy.shrinking)
        if found.condensed is not None:
            problem.condensed = found.condensed
            return found.condensed.least
        known = found.known
    if query.network.piecewise_linear and not problem.log.wanted and not budget.expired():
        worth = seen(query.network)
    bound = partial(root_bounds, query.network, query.domain, known=known, worth=worth)
    problem.bounds = problem.spread_out(lambda spread: bound(budget=budget, spread=spread))
    return bound_outputs(problem, None)


def _few_columns(problem: Problem) -> bool:
    """Whether to carry forms forward through operators, because backward passes cost more."""
    network, most = problem.query.network, problem.strategy.shrinking.columns
    exact = network.dtype == torch.float64 and not problem.log.wanted
    programs = any(not isinstance(layer, Dense) for layer in network.layers)
    return exact and programs and len(moving(problem.query.domain)) <= most


def _by_intervals(problem: Problem) -> Tensor:
    """Lower bounds [rows] on the outputs from intervals of the hidden neurons: in a network of many
    smooth layers a backward pass for each layer takes minutes, and intervals are often enough.

    Seconds of one core on vit_2023 (about 60,000 neurons): 1 with intervals, over 100 without.
    """
    network, domain, budget = problem.query.network, problem.query.domain, problem.budget
    problem.bounds = root_bounds(network, domain, worth=(), budget=budget)
    if is_large(problem):
        return tighten(problem, budget.share(problem.strategy.hidden.worth_share))
    return bound_outputs(problem, None)


def is_large(problem: Problem) -> bool:
    """Whether a smooth network has so many neurons that most of them get interval bounds only."""
    network = problem.query.network
    return (
        not network.piecewise_linear and network.neurons >= problem.strategy.slopes.intervals_first
    )


def tighten(problem: Problem, patience: Budget) -> Tensor:
    """Lower bounds [rows] on the outputs, after tightening the bounds of the hidden neurons at
    which open rows lose most: twice as many neurons in each round, as long as that pays. Reduces
    the problem to the disjuncts still open."""
    count, gain = problem.strategy.hidden.worthwhile, problem.strategy.hidden.worth_gain
    least, missing = bound_outputs(problem, None), torch.inf
    while count < 2 * problem.query.network.neurons and not patience.expired():
        left = open_disjuncts(problem, least)
        if not left:
            break
        problem.only(left)
        tighten_worthwhile(problem, count, patience)
        least = bound_outputs(problem, None)
        if open_disjuncts(problem, least):
            least = torch.fmax(least, bound_outputs(problem, problem.strategy.slopes.rows))
        before, missing = missing, -float(least.min())
        if missing > (1 - gain) * before:
            break
        count *= 2
    return least


def tighten_worthwhile(
    problem: Problem, count: int, budget: Budget, *, smooth_only: bool = False
) -> None:
    """Bound the `count` neurons at which rows lose most, each by a backward pass of its own."""
    network, domain, bounds = problem.query.network, problem.query.domain, problem.bounds
    passed = backward(network, domain, len(network.layers), every_output(network), bounds.lines())
    lost = passed.coefficients
    if smooth_only:
        lost = {k: part for k, part in lost.items() if bounds.envelopes[k - 1] is not None}
    worth = worthwhile(network, bounds, lost, count)
    problem.bounds = root_bounds(network, domain, prior=bounds, worth=worth, budget=budget)


def every_output(network: Network) -> Tensor:
    """The rows [1, outputs, outputs] of all outputs: the identity matrix."""
    return torch.eye(network.outputs, dtype=network.dtype, device=network.device).unsqueeze(0)


def _condensable(problem: Problem) -> bool:
    """Whether to condense the query in one forward pass. This accumulates rounding errors over the
    layers, too many for float32, and leaves no slopes for a certificate."""
    network = problem.query.network
    exact = network.dtype == torch.float64 and not problem.log.wanted
    return exact and is_chain(network) and fits(network, problem.budget)


def bound_forward(problem: Problem) -> Tensor | None:
    """Bound all neurons by forms carried forward, then the outputs by a backward pass; returns
    lower bounds [rows] on the outputs, or None where input splits would not use such bounds."""
    domain, network = problem.query.domain, problem.query.network
    if not isinstance(domain, Box) or not by_inputs(problem):
        return None
    if not pays(network, problem.strategy.slopes.forward_factor):
        return None
    whole = Box(domain.lower.unsqueeze(0), domain.upper.unsqueeze(0))
    problem.bounds = Forward(network).bounds(whole)
    return bound_outputs(problem, None)


def open_disjuncts(problem: Problem, least: Tensor) -> list[int]:
    """The disjuncts that lower bounds [rows] on the outputs do not close."""
    closed: list[bool] = problem.query.closed(least).tolist()
    return [disjunct for disjunct, done in enumerate(closed) if not done]


def reduce_to(problem: Problem, disjuncts: list[int]) -> None:
    """Reduce the problem to these disjuncts and to the neurons that plain bounds leave unstable."""
    if problem.condensed is None:
        problem.only(disjuncts)
        problem.drop_stable()
    else:
        problem.drop_stable()
        problem.only(disjuncts)


def bound_outputs(problem: Problem, ascent: Ascent | None) -> Tensor:
    """Lower bounds [rows] on the outputs by linear bounds, plain (`ascent` None) or with optimised
    slopes, in batches of rows that fit into memory."""
    query, network, depth = problem.query, problem.query.network, len(problem.query.network.layers)
    limit = problem.budget.at_once
    if ascent is None:
        fit = rows_at_once(network, depth, 1, limit)
    else:
        fit = ascents_at_once(network, depth, limit)
    rows, rounding = every_output(network), None
    if ascent is None and not problem.budget.expired():
        rounding = Rounding(network, query.domain, problem.bounds)
    found = [
        _bound_rows(problem, rows[:, some], ascent or rounding)
        for some in parts(network.outputs, fit)
    ]
    least = torch.cat([part for part, _ in found], -1)[0]
    enough = problem.log.wanted or problem.budget.expired()
    if not enough and not bool(least.isfinite().all()):
        # An activation may be bounded even if its argument is not.
        least = torch.fmax(least, interval_step(network, query.domain, problem.bounds, depth)[0][0])
    left = set(open_disjuncts(problem, least))
    slopes = zip(*(alpha for _, alpha in found), strict=True)
    done = [disjunct for disjunct in range(query.disjuncts) if disjunct not in left]
    problem.log.closed(query, done, least, [torch.cat(layer, 1) for layer in slopes])
    return least


def _bound_rows(
    problem: Problem, rows: Tensor, how: Ascent | Rounding | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Proved lower bounds [1, m] on rows [1, m, outputs], by optimised slopes or plainly, and their
    slopes if a log wants them; the bounds are -infinity if time is up."""
    query, bounds = problem.query, problem.bounds
    network, domain, depth = query.network, query.domain, len(query.network.layers)
    slopes = plain_multipliers(rows, bounds).alpha if problem.log.wanted else ()
    if how is None or problem.budget.expired():
        return rows.new_full(rows.shape[:2], -torch.inf), slopes
    if isinstance(how, Rounding):
        passed = backward(network, domain, depth, rows, bounds.lines(), rounding=how)
        return passed.least, slopes

    def done(least: Tensor) -> bool:
        whole = least.shape[-1] == network.outputs
        closed = query.closed(least) if whole else positive(least)
        return bool(closed.all()) or problem.budget.expired()

    result = ascend(Rows(network, domain, depth, rows, bounds), ascent=how, done=done)
    return result.least, result.multipliers.alpha if problem.log.wanted else ()


def optimise(problem: Problem) -> list[int]:
    """The disjuncts that stay open after optimising the slopes of the output rows and, if these are
    not enough, of the hidden layers."""
    if is_large(problem):  # `tighten` has done it
        return list(range(problem.query.disjuncts))
    left = _by_slopes(problem)
    if not left or len(problem.bounds.lower) < 2 or by_inputs(problem):
        return left
    problem.only(left)
    refine(problem, problem.budget.share(problem.strategy.hidden.refine_share))
    return drop_and_bound(problem)


def _by_slopes(problem: Problem) -> list[int]:
    least = bound_outputs(problem, problem.strategy.slopes.rows)
    problem.lack = float((-problem.query.worst(least)).clamp(min=0).sum())
    return open_disjuncts(problem, least)


def refine(problem: Problem, patience: Budget) -> None:
    """Tighten the bounds of each hidden layer by slopes optimised for it."""
    keep = problem.log.refined if problem.log.wanted else None
    query, bounds, slopes = problem.query, problem.bounds, problem.strategy.slopes
    refined = partial(refine_layers, query, bounds, slopes, patience, keep)
    problem.bounds = problem.spread_out(refined)


def drop_and_bound(problem: Problem) -> list[int]:
    """Drop the neurons that tighter bounds have made stable; returns the disjuncts still open."""
    before = problem.unstable
    problem.shrink()
    problem.tightened = problem.unstable <= problem.strategy.hidden.tightened * before
    return _by_slopes(problem)


def by_inputs(problem: Problem) -> bool:
    """Whether the search will split inputs; it then recomputes the hidden bounds anyway."""
    few = problem.query.network.inputs <= problem.strategy.inputs.few
    return few and isinstance(problem.query.domain, Box) and problem.settings.engine != "walk"


def inputs_after_neurons(problem: Problem) -> bool:
    """Whether to try input splits after neuron splits: if there are not too many inputs, or if
    boxes can be cut down to little, by several rows that have to be met together or by neurons that
    read few inputs."""
    network, numbers = problem.query.network, problem.strategy.inputs
    if not isinstance(problem.query.domain, Box) or network.inputs > numbers.many:
        return False
    if network.inputs <= numbers.some:
        return True
    # Without clipping, which a certificate cannot express, there are too many boxes.
    cut = bool(problem.query.conjunctions) or _seen_inputs(network) <= numbers.few
    return cut and not problem.log.wanted


def _seen_inputs(network: Network) -> float:
    """Average number of inputs that a neuron of the first layer reads."""
    seen = [
        (m.weights[m.sources.index(0)] != 0).sum(-1).double()
        for m in network.layers
        if 0 in m.sources and isinstance(m, Dense)
    ]
    return float(torch.cat(seen).mean()) if seen else float(network.inputs)
