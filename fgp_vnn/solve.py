"""The pipeline: cheapest step first, until one decides or the time is up."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from fgp_vnn.ascent import Ascent, ascend
from fgp_vnn.bounds import LayerBounds, Rounding, backward, root_bounds
from fgp_vnn.collapse import collapse
from fgp_vnn.deadline import Deadline
from fgp_vnn.domain import Box
from fgp_vnn.falsify import MANY_INPUTS, Attack, falsify
from fgp_vnn.forward import Forward, pays
from fgp_vnn.memory import Memory, ascents_at_once, budget, parts, rows_at_once
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.opposites import merge_opposites
from fgp_vnn.query import Query
from fgp_vnn.reduction import Lift, reduce_inputs
from fgp_vnn.refine import refine_layers
from fgp_vnn.search.bundles import Splitting
from fgp_vnn.search.inputs import Subdivision, split_inputs
from fgp_vnn.search.outcome import Confirm, Outcome
from fgp_vnn.search.sharpen import sharpen_layers
from fgp_vnn.search.split import Split, split_neurons
from fgp_vnn.search.walk import Walk, walk_regions
from fgp_vnn.settings import Settings
from fgp_vnn.verdict import Counterexample, Verdict

FEW_NEURONS = 6  # up to so many unstable neurons, the walk is over at once
FEW_INPUTS = 16  # up to so many, splitting inputs beats splitting neurons
QUICK = Attack(restarts=1, steps=6)
LONG = Attack(restarts=8, steps=25)
ROUNDS = 8  # of splits of hidden neurons, doubled each time that they paid
WORTH_IT = 0.97  # they paid if no more than this part of the unstable neurons is left
SHARPEN_SHARE = 0.75  # of the time, at most, for that
SOME_INPUTS = 64  # up to so many, splitting inputs may beat splitting neurons
INPUTS_SHARE = 0.4  # of the time, at most, to find out
USUAL = 600.0  # seconds, where no limit is given
REFINE_SHARE = 0.2  # of the time, at most, for slopes of hidden layers
SHORT = Split(bundles=2000, trial=300)
SHORT_SHARE = 0.25  # of the time, at most, for that
SLOPES = Ascent(steps=20, rate=0.3, decay=0.95)


@dataclass(eq=False)
class _Run:
    """One query on its way through the steps."""

    query: Query
    confirm: Confirm
    settings: Settings
    deadline: Deadline
    memory: Memory
    seconds: dict[str, float] = field(default_factory=dict)
    statistics: dict[str, int] = field(default_factory=dict)
    tightened: bool = False  # better hidden bounds have made neurons stable

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin

    def verdict(
        self,
        status: Literal["sat", "unsat", "unknown", "timeout"],
        decided_by: str = "",
        counterexample: Counterexample | None = None,
        reason: str = "",
    ) -> Verdict:
        return Verdict(status, decided_by, counterexample, reason, self.seconds, self.statistics)


def solve(query: Query, confirm: Confirm, settings: Settings, deadline: Deadline) -> Verdict:
    """Decide whether a point of the domain meets the unsafe set.

    `confirm` takes points of the query's own domain.
    """
    lps = {"lps": 0} if settings.lp else {}
    run = _Run(query, confirm, settings, deadline, budget(settings.memory), statistics=lps)
    with torch.no_grad():
        return _solve(run)


def _solve(run: _Run) -> Verdict:
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
        _shrink(run, None)
        bounds = _first_bounds(run)
        left = _left(run, bounds, None)
    if not left:
        return run.verdict("unsat", "bounds")
    with run.step("bounds"):
        run.query = run.query.only(left)
        bounds = _shrink(run, bounds)
    if found := _attack(run, LONG):
        return run.verdict("sat", "attack", found)
    with run.step("bounds"):
        bounds, left = _optimise(run, bounds)
    if not left:
        return run.verdict("unsat", "bounds")
    run.query = run.query.only(left)
    if run.deadline.expired():
        return run.verdict("timeout", reason="time is up after the first bounds")
    if run.settings.engine == "bounds":
        return run.verdict("unknown", reason="linear bounds leave it open")
    return _search(run, bounds)


def _first_bounds(run: _Run) -> LayerBounds:
    network, domain = run.query.network, run.query.domain
    if isinstance(domain, Box) and _by_inputs(run) and pays(network):
        return Forward(network).bounds(Box(domain.lower.unsqueeze(0), domain.upper.unsqueeze(0)))
    return root_bounds(network, domain, memory=run.memory.at_once, deadline=run.deadline)


def _shrink(run: _Run, bounds: LayerBounds | None) -> LayerBounds:
    """Leave out what cannot matter: stable neurons, inputs that do not move or are not seen."""
    query = run.query
    if bounds is not None:
        memory, deadline = run.memory.matrices, run.deadline
        query, bounds = collapse(query, bounds, memory=memory, deadline=deadline)
        if merged := merge_opposites(query, bounds):
            query, bounds = merged
            some = run.memory.at_once
            bounds = root_bounds(
                query.network, query.domain, prior=bounds, memory=some, deadline=deadline
            )
            query, bounds = collapse(query, bounds, memory=memory, deadline=deadline)
        run.statistics["unstable"] = sum(int(mask.sum()) for mask in bounds.unstable())
    run.query, lift = reduce_inputs(query)
    run.confirm = _through(lift, run.confirm)
    return bounds or LayerBounds((), ())


def _optimise(run: _Run, bounds: LayerBounds) -> tuple[LayerBounds, list[int]]:
    """Slopes of the output rows first; then, if that is not enough, of the hidden layers."""
    left = _left(run, bounds, SLOPES)
    if not left or len(bounds.lower) < 2 or _by_inputs(run):
        return bounds, left
    run.query = run.query.only(left)
    patience = _share(run, REFINE_SHARE)
    return _tighter(run, _refine(run, bounds, patience))


def _refine(run: _Run, bounds: LayerBounds, patience: Deadline) -> LayerBounds:
    return refine_layers(run.query, bounds, SLOPES, patience, memory=run.memory.at_once)


def _tighter(run: _Run, bounds: LayerBounds) -> tuple[LayerBounds, list[int]]:
    """Leave out what has become stable, and see which disjuncts stay open."""
    before = run.statistics["unstable"]
    bounds = _shrink(run, bounds)
    run.tightened = run.statistics["unstable"] <= WORTH_IT * before
    return bounds, _left(run, bounds, SLOPES)


def _search(run: _Run, bounds: LayerBounds) -> Verdict:
    """The walk where regions are few, input splits where inputs are, else neuron splits."""
    settings = run.settings
    few = run.statistics.get("unstable", 0) <= FEW_NEURONS
    few = few and not settings.float32_semantics  # what the walk reaches, it reaches by continuity
    if settings.engine == "walk" or (settings.engine == "auto" and few):
        walk = Walk(
            variant="first-boundary" if settings.variant == "first-boundary" else "full-queue",
            alternate=settings.alternate,
            lp=settings.lp,
            memory=run.memory,
        )
        with run.step("search"):
            outcome = walk_regions(run.query, bounds, run.confirm, run.deadline, walk)
        return _report(run, "walk", outcome)
    if _by_inputs(run):
        with run.step("search"):
            outcome = split_inputs(run.query, run.confirm, run.deadline, _subdivision(run))
        return _report(run, "split", outcome)
    return _split(run, bounds)


def _split(run: _Run, bounds: LayerBounds) -> Verdict:
    """Split neurons, and before that whatever may make the splits fewer."""
    some = isinstance(run.query.domain, Box) and run.query.network.inputs <= SOME_INPUTS
    if some or run.tightened:
        outcome = _split_neurons(run, bounds, SHORT, _share(run, SHORT_SHARE))
        verdict = _report(run, "split", outcome)
        if not outcome.unfinished or run.deadline.expired():
            return verdict
    if some:
        # Neither way of splitting is always the better one: give each its turn.
        turn = _share(run, INPUTS_SHARE)
        with run.step("search"):
            outcome = split_inputs(run.query, run.confirm, turn, _subdivision(run))
        verdict = _report(run, "split", outcome)
        if verdict.status in ("sat", "unsat"):
            return verdict
    bounds, left = _sharpen(run, bounds)
    if not left:
        return run.verdict("unsat", "split")
    run.query = run.query.only(left)
    return _report(run, "split", _split_neurons(run, bounds, Split(), run.deadline))


def _sharpen(run: _Run, bounds: LayerBounds) -> tuple[LayerBounds, list[int]]:
    """Bounds of hidden neurons by splits of their own, as long as that makes more of them stable;
    where the best slopes have made none stable, splits will not either."""
    patience = _share(run, SHARPEN_SHARE)
    left = list(range(run.query.disjuncts))
    rounds = ROUNDS
    while left and run.tightened and len(bounds.lower) > 1 and not patience.expired():
        run.query = run.query.only(left)
        with run.step("sharpen"):
            sharper = sharpen_layers(
                run.query, bounds, rounds, patience, Splitting(), memory=run.memory
            )
            bounds, left = _tighter(run, _refine(run, sharper, patience))
        rounds *= 2
    return bounds, left


def _share(run: _Run, part: float) -> Deadline:
    """A part of the time that is left; without a limit, a part of what is usual."""
    left = run.deadline.left()
    return run.deadline.sooner(part * (USUAL if left == math.inf else max(left, 0.0)))


def _split_neurons(run: _Run, bounds: LayerBounds, split: Split, deadline: Deadline) -> Outcome:
    with run.step("search"):
        split = replace(split, lp=run.settings.lp, memory=run.memory)
        return split_neurons(run.query, bounds, run.confirm, deadline, split)


def _subdivision(run: _Run) -> Subdivision:
    # With an LP the last boxes are walked through, and what the walk shows is about real numbers.
    walks = run.settings.lp and not run.settings.float32_semantics
    return Subdivision(lp=walks, memory=run.memory)


def _by_inputs(run: _Run) -> bool:
    """Whether the search is going to split inputs: hidden bounds are then made anew anyway."""
    if not isinstance(run.query.domain, Box) or run.settings.engine == "walk":
        return False
    if run.query.network.inputs > MANY_INPUTS:  # a filter sees few of them, and there are many
        return False
    return _seen_inputs(run.query.network) <= FEW_INPUTS


def _seen_inputs(network: Network) -> float:
    """How many inputs a neuron that reads the input sees, on average."""
    seen = [
        (m.weights[m.sources.index(0)] != 0).sum(-1).double()
        for m in network.layers
        if 0 in m.sources and isinstance(m, Dense)
    ]
    return float(torch.cat(seen).mean()) if seen else float(network.inputs)


def _report(run: _Run, engine: str, outcome: Outcome) -> Verdict:
    for name, count in outcome.statistics.items():
        run.statistics[name] = run.statistics.get(name, 0) + count
    decided = engine if outcome.status in ("sat", "unsat") else ""
    return run.verdict(outcome.status, decided, outcome.counterexample, outcome.reason)


def _attack(run: _Run, attack: Attack) -> Counterexample | None:
    if not run.settings.attack:
        return None
    with run.step("attack"):
        seeded = replace(attack, seed=run.settings.seed)
        return falsify(run.query, run.confirm, run.deadline, seeded, memory=run.memory.at_once)


def _left(run: _Run, bounds: LayerBounds, ascent: Ascent | None) -> list[int]:
    """The disjuncts that linear bounds, plain or optimised, do not close."""
    query, network, depth = run.query, run.query.network, len(run.query.network.layers)
    limit = run.memory.at_once
    plain = ascent is None
    fit = (
        rows_at_once(network, depth, 1, limit) if plain else ascents_at_once(network, depth, limit)
    )
    rows = torch.eye(network.outputs, dtype=network.dtype, device=network.device).unsqueeze(0)
    least = [_least(run, rows[:, some], bounds, ascent) for some in parts(network.outputs, fit)]
    closed: list[bool] = query.closed(torch.cat(least, -1))[0].tolist()
    return [disjunct for disjunct, done in enumerate(closed) if not done]


def _least(run: _Run, rows: Tensor, bounds: LayerBounds, ascent: Ascent | None) -> Tensor:
    """Proved lower bounds of some of the rows."""
    network, domain, depth = run.query.network, run.query.domain, len(run.query.network.layers)
    if ascent is None or run.deadline.expired():
        rounding = Rounding(network, domain, bounds)
        return backward(network, domain, depth, rows, bounds.lines(), rounding=rounding).least

    def done(least: Tensor) -> bool:
        whole = least.shape[-1] == network.outputs
        closed = run.query.closed(least) if whole else least > 0
        return bool(closed.all()) or run.deadline.expired()

    return ascend(network, domain, depth, rows, bounds, ascent=ascent, done=done).least


def _through(lift: Lift, confirm: Confirm) -> Confirm:
    def lifted(points: Tensor) -> Counterexample | None:
        return confirm(lift(points))

    return lifted
