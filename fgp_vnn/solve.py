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
from fgp_vnn.memory import DEFAULT, budget
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.record import Record
from fgp_vnn.reduction import Lift, reduce_inputs
from fgp_vnn.refine import refine_layers
from fgp_vnn.search.bundles import CLIMB, Splitting
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
SHORT = Split(batch=64, bundles=300)
SLOPES = Ascent(steps=20, rate=0.3, decay=0.95)


@dataclass(eq=False)
class _Run:
    """One query on its way through the steps."""

    query: Query
    confirm: Confirm
    settings: Settings
    deadline: Deadline
    record: Record | None = None  # of what is proved, if that is asked for
    seconds: dict[str, float] = field(default_factory=dict)
    statistics: dict[str, int] = field(default_factory=dict)

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


def solve(
    query: Query,
    confirm: Confirm,
    settings: Settings,
    deadline: Deadline,
    record: Record | None = None,
) -> Verdict:
    """Decide whether a point of the domain meets the unsafe set.

    `confirm` takes points of the query's own domain. `record` gets what a proof consists of.
    """
    run = _Run(query, confirm, settings, deadline, record)
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
        _only(run, left)
        bounds = _shrink(run, bounds)
    if found := _attack(run, LONG):
        return run.verdict("sat", "attack", found)
    with run.step("bounds"):
        bounds, left = _optimise(run, bounds)
    if not left:
        return run.verdict("unsat", "bounds")
    _only(run, left)
    if run.deadline.expired():
        return run.verdict("timeout", reason="time is up after the first bounds")
    if run.settings.engine == "bounds":
        return run.verdict("unknown", reason="linear bounds leave it open")
    return _search(run, bounds)


def _first_bounds(run: _Run) -> LayerBounds:
    network, domain = run.query.network, run.query.domain
    if isinstance(domain, Box) and _by_inputs(run) and pays(network):
        return Forward(network).bounds(Box(domain.lower.unsqueeze(0), domain.upper.unsqueeze(0)))
    memory = min(budget(run.settings.memory) // 2, DEFAULT)  # more would not be faster
    return root_bounds(network, domain, memory=memory, deadline=run.deadline)


def _shrink(run: _Run, bounds: LayerBounds | None) -> LayerBounds:
    """Leave out what cannot matter: stable neurons, inputs that do not move or are not seen."""
    query = run.query
    if bounds is not None:
        query, kept = collapse(query, bounds, memory=budget(run.settings.memory))
        if run.record is not None and query is not run.query:
            run.record.collapsed(bounds)
        bounds = kept
        run.statistics["unstable"] = sum(int(mask.sum()) for mask in bounds.unstable())
    run.query, lift = reduce_inputs(query)
    run.confirm = _through(lift, run.confirm)
    if run.record is not None:
        run.record.reduced(lift)
    return bounds or LayerBounds((), ())


def _optimise(run: _Run, bounds: LayerBounds) -> tuple[LayerBounds, list[int]]:
    """Slopes of the output rows first; then, if that is not enough, of the hidden layers."""
    left = _left(run, bounds, _storable(run, SLOPES))
    if not left or len(bounds.lower) < 2 or _by_inputs(run):
        return bounds, left
    _only(run, left)
    return _tighter(run, _refine(run, bounds, _share(run, REFINE_SHARE)))


def _refine(run: _Run, bounds: LayerBounds, patience: Deadline) -> LayerBounds:
    keep = None if run.record is None else run.record.refined
    return refine_layers(run.query, bounds, _storable(run, SLOPES), patience, keep)


def _storable(run: _Run, ascent: Ascent) -> Ascent:
    """The ascent, with a result that can be kept if it has to be."""
    return replace(ascent, storable=run.record is not None)


def _only(run: _Run, disjuncts: list[int]) -> None:
    """Go on with some of the disjuncts."""
    run.query = run.query.only(disjuncts)
    if run.record is not None:
        run.record.only(disjuncts)


def _tighter(run: _Run, bounds: LayerBounds) -> tuple[LayerBounds, list[int]]:
    """Leave out what has become stable, and see which disjuncts stay open."""
    bounds = _shrink(run, bounds)
    return bounds, _left(run, bounds, _storable(run, SLOPES))


def _search(run: _Run, bounds: LayerBounds) -> Verdict:
    """The walk where regions are few, input splits where inputs are, else neuron splits."""
    settings = run.settings
    few = run.statistics.get("unstable", 0) <= FEW_NEURONS
    if settings.engine == "walk" or (settings.engine == "auto" and few):
        walk = Walk(
            variant="first-boundary" if settings.variant == "first-boundary" else "full-queue",
            alternate=settings.alternate,
        )
        with run.step("search"):
            outcome = walk_regions(run.query, bounds, run.confirm, run.deadline, walk)
        if run.record is not None and outcome.status == "unsat":
            _prove_again(run, bounds)
        return _report(run, "walk", outcome)
    if _by_inputs(run):
        return _report(run, "split", _split_inputs(run, run.deadline))
    return _split(run, bounds)


def _split(run: _Run, bounds: LayerBounds) -> Verdict:
    """A short split search; then hidden neurons split, as long as that makes more of them stable;
    then a split search to the end."""
    outcome = _split_neurons(run, bounds, SHORT)
    verdict = _report(run, "split", outcome)
    if not outcome.unfinished:
        return verdict
    if isinstance(run.query.domain, Box) and run.query.network.inputs <= SOME_INPUTS:
        # Neither way of splitting is always the better one: give each its turn.
        verdict = _report(run, "split", _split_inputs(run, _share(run, INPUTS_SHARE)))
        if verdict.status in ("sat", "unsat"):
            return verdict
    patience = _share(run, SHARPEN_SHARE)
    rounds = ROUNDS
    while len(bounds.lower) > 1 and not patience.expired():
        before = run.statistics["unstable"]
        with run.step("sharpen"):
            keep = None if run.record is None else run.record.sharpened
            splitting = Splitting(ascent=_storable(run, CLIMB))
            sharper = sharpen_layers(run.query, bounds, rounds, patience, splitting, keep)
            bounds, left = _tighter(run, _refine(run, sharper, patience))
        if not left:
            return run.verdict("unsat", "split")
        _only(run, left)
        if run.statistics["unstable"] > WORTH_IT * before:
            break
        rounds *= 2
    return _report(run, "split", _split_neurons(run, bounds, Split()))


def _share(run: _Run, part: float) -> Deadline:
    """A part of the time that is left; without a limit, a part of what is usual."""
    left = run.deadline.left()
    return run.deadline.sooner(part * (USUAL if left == math.inf else max(left, 0.0)))


def _split_neurons(run: _Run, bounds: LayerBounds, split: Split) -> Outcome:
    keep = None if run.record is None else run.record.leaf
    split = replace(split, ascent=_storable(run, split.ascent))
    with run.step("search"):
        outcome = split_neurons(run.query, bounds, run.confirm, run.deadline, split, keep)
    return _recorded(run, outcome)


def _split_inputs(run: _Run, deadline: Deadline) -> Outcome:
    keep = None if run.record is None else run.record.box
    # Boxes that are only halved are the leaves of a tree, which a certificate can hold.
    subdivision = Subdivision(clip=run.record is None)
    with run.step("search"):
        outcome = split_inputs(run.query, run.confirm, deadline, subdivision, keep)
    return _recorded(run, outcome)


def _prove_again(run: _Run, bounds: LayerBounds) -> None:
    """A proof by splits for what a walk has shown: its regions have no form in a certificate."""
    outcome = _split_neurons(run, bounds, Split())
    if run.record is not None and outcome.status != "unsat":
        run.record.gap = "the walk's verdict could not be proved again by splits"


def _recorded(run: _Run, outcome: Outcome) -> Outcome:
    if run.record is not None:
        if outcome.status != "unsat":
            run.record.forget()
        elif run.deadline.expired():
            run.record.gap = "time was up before the proof was put together"
        else:
            run.record.searched()
    return outcome


def _by_inputs(run: _Run) -> bool:
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
        return falsify(run.query, run.confirm, run.deadline, seeded)


def _left(run: _Run, bounds: LayerBounds, ascent: Ascent | None) -> list[int]:
    """The disjuncts that linear bounds, plain or optimised, do not close."""
    query = run.query
    network, domain, depth = query.network, query.domain, len(query.network.layers)
    rows = torch.eye(network.outputs, dtype=network.dtype, device=network.device).unsqueeze(0)
    slopes: tuple[Tensor, ...] | None = None
    if ascent is None:
        rounding = Rounding(network, domain, bounds)
        least = backward(network, domain, depth, rows, bounds.lines(), rounding=rounding).least
    else:
        result = ascend(
            network,
            domain,
            depth,
            rows,
            bounds,
            ascent=ascent,
            done=lambda least: bool(query.closed(least).all()) or run.deadline.expired(),
        )
        least, slopes = result.least, result.multipliers.alpha
    closed: list[bool] = query.closed(least)[0].tolist()
    if run.record is not None:
        done = [disjunct for disjunct, shut in enumerate(closed) if shut]
        run.record.closed(query, done, least[0], slopes)
    return [disjunct for disjunct, done in enumerate(closed) if not done]


def _through(lift: Lift, confirm: Confirm) -> Confirm:
    def lifted(points: Tensor) -> Counterexample | None:
        return confirm(lift(points))

    return lifted
