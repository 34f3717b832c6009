"""The pipeline: cheapest step first, until one decides or the time is up."""

from __future__ import annotations

from dataclasses import replace

import torch

from fgp_vnn.attack.descent import MANY_INPUTS, Attack, falsify
from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.verdict import Counterexample, Verdict
from fgp_vnn.bounds.backward import LayerBounds, root_bounds
from fgp_vnn.bounds.forward import Forward, pays
from fgp_vnn.bounds.hidden import refine_layers
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.record import Record
from fgp_vnn.engine.run import Run, left_open, shrink, tighter
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.search.best_first import forget
from fgp_vnn.search.hidden_neurons import sharpen_layers
from fgp_vnn.search.inputs import Subdivision, split_inputs
from fgp_vnn.search.neurons import split_neurons
from fgp_vnn.search.walk.walk import Walk, walk_regions
from fgp_vnn.strategy import Ascent, Neurons, Strategy

FEW_NEURONS = 6  # up to so many unstable neurons, the walk is over at once
FEW_INPUTS = 16  # up to so many, splitting inputs beats splitting neurons
QUICK = Attack(restarts=1, steps=6)
LONG = Attack(restarts=8, steps=25)
ROUNDS = 8  # of splits of hidden neurons, doubled each time that they paid
SHARPEN_SHARE = 0.75  # of the time, at most, for that
TRIAL_SHARE = 0.2  # where better slopes have made hardly any neuron stable
SOME_INPUTS = 64  # up to so many, splitting inputs may beat splitting neurons
INPUTS_SHARE = 0.4  # of the time, at most, to find out
REFINE_SHARE = 0.2  # of the time, at most, for slopes of hidden layers
STRATEGY = Strategy()
SLOPES = Ascent(steps=20, rate=0.3, decay=0.95)


def solve(
    query: Query,
    confirm: Confirm,
    settings: Settings,
    budget: Budget,
    record: Record | None = None,
) -> Verdict:
    """Decide whether a point of the domain meets the unsafe set.

    `confirm` takes points of the query's own domain. `record` gets what a proof consists of.
    """
    lps = {"lps": 0} if settings.lp else {}
    run = Run(query, confirm, settings, budget, record, statistics=lps)
    with torch.no_grad():
        return _solve(run)


def _solve(run: Run) -> Verdict:
    if not run.query.disjuncts:
        return run.verdict("unsat", "property")
    if bool((torch.bincount(run.query.disjunct, minlength=run.query.disjuncts) == 0).any()):
        # A disjunct without rows: every input is a counterexample that can be confirmed.
        if found := run.confirm(run.query.domain.center.unsqueeze(0)):
            return run.verdict("sat", "property", found)
        return run.verdict("unknown", reason="all outputs are unsafe, but none was confirmed")
    if found := _attack(run, QUICK):
        return run.verdict("sat", "attack", found)
    if run.settings.engine == "attack":
        if found := _attack(run, LONG):
            return run.verdict("sat", "attack", found)
        return run.verdict("unknown", reason="the attack found nothing, and it proves nothing")
    with run.step("bounds"):
        shrink(run, None)
        bounds = _first_bounds(run)
        left = left_open(run, bounds, None)
    if not left:
        return run.verdict("unsat", "bounds")
    with run.step("bounds"):
        run.only(left)
        bounds = shrink(run, bounds)
    if found := _attack(run, LONG):
        return run.verdict("sat", "attack", found)
    with run.step("bounds"):
        bounds, left = _optimise(run, bounds)
    if not left:
        return run.verdict("unsat", "bounds")
    run.only(left)
    if run.budget.expired():
        return run.verdict("timeout", reason="time is up after the first bounds")
    if run.settings.engine == "bounds":
        return run.verdict("unknown", reason="linear bounds leave it open")
    return _search(run, bounds)


def _first_bounds(run: Run) -> LayerBounds:
    network, domain = run.query.network, run.query.domain
    if isinstance(domain, Box) and _by_inputs(run) and pays(network):
        return Forward(network).bounds(Box(domain.lower.unsqueeze(0), domain.upper.unsqueeze(0)))
    return root_bounds(network, domain, budget=run.budget)


def _optimise(run: Run, bounds: LayerBounds) -> tuple[LayerBounds, list[int]]:
    """Slopes of the output rows first; then, if that is not enough, of the hidden layers."""
    left = left_open(run, bounds, run.storable(SLOPES))
    if not left or len(bounds.lower) < 2 or _by_inputs(run):
        return bounds, left
    run.only(left)
    return tighter(run, _refine(run, bounds, run.budget.share(REFINE_SHARE)), SLOPES)


def _refine(run: Run, bounds: LayerBounds, patience: Budget) -> LayerBounds:
    keep = None if run.record is None else run.record.refined
    return refine_layers(run.query, bounds, run.storable(SLOPES), patience, keep)


def _search(run: Run, bounds: LayerBounds) -> Verdict:
    """The walk where regions are few, input splits where inputs are, else neuron splits."""
    settings = run.settings
    few = run.statistics.get("unstable", 0) <= FEW_NEURONS
    few = few and not settings.float32_semantics  # what the walk reaches, it reaches by continuity
    if settings.engine == "walk" or (settings.engine == "auto" and few):
        return _walk(run, bounds)
    if _by_inputs(run):
        return run.report("split", _split_inputs(run, run.budget))
    return _split(run, bounds)


def _walk(run: Run, bounds: LayerBounds) -> Verdict:
    settings = run.settings
    walk = Walk(
        variant="first-boundary" if settings.variant == "first-boundary" else "full-queue",
        alternate=settings.alternate,
        lp=settings.lp,
    )
    with run.step("search"):
        outcome = walk_regions(run.query, bounds, run.confirm, run.budget, walk)
    if run.record is not None and outcome.status == "unsat":
        # The regions of a walk have no form in a certificate: they are proved again by splits.
        again = _split_neurons(run, bounds, STRATEGY.neurons, run.budget)
        if again.status != "unsat":
            run.record.gap = "the walk's verdict could not be proved again by splits"
    return run.report("walk", outcome)


def _split(run: Run, bounds: LayerBounds) -> Verdict:
    """A short split search, then whatever may make the splits fewer, then one to the end."""
    some = isinstance(run.query.domain, Box) and run.query.network.inputs <= SOME_INPUTS
    patience = run.budget.share(STRATEGY.neurons.short_share)
    outcome = _split_neurons(run, bounds, STRATEGY.short, patience)
    verdict = run.report("split", outcome)
    if not outcome.unfinished or run.budget.expired():
        return verdict
    if some:
        # Neither way of splitting is always the better one: give each its turn.
        verdict = run.report("split", _split_inputs(run, run.budget.share(INPUTS_SHARE)))
        if verdict.status in ("sat", "unsat"):
            return verdict
    sharper = _sharpen(run, bounds)
    if sharper is None:
        return run.verdict("unsat", "split")
    return run.report("split", _split_neurons(run, sharper, STRATEGY.neurons, run.budget))


def _sharpen(run: Run, bounds: LayerBounds) -> LayerBounds | None:
    """Bounds of hidden neurons by splits of their own, as long as that makes more of them stable.

    Where better slopes have done so, splits are likely to; elsewhere they get less time to try.
    None if they leave no disjunct open.
    """
    patience = run.budget.share(SHARPEN_SHARE if run.tightened else TRIAL_SHARE)
    keep = forget if run.record is None else run.record.sharpened
    rounds = ROUNDS
    while len(bounds.lower) > 1 and not patience.expired():
        with run.step("sharpen"):
            sharper = sharpen_layers(run.query, bounds, rounds, patience, _strategy(run), keep)
            bounds, left = tighter(run, _refine(run, sharper, patience), SLOPES)
        if not left:
            return None
        run.only(left)
        if not run.tightened:
            break
        rounds *= 2
    return bounds


def _split_neurons(run: Run, bounds: LayerBounds, neurons: Neurons, budget: Budget) -> Outcome:
    keep = forget if run.record is None else run.record.leaf
    strategy, lp = replace(_strategy(run), neurons=neurons), run.settings.lp
    with run.step("search"):
        outcome = split_neurons(run.query, bounds, run.confirm, budget, strategy, lp, keep)
    return _recorded(run, outcome)


def _strategy(run: Run) -> Strategy:
    """The strategy, with results that can be kept if they have to be."""
    slopes = STRATEGY.slopes
    return STRATEGY if run.record is None else replace(STRATEGY, slopes=slopes.storable())


def _split_inputs(run: Run, budget: Budget) -> Outcome:
    keep = None if run.record is None else run.record.box
    # With an LP the last boxes are walked through, and what the walk shows is about real numbers.
    walks = run.settings.lp and not run.settings.float32_semantics
    # Boxes that are only halved are the leaves of a tree, which a certificate can hold.
    subdivision = Subdivision(lp=walks, clip=run.record is None)
    with run.step("search"):
        outcome = split_inputs(run.query, run.confirm, budget, subdivision, keep)
    return _recorded(run, outcome)


def _recorded(run: Run, outcome: Outcome) -> Outcome:
    if run.record is not None:
        if outcome.status != "unsat":
            run.record.forget()
        elif run.budget.expired():
            run.record.gap = "time was up before the proof was put together"
        else:
            run.record.searched()
    return outcome


def _by_inputs(run: Run) -> bool:
    """Whether the search is going to split inputs: hidden bounds are then made anew anyway."""
    if not isinstance(run.query.domain, Box) or run.settings.engine == "walk":
        return False
    if run.query.network.inputs > MANY_INPUTS:  # a filter sees few of them, and there are many
        return False
    if run.record is not None and run.query.network.inputs > FEW_INPUTS:
        return False  # without clipping, which a certificate cannot hold, too many boxes
    return _seen_inputs(run.query.network) <= FEW_INPUTS


def _seen_inputs(network: Network) -> float:
    """How many inputs a neuron that reads the input sees, on average."""
    seen = [
        (m.weights[m.sources.index(0)] != 0).sum(-1).double()
        for m in network.layers
        if 0 in m.sources and isinstance(m, Dense)
    ]
    return float(torch.cat(seen).mean()) if seen else float(network.inputs)


def _attack(run: Run, attack: Attack) -> Counterexample | None:
    if not run.settings.attack:
        return None
    with run.step("attack"):
        seeded = replace(attack, seed=run.settings.seed)
        return falsify(run.query, run.confirm, run.budget, seeded)
