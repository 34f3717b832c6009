"""The steps for a query on a network that is already small: bounds, walk, then the rest."""

from __future__ import annotations

from dataclasses import replace

import torch

from fgp_vnn.attack.descent import Attack, falsify
from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.verdict import Counterexample, Verdict
from fgp_vnn.bounds.backward import LayerBounds, Rounding, backward, root_bounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.settings import Settings
from fgp_vnn.engine.solve import solve
from fgp_vnn.query import Query
from fgp_vnn.search.walk.walk import Walk, walk_regions
from fgp_vnn.transform.chains import Condensed, condense, fits, is_chain
from fgp_vnn.transform.inputs import Lift, reduce_inputs
from fgp_vnn.transform.stable import collapse, undecided

QUICK = Attack(restarts=1, steps=6)
PATIENCE = 50_000  # regions to walk before other engines are asked


def decide(query: Query, confirm: Confirm, settings: Settings, budget: Budget) -> Verdict:
    """Whether a point of the domain meets a disjunct."""
    return _decide(query, confirm, settings, budget).after({"lps": 0} if settings.lp else {})


def _decide(query: Query, confirm: Confirm, settings: Settings, budget: Budget) -> Verdict:
    if settings.engine == "walk":
        return _verdict(_walk_only(query, confirm, settings, budget))
    if settings.engine not in ("auto", "bounds"):
        return solve(query, confirm, settings, budget)
    small = shrink(query, budget)
    closed: list[bool] = query.closed(small.least).tolist()
    left = [disjunct for disjunct, done in enumerate(closed) if not done]
    if not left:
        return Verdict("unsat", "bounds")
    if budget.expired():
        return Verdict("timeout", reason="time is up after the first bounds")
    if settings.engine == "bounds":
        return Verdict("unknown", reason="linear bounds leave it open")
    query = small.query.only(left)
    if settings.attack:
        attack = replace(QUICK, seed=settings.seed)
        found = falsify(query, confirm, budget, attack)
        if found is not None:
            return Verdict("sat", "attack", found)
    outcome = _walk(query, small.bounds, confirm, settings, budget, regions=PATIENCE)
    if outcome.status in ("sat", "unsat", "timeout"):
        return _verdict(outcome)
    return solve(query, confirm, settings, budget).after(outcome.statistics)


def shrink(query: Query, budget: Budget) -> Condensed:
    """The query on its unstable neurons, their bounds, and bounds of the outputs."""
    network, domain = query.network, query.domain
    if is_chain(network) and fits(network, budget):
        small = condense(query, budget)
        if small is not None:
            return small
    bounds = root_bounds(network, domain, budget=budget)
    rows = torch.eye(network.outputs, dtype=network.dtype, device=network.device).unsqueeze(0)
    rounding = Rounding(network, domain, bounds)
    passed = backward(network, domain, len(network.layers), rows, bounds.lines(), rounding=rounding)
    collapsed, kept = collapse(query, bounds, budget=budget)
    neurons = remaining(query, collapsed, bounds)
    return Condensed(passed.least[0], kept, neurons, lambda: collapsed)


def remaining(query: Query, small: Query, bounds: LayerBounds) -> torch.Tensor:
    """The places, among the query's neurons, of those that are left after a collapse."""
    every = torch.arange(query.network.neurons, device=query.network.device)
    if small is query:
        return every
    return every[torch.cat([every[:0].bool(), *undecided(bounds)])]


def lifted(lift: Lift, confirm: Confirm) -> Confirm:
    """A confirm for points of a reduced query."""

    def through(points: torch.Tensor) -> Counterexample | None:
        return confirm(lift(points))

    return through


def _walk_only(query: Query, confirm: Confirm, settings: Settings, budget: Budget) -> Outcome:
    if not settings.stable:
        return _walk(query, _no_bounds(query), confirm, settings, budget)
    small = shrink(query, budget)
    if budget.expired():
        return Outcome("timeout", reason="time is up after the first bounds")
    return _walk(small.query, small.bounds, confirm, settings, budget)


def _walk(
    query: Query,
    bounds: LayerBounds,
    confirm: Confirm,
    settings: Settings,
    budget: Budget,
    regions: int | None = None,
) -> Outcome:
    if settings.reduce:
        query, lift = reduce_inputs(query)
        confirm = lifted(lift, confirm)
    walk = Walk(
        variant="first-boundary" if settings.variant == "first-boundary" else "full-queue",
        batch=settings.batch,
        cache_first=settings.cache_first,
        signed=settings.signed,
        joint=settings.joint,
        alternate=settings.alternate,
        lp=settings.lp,
        regions=regions,
    )
    return walk_regions(query, bounds, confirm, budget, walk)


def _no_bounds(query: Query) -> LayerBounds:
    """What is known of the neurons without bounds: nothing."""
    like = query.domain.center
    above = tuple(like.new_full((1, width), torch.inf) for width in query.network.widths)
    return LayerBounds(tuple(-bound for bound in above), above)


def _verdict(outcome: Outcome) -> Verdict:
    decided = "walk" if outcome.status in ("sat", "unsat") else ""
    return Verdict(
        outcome.status,
        decided,
        outcome.counterexample,
        outcome.reason,
        statistics=outcome.statistics,
    )
