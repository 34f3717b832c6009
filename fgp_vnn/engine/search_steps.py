"""The steps that search: the walk, neuron splits, input splits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fgp_vnn.base.outcome import Outcome
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.bounding import by_inputs, drop_and_bound, inputs_after_neurons
from fgp_vnn.engine.linearised import nearly_affine
from fgp_vnn.engine.parallel.share import run_shared
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.steps import optimise_slopes, shrink
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.search.best_first import keep_nothing
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.hidden_neurons import Turn, sharpen_layers
from fgp_vnn.search.inputs import InputSplits
from fgp_vnn.search.neurons import NeuronSplits
from fgp_vnn.search.walk.walk import WalkOptions, walk_regions
from fgp_vnn.strategy import Neurons


def walk_first(problem: Problem) -> Verdict | None:
    """Walk through at most as many regions as the strategy allows."""
    verdict = walk(problem, problem.strategy.walk.certify_regions)
    return None if verdict.status == "unknown" else verdict


def walk_few(problem: Problem) -> Verdict | None:
    """Walk if so few neurons are unstable that it ends at once. If projections leave a boundary
    open, try neuron splits: so few neurons make few bundles, and bounds may close them all."""
    few = problem.unstable <= problem.strategy.walk.few_neurons
    few = few and problem.query.network.piecewise_linear
    # The walk relies on continuity, which float32 arithmetic does not have.
    if not few or problem.settings.float32_semantics:
        return None
    walked = walk(problem)
    if walked.status != "unknown":
        return walked
    split = _split_every(problem, problem.budget)
    return split if split.status in ("sat", "unsat") else walked


def walk(problem: Problem, regions: int | None = None) -> Verdict:
    """Walk to the end, or through at most `regions` regions; `unknown` for a network that is not
    piecewise linear."""
    if smooth := problem.query.network.smooth_names:
        reason = f"the walk is for piecewise-linear networks, and this one has {smooth}"
        return problem.verdict("unknown", reason=reason)
    problem.reduce_inputs()
    query, bounds, how = problem.query, problem.bounds, _walk_options(problem, regions)
    with problem.timed("search"):
        outcome = walk_regions(query, bounds, problem.confirm, problem.budget, how)
    if problem.log.wanted and outcome.status == "unsat":
        # A certificate cannot express the regions of a walk: splits prove the verdict again.
        again = _neuron_splits(problem, problem.strategy.neurons, problem.budget)
        if run_shared(problem, again).status != "unsat":
            problem.log.gap = "the walk's verdict could not be proved again by splits"
    return problem.report("walk", outcome)


def _walk_options(problem: Problem, regions: int | None) -> WalkOptions:
    settings = problem.settings
    return WalkOptions(
        variant="first-boundary" if settings.variant == "first-boundary" else "full-queue",
        batch=settings.batch,
        cache_first=settings.cache_first,
        signed=settings.signed,
        combined=settings.combined,
        alternate=settings.alternate,
        lp=settings.lp,
        regions=regions,
        numbers=problem.strategy.walk,
        projections=problem.strategy.projections,
    )


def split_few_inputs(problem: Problem) -> Verdict | None:
    """Input splits, if there are few inputs."""
    if not by_inputs(problem):
        return None
    return _split_inputs(problem, problem.budget)


def split_smooth(problem: Problem) -> Verdict | None:
    """For a network with smooth functions: neuron splits and, if the domain is a box with not too
    many inputs, input splits, one after the other; input splits first if there are few inputs. With
    64 inputs and 48 tanh neurons, 220 and 395 bundles are enough where 13,500 boxes are not."""
    if problem.query.network.piecewise_linear:
        return None
    unstable = zip(problem.bounds.unstable(), problem.bounds.activations, strict=True)
    relus = any(f is RELU and bool(mask.any()) for mask, f in unstable)
    inputs, numbers = problem.query.network.inputs, problem.strategy.inputs
    ways: list[Callable[[Budget], Verdict]] = []
    if isinstance(problem.query.domain, Box) and inputs <= numbers.many:
        ways.append(partial(_split_inputs, problem))
    # A certificate can express boxes, but not intervals of neurons.
    place = int((inputs <= numbers.few or problem.log.wanted) and len(ways))
    ways.insert(place, partial(_split_every, problem))
    if relus and not problem.log.wanted:  # a certificate cannot express the errors of strips
        ways.insert(place, partial(split_linearised, problem))
    verdict = problem.verdict("unknown", reason="linear bounds leave it open")
    for number, way in enumerate(ways):
        last = number == len(ways) - 1
        budget = problem.budget if last else problem.budget.share(numbers.smooth_share)
        verdict = way(budget)
        if verdict.status in ("sat", "unsat") or problem.budget.expired():
            break
    return verdict


def _split_inputs(problem: Problem, budget: Budget) -> Verdict:
    return problem.report("split", run_shared(problem, _input_splits(problem, budget)))


def _split_every(problem: Problem, budget: Budget) -> Verdict:
    search = _neuron_splits(problem, problem.strategy.neurons, budget)
    return problem.report("split", run_shared(problem, search))


def split_linearised(problem: Problem, budget: Budget) -> Verdict:
    """Neuron splits in the linearised network, whose smooth neurons are affine up to an error: with
    a thousandth of the neurons of an attention network, thousands of bundles take a second."""
    with problem.timed("bounds"):
        found = nearly_affine(problem, budget)
    if found is None:
        return problem.verdict("unknown", reason="smooth neurons are too far from affine")
    part = problem.relaxed(*found, budget)
    for step in (shrink, optimise_slopes, split_shortly, sharpen, split_neurons):
        verdict = step(part)
        if verdict is not None:
            return verdict
    raise AssertionError("the last step gives a verdict")


def split_shortly(problem: Problem) -> Verdict | None:
    """A short search by neuron splits and, if it does not end, one by input splits: neither is
    always better, so both are tried, the second for as long as it is not expected to take longer
    than the first."""
    search = _short_splits(problem, problem.budget)
    outcome = run_shared(problem, search)
    verdict = _kept(problem, search, outcome)
    if not outcome.unfinished or problem.budget.expired():
        return verdict
    if inputs_after_neurons(problem):
        other = _input_splits(problem, problem.budget.share(problem.strategy.inputs.share))
        verdict = problem.report("split", run_shared(problem, other, problem.unfinished))
    return verdict if verdict.status in ("sat", "unsat") else None


def _short_splits(problem: Problem, budget: Budget) -> NeuronSplits:
    """A search by neuron splits with a part of the time, which stops if it is not likely to end."""
    short = problem.strategy.short
    return _neuron_splits(problem, short, budget.share(short.short_share))


def _kept(problem: Problem, search: NeuronSplits, outcome: Outcome) -> Verdict:
    """The verdict of a short search; an unfinished search is kept to be resumed."""
    # A proof log names the neurons of the current query, so it cannot resume a search later.
    problem.unfinished = search if outcome.unfinished and not problem.log.wanted else None
    return problem.report("split", outcome)


def sharpen(problem: Problem) -> Verdict | None:
    """Tighten the bounds of each hidden neuron by a split search of its own, as long as that makes
    neurons stable or brings the rows nearer to 0. After a round that does, a short search tries to
    decide the problem with the new bounds.

    Where optimised slopes have made neurons stable, splits are likely to do so too; elsewhere they
    get less time.
    """
    hidden = problem.strategy.hidden
    patience = problem.budget.share(hidden.share if problem.tightened else hidden.doubtful_share)
    turn, trying = Turn(hidden.rounds), not problem.tightened
    while len(problem.bounds.lower) > 1 and not patience.expired():
        begin, lacked = time.monotonic(), problem.lack
        left = _sharpen_once(problem, turn, patience)
        if not left:
            return problem.verdict("unsat", "split")
        gained = 1 - problem.lack / lacked if 0 < lacked < math.inf else 0.0
        better = problem.tightened or gained >= hidden.better
        if not better and problem.unfinished is not None:
            problem.unfinished.only(left)
        problem.only(left)
        spent = time.monotonic() - begin
        if better:
            search = _short_splits(problem, patience)
            outcome = run_shared(problem, search)
            verdict = _kept(problem, search, outcome)
            if not outcome.unfinished:
                return verdict
        # The next round takes about twice as long and gains less.
        dear = 2 * spent > hidden.doubtful_share * problem.budget.left()
        if not problem.tightened and (not gained >= hidden.gain or dear):
            break
        if better and trying:
            patience, trying = problem.budget.share(hidden.share), False
        turn = turn.next()
    return None


def _sharpen_once(problem: Problem, turn: Turn, patience: Budget) -> list[int]:
    """One round of sharpening; returns the disjuncts still open."""
    keep = problem.log.sharpened if problem.log.wanted else keep_nothing
    if problem.unfinished is not None:
        patience = patience.beside(problem.unfinished.frontier.bytes)
    with problem.timed("sharpen"):
        query, bounds, strategy = problem.query, problem.bounds, problem.strategy
        do = partial(sharpen_layers, query, bounds, turn, patience, strategy, keep)
        problem.bounds = problem.spread_out(do)
        return drop_and_bound(problem)


def split_neurons(problem: Problem) -> Verdict:
    """Neuron splits to the end; resumes the last short search if it was kept."""
    search = problem.unfinished
    if search is None:
        search = _neuron_splits(problem, problem.strategy.neurons, problem.budget)
    else:
        search.extend(problem.budget)
        again = search.outcome().statistics  # the end counts these once more
        problem.count(**{name: -number for name, number in again.items()})
    return problem.report("split", run_shared(problem, search))


def _neuron_splits(problem: Problem, neurons: Neurons, budget: Budget) -> NeuronSplits:
    strategy, lp = replace(problem.strategy, neurons=neurons), problem.settings.lp
    keep = problem.log.leaf if problem.log.wanted else keep_nothing
    query, bounds, confirm = problem.query, problem.bounds, problem.confirm
    with problem.timed("search"):
        return NeuronSplits.begin(query, bounds, confirm, budget, strategy, lp, keep)


def _input_splits(problem: Problem, budget: Budget) -> InputSplits:
    settings, log = problem.settings, problem.log
    # With an LP, a walk decides the last boxes, and it is about real arithmetic.
    walks = settings.lp and not settings.float32_semantics
    walks = walks and problem.query.network.piecewise_linear
    # Boxes that are halved, not clipped, are the leaves of a tree: a certificate can hold it.
    free = not log.wanted
    attack = problem.strategy.attack
    attack = replace(attack, in_boxes=replace(attack.in_boxes, seed=settings.seed))
    strategy = replace(problem.strategy, attack=attack)
    how = Subdivision(lp=walks, clip=free, neurons=free, attacks=settings.attack, strategy=strategy)
    keep = log.boxes if log.wanted else keep_nothing
    with problem.timed("search"):
        search = InputSplits(problem.query, problem.confirm, budget, how, keep)
        search.begin()
        return search


# The split steps shared by all engines that split.
SPLIT = (split_few_inputs, split_smooth, split_shortly, sharpen, split_neurons)
