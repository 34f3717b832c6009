"""The pipeline: cheapest step first, until one decides or the time is up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from fgp_vnn.bounds import LayerBounds, Rounding, backward, root_bounds
from fgp_vnn.collapse import collapse
from fgp_vnn.deadline import Deadline
from fgp_vnn.falsify import Attack, falsify
from fgp_vnn.query import Query
from fgp_vnn.reduction import Lift, reduce_inputs
from fgp_vnn.search.inputs import Subdivision, split_inputs
from fgp_vnn.search.outcome import Confirm, Outcome
from fgp_vnn.search.walk import Walk, walk_regions
from fgp_vnn.settings import Settings
from fgp_vnn.verdict import Counterexample, Verdict

QUICK = Attack(restarts=1, steps=6)
LONG = Attack(restarts=16, steps=40)


@dataclass(eq=False)
class _Run:
    """One query on its way through the steps."""

    query: Query
    confirm: Confirm
    settings: Settings
    deadline: Deadline
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


def solve(query: Query, confirm: Confirm, settings: Settings, deadline: Deadline) -> Verdict:
    """Decide whether a point of the domain meets the unsafe set.

    `confirm` takes points of the query's own domain.
    """
    run = _Run(query, confirm, settings, deadline)
    with torch.inference_mode():
        return _solve(run)


def _solve(run: _Run) -> Verdict:
    if not run.query.disjuncts:
        return run.verdict("unsat", "property")
    if found := _attack(run, QUICK):
        return run.verdict("sat", "attack", found)
    if run.settings.engine == "attack":
        found = _attack(run, LONG)
        if found:
            return run.verdict("sat", "attack", found)
        return run.verdict("unknown", reason="the attack found nothing, and it proves nothing")
    with run.step("bounds"):
        run.query, lift = reduce_inputs(run.query)
        run.confirm = lifted(lift, run.confirm)
        bounds = root_bounds(run.query.network, run.query.domain)
        left = open_disjuncts(run.query, bounds)
    if not left:
        return run.verdict("unsat", "bounds")
    run.query = run.query.only(left)
    if run.deadline.expired():
        return run.verdict("timeout", reason="time is up after the first bounds")
    if found := _attack(run, LONG):
        return run.verdict("sat", "attack", found)
    if run.settings.engine == "bounds":
        return run.verdict("unknown", reason="linear bounds leave it open")
    return _search(run, bounds)


def _search(run: _Run, bounds: LayerBounds) -> Verdict:
    with run.step("search"):
        query, bounds = collapse(run.query, bounds)
        query, lift = reduce_inputs(query)
        run.statistics["unstable"] = sum(int(mask.sum()) for mask in bounds.unstable())
        through = lifted(lift, run.confirm)
        if run.settings.engine == "split":
            outcome = split_inputs(query, through, run.deadline, Subdivision())
            return _report(run, "split", outcome)
        walk = Walk(
            variant="first-boundary" if run.settings.variant == "first-boundary" else "full-queue",
            alternate=run.settings.alternate,
        )
        outcome = walk_regions(query, bounds, lifted(lift, run.confirm), run.deadline, walk)
    return _report(run, "walk", outcome)


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


def open_disjuncts(query: Query, bounds: LayerBounds) -> list[int]:
    """The disjuncts that plain linear bounds do not close."""
    network = query.network
    rows = torch.eye(network.outputs, dtype=network.dtype, device=network.device).unsqueeze(0)
    rounding = Rounding(network, query.domain, bounds)
    passed = backward(
        network, query.domain, len(network.layers), rows, bounds.lines(), rounding=rounding
    )
    closed: list[bool] = query.closed(passed.least)[0].tolist()
    return [disjunct for disjunct, done in enumerate(closed) if not done]


def lifted(lift: Lift, confirm: Confirm) -> Confirm:
    """A confirm for points of the reduced query."""

    def through(points: Tensor) -> Counterexample | None:
        return confirm(lift(points))

    return through
