"""The steps for a query on a network that is already small: bounds, walk, then the rest."""

from __future__ import annotations

import torch

from fgp_vnn.bounds import LayerBounds, Rounding, backward, root_bounds
from fgp_vnn.collapse import collapse
from fgp_vnn.deadline import Deadline
from fgp_vnn.falsify import Attack, falsify
from fgp_vnn.query import Query
from fgp_vnn.reduction import Lift, reduce_inputs
from fgp_vnn.search.outcome import Confirm, Outcome
from fgp_vnn.search.walk import Walk, walk_regions
from fgp_vnn.settings import Settings
from fgp_vnn.solve import solve
from fgp_vnn.verdict import Counterexample, Verdict

PATIENCE = 50_000  # regions to walk before other engines are asked


def decide(query: Query, confirm: Confirm, settings: Settings, deadline: Deadline) -> Verdict:
    """Whether a point of the domain meets a disjunct."""
    if settings.engine == "walk":
        return _walk(query, confirm, settings, deadline)
    if settings.engine not in ("auto", "bounds"):
        return solve(query, confirm, settings, deadline)
    bounds = root_bounds(query.network, query.domain)
    left = open_disjuncts(query, bounds)
    if not left:
        return Verdict("unsat", "bounds")
    query = query.only(left)
    if settings.engine == "bounds":
        return Verdict("unknown", reason="linear bounds leave it open")
    if settings.attack:
        quick = Attack(restarts=1, steps=6, seed=settings.seed)
        found = falsify(query, confirm, deadline, quick)
        if found is not None:
            return Verdict("sat", "attack", found)
    outcome = _search(query, bounds, confirm, settings, deadline, regions=PATIENCE)
    if outcome.status in ("sat", "unsat"):
        return Verdict(
            outcome.status, "walk", outcome.counterexample, statistics=outcome.statistics
        )
    return solve(query, confirm, settings, deadline)


def _walk(query: Query, confirm: Confirm, settings: Settings, deadline: Deadline) -> Verdict:
    """The walk and nothing else."""
    bounds = root_bounds(query.network, query.domain) if settings.stable else _no_bounds(query)
    outcome = _search(query, bounds, confirm, settings, deadline)
    decided = "walk" if outcome.status in ("sat", "unsat") else ""
    return Verdict(
        outcome.status,
        decided,
        outcome.counterexample,
        outcome.reason,
        statistics=outcome.statistics,
    )


def _search(
    query: Query,
    bounds: LayerBounds,
    confirm: Confirm,
    settings: Settings,
    deadline: Deadline,
    regions: int | None = None,
) -> Outcome:
    if settings.stable:
        query, bounds = collapse(query, bounds)
    lift: Lift | None = None
    if settings.reduce:
        query, lift = reduce_inputs(query)
    walk = Walk(
        variant="first-boundary" if settings.variant == "first-boundary" else "full-queue",
        batch=settings.batch,
        cache_first=settings.cache_first,
        signed=settings.signed,
        joint=settings.joint,
        alternate=settings.alternate,
        regions=regions,
    )
    through = confirm if lift is None else lifted(lift, confirm)
    return walk_regions(query, bounds, through, deadline, walk)


def _no_bounds(query: Query) -> LayerBounds:
    """What is known of the neurons without bounds: nothing."""
    like = query.domain.center
    above = tuple(like.new_full((1, width), torch.inf) for width in query.network.widths)
    return LayerBounds(tuple(-bound for bound in above), above)


def open_disjuncts(query: Query, bounds: LayerBounds) -> list[int]:
    """The disjuncts that one backward pass does not close."""
    network = query.network
    rows = torch.eye(network.outputs, dtype=network.dtype, device=network.device).unsqueeze(0)
    rounding = Rounding(network, query.domain, bounds)
    passed = backward(
        network, query.domain, len(network.layers), rows, bounds.lines(), rounding=rounding
    )
    closed: list[bool] = query.closed(passed.least)[0].tolist()
    return [disjunct for disjunct, done in enumerate(closed) if not done]


def lifted(lift: Lift, confirm: Confirm) -> Confirm:
    """A confirm for points of a reduced query."""

    def through(points: torch.Tensor) -> Counterexample | None:
        return confirm(lift(points))

    return through
