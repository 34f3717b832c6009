"""One query on its way through the steps: what is left of it, of its time and of its memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.verdict import Counterexample, Verdict
from fgp_vnn.bounds.backward import LayerBounds, Rounding, backward, root_bounds
from fgp_vnn.bounds.slopes import ascend, start
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once, parts, rows_at_once
from fgp_vnn.engine.record import Record
from fgp_vnn.engine.settings import Settings
from fgp_vnn.query import Query
from fgp_vnn.strategy import Ascent
from fgp_vnn.transform.inputs import Lift, reduce_inputs
from fgp_vnn.transform.opposites import merge_opposites
from fgp_vnn.transform.stable import collapse

WORTH_IT = 0.97  # tighter bounds paid if no more than this part of the unstable neurons is left


@dataclass(eq=False)
class Run:
    """The query as far as it has been shrunk, and what has been spent on it."""

    query: Query
    confirm: Confirm
    settings: Settings
    budget: Budget
    record: Record | None = None  # of what is proved, if that is asked for
    seconds: dict[str, float] = field(default_factory=dict)
    statistics: dict[str, int] = field(default_factory=dict)
    tightened: bool = False  # better hidden bounds have made neurons stable

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the time of what is done in it."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin

    def storable(self, ascent: Ascent) -> Ascent:
        """The ascent, with a result that can be kept if it has to be."""
        return replace(ascent, storable=self.record is not None)

    def only(self, disjuncts: list[int]) -> None:
        """Go on with some of the disjuncts."""
        self.query = self.query.only(disjuncts)
        if self.record is not None:
            self.record.only(disjuncts)

    def report(self, engine: str, outcome: Outcome) -> Verdict:
        """What an engine came to, as a verdict."""
        for name, count in outcome.statistics.items():
            self.statistics[name] = self.statistics.get(name, 0) + count
        decided = engine if outcome.status in ("sat", "unsat") else ""
        return self.verdict(outcome.status, decided, outcome.counterexample, outcome.reason)

    def verdict(
        self,
        status: Literal["sat", "unsat", "unknown", "timeout"],
        decided_by: str = "",
        counterexample: Counterexample | None = None,
        reason: str = "",
    ) -> Verdict:
        return Verdict(status, decided_by, counterexample, reason, self.seconds, self.statistics)


def shrink(run: Run, bounds: LayerBounds | None) -> LayerBounds:
    """Leave out what cannot matter: stable neurons, inputs that do not move or are not seen."""
    if bounds is not None:
        bounds = _collapse(run, bounds)
        # What a record proves is about the neurons of the file, and merged ones are none of them.
        merged = merge_opposites(run.query, bounds) if run.record is None else None
        if merged is not None:
            run.query, bounds = merged
            network, domain = run.query.network, run.query.domain
            bounds = root_bounds(network, domain, prior=bounds, budget=run.budget)
            bounds = _collapse(run, bounds)
        run.statistics["unstable"] = sum(int(mask.sum()) for mask in bounds.unstable())
    run.query, lift = reduce_inputs(run.query)
    run.confirm = _through(lift, run.confirm)
    if run.record is not None:
        run.record.reduced(lift)
    return bounds or LayerBounds((), ())


def _collapse(run: Run, bounds: LayerBounds) -> LayerBounds:
    before = run.query
    run.query, kept = collapse(before, bounds, budget=run.budget)
    if run.record is not None and run.query is not before:
        run.record.collapsed(bounds)
    return kept


def tighter(run: Run, bounds: LayerBounds, ascent: Ascent) -> tuple[LayerBounds, list[int]]:
    """Leave out what has become stable, and see which disjuncts stay open."""
    before = run.statistics["unstable"]
    bounds = shrink(run, bounds)
    run.tightened = run.statistics["unstable"] <= WORTH_IT * before
    return bounds, left_open(run, bounds, run.storable(ascent))


def left_open(run: Run, bounds: LayerBounds, ascent: Ascent | None) -> list[int]:
    """The disjuncts that linear bounds, plain or optimised, do not close."""
    query, network, depth = run.query, run.query.network, len(run.query.network.layers)
    limit = run.budget.at_once
    plain = ascent is None
    fit = (
        rows_at_once(network, depth, 1, limit) if plain else ascents_at_once(network, depth, limit)
    )
    rows = torch.eye(network.outputs, dtype=network.dtype, device=network.device).unsqueeze(0)
    found = [_least(run, rows[:, some], bounds, ascent) for some in parts(network.outputs, fit)]
    least = torch.cat([part for part, _ in found], -1)
    closed: list[bool] = query.closed(least)[0].tolist()
    if run.record is not None:
        done = [disjunct for disjunct, shut in enumerate(closed) if shut]
        slopes = zip(*(alpha for _, alpha in found), strict=True)
        run.record.closed(query, done, least[0], [torch.cat(layer, 1) for layer in slopes])
    return [disjunct for disjunct, done in enumerate(closed) if not done]


def _least(
    run: Run, rows: Tensor, bounds: LayerBounds, ascent: Ascent | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Proved lower bounds of some of the rows, and the slopes that give them."""
    network, domain, depth = run.query.network, run.query.domain, len(run.query.network.layers)
    if ascent is None or run.budget.expired():
        rounding = Rounding(network, domain, bounds)
        passed = backward(network, domain, depth, rows, bounds.lines(), rounding=rounding)
        return passed.least, () if run.record is None else start(network, rows, bounds).alpha

    def done(least: Tensor) -> bool:
        whole = least.shape[-1] == network.outputs
        closed = run.query.closed(least) if whole else least > 0
        return bool(closed.all()) or run.budget.expired()

    result = ascend(network, domain, depth, rows, bounds, ascent=ascent, done=done)
    return result.least, result.multipliers.alpha


def _through(lift: Lift, confirm: Confirm) -> Confirm:
    def lifted(points: Tensor) -> Counterexample | None:
        return confirm(lift(points))

    return lifted
