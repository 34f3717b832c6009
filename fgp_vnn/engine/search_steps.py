"""The steps that search: the walk, splits of neurons, splits of inputs."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.base.story import Stage, tell
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.bounding import by_inputs, drop_and_bound, refine
from fgp_vnn.engine.parallel.share import run_shared
from fgp_vnn.engine.problem import Problem
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.search.best_first import forget
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.search.forecast import Forecast, Left
from fgp_vnn.search.hidden_neurons import sharpen_layers
from fgp_vnn.search.inputs import InputSplits
from fgp_vnn.search.neurons import NeuronSplits
from fgp_vnn.search.walk.walk import WalkOptions, walk_regions
from fgp_vnn.strategy import Neurons


def walk_first(problem: Problem) -> Verdict | None:
    """The walk, limited to the number of regions that the strategy allows."""
    if not problem.query.network.piecewise_linear:
        return None
    problem.reduce_inputs()
    verdict = problem.report("walk", _walk(problem, problem.strategy.walk.patience))
    return None if verdict.status == "unknown" else verdict


def walk_few(problem: Problem) -> Verdict | None:
    """The walk, if so few neurons are unstable that it ends at once."""
    few = problem.unstable <= problem.strategy.walk.few_neurons
    few = few and problem.query.network.piecewise_linear
    # What the walk reaches, it reaches by continuity, which float32 does not have.
    if not few or problem.settings.float32_semantics:
        return None
    return walk(problem)


def walk(problem: Problem) -> Verdict:
    """The walk to its end; only a piecewise-linear network has regions to walk through."""
    if smooth := problem.query.network.smooth:
        reason = f"the walk is for piecewise-linear networks, and this one has {smooth}"
        return problem.verdict("unknown", reason=reason)
    problem.reduce_inputs()
    outcome = _walk(problem, None)
    if problem.log.wanted and outcome.status == "unsat":
        # The regions of a walk have no form in a certificate: they are proved again by splits.
        again = _split_neurons(problem, problem.strategy.neurons, problem.budget)
        if again.status != "unsat":
            problem.log.gap = "the walk's verdict could not be proved again by splits"
    return problem.report("walk", outcome)


def split(problem: Problem) -> Verdict:
    """Splits of inputs where a neuron sees few of them, else splits of neurons."""
    if by_inputs(problem):
        return problem.report("split", _split_inputs(problem, problem.budget))
    if not problem.query.network.piecewise_linear:
        return _split_smooth(problem)
    inputs, short = problem.strategy.inputs, problem.strategy.short
    some = isinstance(problem.query.domain, Box) and problem.query.network.inputs <= inputs.some
    outcome = _split_neurons(problem, short, problem.budget.share(short.short_share))
    verdict = problem.report("split", outcome)
    if not outcome.unfinished or problem.budget.expired():
        return verdict
    if some:
        # Neither way of splitting is always the better one: give each its turn.
        outcome = _split_inputs(problem, problem.budget.share(inputs.share))
        verdict = problem.report("split", outcome)
        if verdict.status in ("sat", "unsat"):
            return verdict
    if not _sharpen(problem):
        return problem.verdict("unsat", "split")
    return problem.report(
        "split", _split_neurons(problem, problem.strategy.neurons, problem.budget)
    )


def _split_smooth(problem: Problem) -> Verdict:
    """Splits of ReLUs, if there are any, and of inputs, where these are a box and not too many: one
    after the other, that of fewer dimensions first."""
    unstable = zip(problem.bounds.unstable(), problem.bounds.activations, strict=True)
    relus = any(f is RELU and bool(mask.any()) for mask, f in unstable)
    inputs, numbers = problem.query.network.inputs, problem.strategy.inputs
    boxes = isinstance(problem.query.domain, Box) and inputs <= numbers.many
    few = inputs <= numbers.some
    ways: list[Callable[[Budget], Outcome]] = []
    if boxes:
        ways.append(lambda budget: _split_inputs(problem, budget))
    if relus:
        neurons = problem.strategy.neurons
        ways.insert(int(few), lambda budget: _split_neurons(problem, neurons, budget))
    verdict = problem.verdict("unknown", reason="linear bounds leave it open")
    for number, way in enumerate(ways):
        share = problem.strategy.inputs.smooth_share
        last = number == len(ways) - 1
        budget = problem.budget if last else problem.budget.share(share)
        verdict = problem.report("split", way(budget))
        if verdict.status in ("sat", "unsat") or problem.budget.expired():
            break
    return verdict


def _sharpen(problem: Problem) -> bool:
    """Tighten hidden neurons' bounds, each by a split search of its own, as long as that makes more
    of them stable; whether a disjunct is still open.

    Where better slopes have done so, splits are likely to; elsewhere they get less time to try.
    """
    hidden = problem.strategy.hidden
    patience = problem.budget.share(hidden.share if problem.tightened else hidden.trial_share)
    rounds, keep = hidden.rounds, problem.log.sharpened
    while len(problem.bounds.lower) > 1 and not patience.expired():
        with problem.timed("sharpen"):
            query, bounds, strategy = problem.query, problem.bounds, problem.strategy
            problem.bounds = sharpen_layers(
                query, bounds, rounds, patience, strategy, keep, problem.spread
            )
            refine(problem, patience)
            left = drop_and_bound(problem)
        if not left:
            return False
        problem.only(left)
        if not problem.tightened:
            break
        rounds *= 2
    return True


def _walk(problem: Problem, regions: int | None) -> Outcome:
    settings = problem.settings
    how = WalkOptions(
        variant="first-boundary" if settings.variant == "first-boundary" else "full-queue",
        batch=settings.batch,
        cache_first=settings.cache_first,
        signed=settings.signed,
        joint=settings.joint,
        alternate=settings.alternate,
        lp=settings.lp,
        regions=regions,
        numbers=problem.strategy.walk,
        projections=problem.strategy.projections,
    )
    with problem.timed("search"):
        return walk_regions(problem.query, problem.bounds, problem.confirm, problem.budget, how)


def _split_neurons(problem: Problem, neurons: Neurons, budget: Budget) -> Outcome:
    strategy, lp = replace(problem.strategy, neurons=neurons), problem.settings.lp
    keep = problem.log.leaf if problem.log.wanted else forget
    query, bounds, confirm = problem.query, problem.bounds, problem.confirm
    with problem.timed("search"):
        search = NeuronSplits.begin(query, bounds, confirm, budget, strategy, lp, keep)
        return _run(problem, search)


def _split_inputs(problem: Problem, budget: Budget) -> Outcome:
    settings, log = problem.settings, problem.log
    # With an LP the last boxes are walked through, and what the walk shows is about real numbers.
    walks = settings.lp and not settings.float32_semantics
    walks = walks and problem.query.network.piecewise_linear
    # Boxes that are only halved are the leaves of a tree, which a certificate can hold.
    how = Subdivision(lp=walks, clip=not log.wanted, strategy=problem.strategy)
    keep = log.boxes if log.wanted else forget
    with problem.timed("search"):
        search = InputSplits(problem.query, problem.confirm, budget, how, keep)
        search.begin()
        return _run(problem, search)


def _goes_on(problem: Problem, search: Divisible, left: Left, near: float) -> bool:
    """Whether a search whose turn is over goes on: where it is expected to end soon, and sooner
    than the last time. It gets twice the time that this is expected to take."""
    if search.found is not None or not search.open or problem.budget.expired():
        return False
    remaining = problem.budget.share(1.0).left()
    share = 2 * left.seconds / max(remaining, 1e-9)
    soon = share <= problem.strategy.crew.soon and left.bounds < near
    what = "it goes on" if soon else "its turn is over"
    tell(Stage(f"split: {left}, {what}", search.open, left=remaining), logging.INFO)
    if soon:
        search.extend(problem.budget.share(share))
    return soon


def _run(problem: Problem, search: Divisible) -> Outcome:
    """Run a search to its end, or to where its turn is over and no end is near."""
    forecast, near = Forecast(), math.inf
    while True:
        run_shared(search, problem.jobs, problem.strategy.crew, forecast)
        left = forecast.left()
        if not _goes_on(problem, search, left, near):
            break
        near = left.bounds
    outcome = search.outcome()
    problem.log.ended(proved=outcome.status == "unsat", in_time=not problem.budget.expired())
    return outcome
