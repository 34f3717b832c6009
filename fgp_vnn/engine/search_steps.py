"""The steps that search: the walk, splits of neurons, splits of inputs."""

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
from fgp_vnn.engine.bounding import by_inputs, drop_and_bound, inputs_have_a_turn, refine
from fgp_vnn.engine.linearised import nearly_affine
from fgp_vnn.engine.parallel.share import run_shared
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.steps import optimise_slopes, shrink
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.search.best_first import forget
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.hidden_neurons import Turn, sharpen_layers
from fgp_vnn.search.inputs import InputSplits
from fgp_vnn.search.neurons import NeuronSplits
from fgp_vnn.search.walk.walk import WalkOptions, walk_regions
from fgp_vnn.strategy import Neurons


def walk_first(problem: Problem) -> Verdict | None:
    """The walk, limited to the number of regions that the strategy allows."""
    verdict = walk(problem, problem.strategy.walk.certify_regions)
    return None if verdict.status == "unknown" else verdict


def walk_few(problem: Problem) -> Verdict | None:
    """The walk, if so few neurons are unstable that it ends at once. Where projections leave a
    boundary open, so many signs are few bundles, and bounds may close them all."""
    few = problem.unstable <= problem.strategy.walk.few_neurons
    few = few and problem.query.network.piecewise_linear
    # What the walk reaches, it reaches by continuity, which float32 does not have.
    if not few or problem.settings.float32_semantics:
        return None
    walked = walk(problem)
    if walked.status != "unknown":
        return walked
    split = _split_every(problem, problem.budget)
    return split if split.status in ("sat", "unsat") else walked


def walk(problem: Problem, regions: int | None = None) -> Verdict:
    """The walk to its end, or through so many regions; only a piecewise-linear network has any."""
    if smooth := problem.query.network.smooth:
        reason = f"the walk is for piecewise-linear networks, and this one has {smooth}"
        return problem.verdict("unknown", reason=reason)
    problem.reduce_inputs()
    query, bounds, how = problem.query, problem.bounds, _walk_options(problem, regions)
    with problem.timed("search"):
        outcome = walk_regions(query, bounds, problem.confirm, problem.budget, how)
    if problem.log.wanted and outcome.status == "unsat":
        # The regions of a walk have no form in a certificate: they are proved again by splits.
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
    """Splits of inputs, where there are few of them."""
    if not by_inputs(problem):
        return None
    return problem.report("split", run_shared(problem, _input_splits(problem, problem.budget)))


def split_smooth(problem: Problem) -> Verdict | None:
    """For a network with smooth functions: splits of neurons, and of inputs, where these are a box
    and not too many, one after the other: those of inputs first if there are few. With 64 inputs
    and 48 neurons of tanh, 220 and 395 bundles are enough where 13,500 boxes are not."""
    if problem.query.network.piecewise_linear:
        return None
    unstable = zip(problem.bounds.unstable(), problem.bounds.activations, strict=True)
    relus = any(f is RELU and bool(mask.any()) for mask, f in unstable)
    inputs, numbers = problem.query.network.inputs, problem.strategy.inputs
    ways: list[Callable[[Budget], Verdict]] = []
    if isinstance(problem.query.domain, Box) and inputs <= numbers.many:
        ways.append(partial(_split_inputs, problem))
    # Boxes have a form in a certificate, intervals of neurons have none.
    place = int((inputs <= numbers.few or problem.log.wanted) and len(ways))
    ways.insert(place, partial(_split_every, problem))
    if relus and not problem.log.wanted:  # errors of strips have no form in a certificate
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
    """Splits of the ReLUs of the network in which smooth neurons are affine up to an error: with a
    thousandth of the neurons of an attention network, thousands of bundles take a second."""
    with problem.timed("bounds"):
        found = nearly_affine(problem, budget)
    if found is None:
        return problem.verdict("unknown", reason="smooth neurons are too far from affine")
    part = problem.standing_for(*found, budget)
    for step in (shrink, optimise_slopes, split_shortly, sharpen, split_neurons):
        verdict = step(part)
        if verdict is not None:
            return verdict
    raise AssertionError("the last step gives a verdict")


def split_shortly(problem: Problem) -> Verdict | None:
    """Splits of neurons and, if that does not end, of inputs: neither way is always the better one,
    so each gets its turn."""
    search = _short_splits(problem, problem.budget)
    outcome = run_shared(problem, search)
    verdict = _kept(problem, search, outcome)
    if not outcome.unfinished or problem.budget.expired():
        return verdict
    if inputs_have_a_turn(problem):
        other = _input_splits(problem, problem.budget.share(problem.strategy.inputs.share))
        verdict = problem.report("split", run_shared(problem, other))
    return verdict if verdict.status in ("sat", "unsat") else None


def _short_splits(problem: Problem, budget: Budget) -> NeuronSplits:
    """Splits of neurons, with a part of the time, as long as they promise to end."""
    short = problem.strategy.short
    return _neuron_splits(problem, short, budget.share(short.short_share))


def _kept(problem: Problem, search: NeuronSplits, outcome: Outcome) -> Verdict:
    """The verdict of a short search, which is kept to be resumed if it is unfinished."""
    # What a log names are neurons of the query as it is now.
    problem.unfinished = search if outcome.unfinished and not problem.log.wanted else None
    return problem.report("split", outcome)


def sharpen(problem: Problem) -> Verdict | None:
    """Tighten hidden neurons' bounds, each by a split search of its own, as long as that makes more
    of them stable or brings the rows nearer to 0; after each turn, a short search may do with the
    bounds that there are.

    Where better slopes have given signs, splits are likely to; elsewhere they get less time to try.
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
        # The next turn takes about twice as long, and gains less.
        dear = 2 * spent > hidden.doubtful_share * problem.budget.left()
        if not problem.tightened and (not gained >= hidden.gain or dear):
            break
        if better and trying:
            patience, trying = problem.budget.share(hidden.share), False
        turn = turn.next()
    return None


def _sharpen_once(problem: Problem, turn: Turn, patience: Budget) -> list[int]:
    """One turn of sharpening: the disjuncts that its bounds leave open."""
    keep = problem.log.sharpened if problem.log.wanted else forget
    if problem.unfinished is not None:
        patience = patience.beside(problem.unfinished.frontier.bytes)
    with problem.timed("sharpen"):
        query, bounds, strategy = problem.query, problem.bounds, problem.strategy
        do = partial(sharpen_layers, query, bounds, turn, patience, strategy, keep)
        problem.bounds = problem.spread_out(do)
        refine(problem, patience)
        return drop_and_bound(problem)


def split_neurons(problem: Problem) -> Verdict:
    """Splits of neurons, to the end: what the last short search has left open, if it is there."""
    search = problem.unfinished
    if search is None:
        search = _neuron_splits(problem, problem.strategy.neurons, problem.budget)
    else:
        search.extend(problem.budget)
        again = search.outcome().statistics  # all of them are counted once more at the end
        problem.count(**{name: -number for name, number in again.items()})
    return problem.report("split", run_shared(problem, search))


def _neuron_splits(problem: Problem, neurons: Neurons, budget: Budget) -> NeuronSplits:
    strategy, lp = replace(problem.strategy, neurons=neurons), problem.settings.lp
    keep = problem.log.leaf if problem.log.wanted else forget
    query, bounds, confirm = problem.query, problem.bounds, problem.confirm
    with problem.timed("search"):
        return NeuronSplits.begin(query, bounds, confirm, budget, strategy, lp, keep)


def _input_splits(problem: Problem, budget: Budget) -> InputSplits:
    settings, log = problem.settings, problem.log
    # With an LP the last boxes are walked through, and what the walk shows is about real numbers.
    walks = settings.lp and not settings.float32_semantics
    walks = walks and problem.query.network.piecewise_linear
    # Boxes that are only halved are the leaves of a tree, which a certificate can hold.
    free = not log.wanted
    attack = problem.strategy.attack
    attack = replace(attack, in_boxes=replace(attack.in_boxes, seed=settings.seed))
    strategy = replace(problem.strategy, attack=attack)
    how = Subdivision(lp=walks, clip=free, neurons=free, attacks=settings.attack, strategy=strategy)
    keep = log.boxes if log.wanted else forget
    with problem.timed("search"):
        search = InputSplits(problem.query, problem.confirm, budget, how, keep)
        search.begin()
        return search


# The splits of every engine that splits.
SPLIT = (split_few_inputs, split_smooth, split_shortly, sharpen, split_neurons)
