"""The split search over bundles: close one open neuron at a time until linear bounds decide.

A record of the search is a pattern with open neurons and the disjunct that it is about. Both
children of a split are bounded together, with slopes and multipliers that start from their
parent's; a bundle with nothing left open is a region, and projections decide it exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fgp_vnn.attack.descent import offer
from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.rounding import positive
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.bounds.backward import LayerBounds
from fgp_vnn.bounds.slopes import Ascent
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once, parts
from fgp_vnn.query import Query
from fgp_vnn.regions.gaps import Gap
from fgp_vnn.regions.settle import Effort, why_open
from fgp_vnn.search.bundles import Bounded, Bundles, Setting, Splitting, bound, choose, halves
from fgp_vnn.search.bundles import set_out as set_out_bundles
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.leaves import decide_regions, leaf_effort
from fgp_vnn.strategy import Projections

HARDLY_CLOSED = 0.8  # the part of the leaves that is open if so few have been closed


@dataclass(frozen=True)
class Split(Splitting):
    """How to search."""

    batch: int = 256
    bundles: int | None = None  # give up after so many
    trial: int | None = None  # after so many, give up if hardly any has been closed
    lp: bool = False  # regions that projections leave open go to a solver


# Takes bundles with slopes and multipliers that show that their disjuncts cannot be met; at the end
# of a search that says unsat, what it was given covers the domain for each disjunct.
KeepClosed = Callable[[Bundles], None]
PRESS = Ascent(steps=300, rate=0.2, decay=0.99)


@dataclass(eq=False)
class _Search:
    setting: Setting
    confirm: Confirm
    frontier: Frontier
    effort: Effort
    keep: KeepClosed | None = None
    unsettled: int = 0
    gaps: list[Gap] = field(default_factory=list)  # of the unsettled
    statistics: dict[str, int] = field(default_factory=lambda: {"bundles": 0})


def split_neurons(
    query: Query,
    bounds: LayerBounds,
    confirm: Confirm,
    budget: Budget,
    split: Split,
    keep: KeepClosed | None = None,
) -> Outcome:
    """Search the regions of the domain in bundles; `bounds` are those of the whole domain."""
    setting, root = set_out_bundles(query, bounds, budget, split)
    search = _Search(
        setting, confirm, Frontier(budget.waiting), leaf_effort(Projections(), split.lp), keep
    )
    search.statistics.update({"lps": 0} if split.lp else {})
    fit = ascents_at_once(query.network, len(query.network.layers), budget.at_once)
    found = None
    for some in parts(len(root.signs), fit):
        found = found or _process(search, root.at(root.disjunct[some]))
    while found is None and len(search.frontier):
        if budget.expired():
            reason = f"time is up with {len(search.frontier)} bundles open"
            return Outcome("timeout", reason=reason, statistics=search.statistics, unfinished=True)
        if _enough(search, split):
            reason = f"{len(search.frontier)} bundles are open"
            return Outcome("unknown", reason=reason, unfinished=True, statistics=search.statistics)
        taken = search.frontier.pop(max(min(split.batch, fit) // 2, 1))
        floats = (taken[n].to(query.network.dtype) for n in ("alpha", "beta", "weights"))
        parents = Bundles(taken["disjunct"], taken["signs"], *floats)
        found = _process(search, halves(parents, taken["neuron"]))
    if found is not None:
        return Outcome("sat", found, statistics=search.statistics)
    if search.unsettled and budget.expired():
        reason = "time is up in the last regions"
        return Outcome("timeout", reason=reason, statistics=search.statistics, unfinished=True)
    if search.unsettled:
        reason = why_open(f"{search.unsettled} regions", search.gaps, split.lp)
        return Outcome("unknown", reason=reason, statistics=search.statistics)
    return Outcome("unsat", statistics=search.statistics)


def _enough(search: _Search, split: Split) -> bool:
    """Whether the work that was allowed is done."""
    bundles = search.statistics["bundles"]
    if split.bundles is not None and bundles >= split.bundles:
        return True
    if split.trial is None or bundles < split.trial:
        return False
    # About half of all bundles are leaves of the tree so far; the rest were split.
    return len(search.frontier) > HARDLY_CLOSED * bundles / 2


def _process(search: _Search, bundles: Bundles) -> Counterexample | None:
    """Bound a batch; close, confirm, settle or keep each of its bundles."""
    setting = search.setting
    query = setting.query
    search.statistics["bundles"] += len(bundles.signs)
    bounded = bound(setting, bundles)
    points = bounded.result.points.flatten(0, 1)
    found = offer(query, search.confirm, points, query.network(points))
    if found is not None:
        return found
    # A sum that is 0 shuts out a point only if a row with weight has to be below 0.
    strict = query.strict[setting.rows.argmax(-1)].all(-1)[bundles.disjunct]
    least = bounded.result.least.squeeze(-1)
    closed = torch.where(strict, least >= 0, least > 0) & (least < torch.inf)
    full = ~closed & ~bounded.crossing.any(-1)
    if search.keep is not None:
        search.keep(bounded.bundles.at(torch.nonzero(closed).flatten()))
        if bool(full.any()):
            closed = closed | _press(search, bounded.bundles, full)
            full = full & ~closed
    if bool(full.any()):
        found = _settle(search, bounded, torch.nonzero(full).flatten())
        if found is not None:
            return found
    _keep(search, bounded, torch.nonzero(~closed & ~full).flatten())
    return None


def _press(search: _Search, bundles: Bundles, full: Tensor) -> Tensor:
    """Which of the `full` bundles [bundles], with nothing open, a longer ascent closes.

    Projections settle a region without multipliers that could be kept.
    """
    at = torch.nonzero(full).flatten()
    splitting = search.setting.splitting
    longer = replace(PRESS, storable=splitting.ascent.storable)
    setting = replace(search.setting, splitting=replace(splitting, ascent=longer))
    bounded = bound(setting, bundles.at(at))
    closed = positive(bounded.result.least.squeeze(-1))
    if search.keep is not None:
        search.keep(bounded.bundles.at(torch.nonzero(closed).flatten()))
    return torch.zeros_like(full).index_copy(0, at, closed)


def _settle(search: _Search, bounded: Bounded, at: Tensor) -> Counterexample | None:
    """Decide the bundles with nothing open, which are regions."""
    signs = bounded.bundles.signs
    lowers = (lo.expand(len(signs), -1) for lo in bounded.bounds.lower)
    lower = torch.cat([bounded.bundles.alpha[:, :0], *lowers], -1)
    stable = torch.where(lower >= 0, 1, -1).to(torch.int8)
    decided = decide_regions(
        search.setting.query,
        torch.where(signs == 0, stable, signs)[at],
        bounded.bundles.disjunct[at],
        search.confirm,
        search.setting.budget,
        search.effort,
        search.setting.bounds,
    )
    if search.effort.lp:
        search.statistics["lps"] += decided.lps
    search.statistics["leaves"] = search.statistics.get("leaves", 0) + len(at)
    search.unsettled += decided.unsettled
    search.gaps += decided.gaps
    return decided.found


def _keep(search: _Search, bounded: Bounded, at: Tensor) -> None:
    """Put the open bundles back, each with the neuron to be split next."""
    if not len(at):
        return
    kept = bounded.bundles.at(at)
    search.frontier.push(
        bounded.result.least.squeeze(-1)[at],
        disjunct=kept.disjunct,
        signs=kept.signs,
        alpha=kept.alpha.float(),
        beta=kept.beta.float(),
        weights=kept.weights.float(),
        neuron=choose(search.setting, bounded, at),
    )
