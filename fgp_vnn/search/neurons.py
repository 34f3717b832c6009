"""The split search over neurons: close one open neuron at a time until linear bounds decide.

The goal is to *decide* a query. Each bundle is about one disjunct, and its level is the minimum of
its linear bound: above 0, the disjunct cannot be met in the bundle. Both children of a split are
bounded together, starting from the slopes and multipliers of their parent. A bundle without open
neurons is a region, and projections decide it exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from fgp_vnn.attack.descent import offer
from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.reading import read
from fgp_vnn.base.rounding import positive
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.base.words import plural
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once
from fgp_vnn.query import Query
from fgp_vnn.regions.gaps import Gap
from fgp_vnn.regions.refute import Refuter
from fgp_vnn.regions.settle import Effort, why_open
from fgp_vnn.search.best_first import Batch, BestFirst, Goal, Held, Keep, Visited, keep_nothing
from fgp_vnn.search.bundles import BundleContext, Bundles, bound, context_and_root, rounding_of
from fgp_vnn.search.choice import choose
from fgp_vnn.search.clip_bundles import BundleClipper
from fgp_vnn.search.clipped_neurons import Clipping, promised
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.leaves import Leaves, leaf_effort
from fgp_vnn.search.pace import Pace
from fgp_vnn.search.waiting_bounds import empty_ones, waiting_bounds, with_waiting
from fgp_vnn.strategy import Ascent, Neurons, Strategy


@dataclass(eq=False)
class Decide(Goal):
    """The goal of deciding whether a point of the domain meets a disjunct of the query."""

    context: BundleContext
    confirm: Confirm
    effort: Effort  # for a region that bounds leave open
    longer: Ascent  # for a region that a certificate has to hold
    clipper: BundleClipper | None = None  # tightens bounds of hidden neurons
    rounding: Rounding | None = None  # of the whole domain, and so of every bundle
    found: Counterexample | None = None
    # "leaves": regions tried by projections, "lps": programs solved, and regions "unsettled"
    counts: Counter[str] = field(default_factory=Counter)
    gaps: list[Gap] = field(default_factory=list)  # of the unsettled

    @property
    def over(self) -> bool:  # type: ignore[override]
        return self.found is not None

    def first(self, count: int) -> Held:
        """Initial data of `count` bundles: their bounds, if these change."""
        return waiting_bounds(*self.context.bounds.joined(count)) if self.clipper else {}

    def visit(self, batch: Batch) -> Visited:
        query, local = self.context.query, self._local(batch.held)
        pattern = torch.split(batch.bundles.signs, self.context.widths, -1)
        bounds = local.bounds.within(pattern)
        empty = empty_ones(bounds, len(batch.level), batch.level.device)
        bounded = bound(replace(local, bounds=bounds.uncrossed()), batch.bundles, self.rounding)
        points = bounded.result.points.flatten(0, 1)
        outputs, how = query.network(points), self.effort.how.offer
        self.found = offer(query, self.confirm, points, outputs, how)
        least = bounded.result.least.squeeze(-1)
        closed = empty | positive(least)
        visited = Visited(bounded, least, closed, {})
        return self.clipper.clip(self.context, visited) if self.clipper else visited

    def _local(self, held: Held) -> BundleContext:
        """The context with the bundles' own bounds, if they have any."""
        return with_waiting(self.context, held) if self.clipper else self.context

    def choose(self, visited: Visited, at: Tensor) -> Tensor:
        """The neuron to split, by the clipped bounds, or -1 to bound the bundle once more. If all
        neurons have become stable, any will do: one child is empty, the other is bounded again."""
        if self.clipper is None:
            return super().choose(visited, at)
        numbers = self.clipper.clipping.numbers
        bounds = self._local(visited.held).bounds
        rest, neuron = torch.arange(len(at), device=at.device), torch.full_like(at, -1)
        if self._repeats:
            rise = promised(visited.bounded, bounds, at)
            lacks = -visited.level[at].clamp(max=0)
            rest = torch.nonzero(~(rise > numbers.again * lacks)).flatten()
            at = at[rest]
        if len(at):
            crossing = torch.cat(bounds.unstable(), -1)
            halves = {name: part[at.repeat(2)] for name, part in visited.held.items()}
            sharper = replace(visited.bounded, bounds=bounds, crossing=crossing)
            neuron[rest] = choose(self._local(halves), sharper, at)
        return neuron

    @property
    def _repeats(self) -> bool:
        """Whether bundles may be bounded once more; not on a GPU, which the test would stall."""
        clipper = self.clipper
        return clipper is not None and self.context.ascent.looks and clipper.clipping.repeats

    def done(self, batch: Batch) -> Tensor | None:
        """No bundle is closed while it waits; a mask instead of None allows a neuron of -1."""
        return torch.zeros_like(batch.level, dtype=torch.bool) if self._repeats else None

    def settle(self, visited: Visited, at: Tensor) -> Bundles:
        """Decide regions by projections. For a certificate, a longer ascent comes first, and the
        bundles that it closes are returned. In smooth networks the rest count as unsettled: they
        are not regions."""
        bundles = visited.bounded.bundles
        proved = bundles.at(at[:0])
        if self.context.ascent.storable:
            proved, at = self._prove_by_slopes(bundles, at)
        if not self.context.query.network.piecewise_linear:
            self.counts["unsettled"] += len(at)
        elif len(at):
            query, budget = self.context.query, self.context.budget
            refuter = Refuter(query, budget, self.context.bounds)
            leaves = Leaves(query, self.confirm, budget, self.effort, refuter)
            decided = leaves.decide(visited.bounded.regions(at), bundles.disjunct[at])
            self.found = decided.found
            self.counts.update(leaves=len(at), lps=decided.lps, unsettled=decided.unsettled)
            self.gaps += decided.gaps
        return proved

    def _prove_by_slopes(self, bundles: Bundles, at: Tensor) -> tuple[Bundles, Tensor]:
        """The bundles among `at` that a longer ascent closes, and the numbers of the others.
        Projections would settle them without multipliers that a certificate can hold."""
        ascent = replace(self.longer, storable=True)
        bounded = bound(replace(self.context, ascent=ascent), bundles.at(at))
        closed = positive(bounded.result.least.squeeze(-1))
        return bounded.bundles.at(torch.nonzero(closed).flatten()), at[~closed]


class NeuronSplits(Divisible):
    """The state of a search that splits neurons."""

    def __init__(self, goal: Decide, search: BestFirst, neurons: Neurons) -> None:
        self.goal, self.search, self.neurons = goal, search, neurons
        self.budget, self.confirm = goal.context.budget, goal.confirm
        self.frontier, self.batch, self.found = search.frontier, search.batch, goal.found
        self.kept = list[Bundles]()  # for the next report
        self.undecided = list(range(goal.context.query.disjuncts))  # disjuncts not decided yet

    @classmethod
    def begin(
        cls,
        query: Query,
        bounds: LayerBounds,
        confirm: Confirm,
        budget: Budget,
        strategy: Strategy,
        lp: bool = False,
        keep: Keep = keep_nothing,
    ) -> NeuronSplits:
        """Start a search with one bundle per disjunct, and bound these; `bounds` are those of the
        hidden neurons over the whole domain.

        With `lp`, a solver gets the regions that projections leave open. `keep` receives bundles
        with slopes and multipliers that prove that their disjunct cannot be met. If the search says
        unsat and its ascents are storable, these bundles cover the domain for each disjunct.
        """
        neurons, slopes = strategy.neurons, strategy.slopes
        context, root = context_and_root(query, bounds, budget, slopes.bundles, neurons)
        effort = leaf_effort(strategy.projections, lp)
        # A certificate cannot hold bounds that are valid only at counterexamples.
        network = query.network
        clips = network.piecewise_linear and not slopes.bundles.storable
        clipping = Clipping.of(context, neurons) if clips else None
        clipper = None if clipping is None else BundleClipper(clipping)
        rounding = rounding_of(context)
        goal = Decide(context, confirm, effort, slopes.regions, clipper, rounding)
        fit = ascents_at_once(network, len(network.layers), budget.at_once)
        if not network.piecewise_linear:  # whose steps may take long, past the deadline
            fit = min(fit, max(slopes.entries // max(sum(network.value_widths), 1), 1))
        pace = Pace(neurons.batch, fit, network.device)
        search = BestFirst(goal, Frontier(budget.waiting), pace.size, keep, pace=pace)
        search.begin(root, goal.first(len(root.signs)))
        return cls(goal, search, neurons)

    @property
    def bounded(self) -> int:
        return self.search.bundles + self.bounded_out

    @property
    def closed(self) -> float:
        return self.search.closed

    def run(self, until: Callable[[], bool]) -> None:
        if self.found is None:
            self.search.run(until)
            self.found = self.goal.found

    @property
    def limit(self) -> float:
        # About half of all bundles are leaves of the tree so far; the rest were split.
        hopeless = self.open > self.neurons.hardly * self.bounded / 2
        limits = self.neurons.most, self.neurons.most_hopeless if hopeless else None
        return min((limit for limit in limits if limit is not None), default=torch.inf)

    def enough(self) -> bool:
        return self.budget.expired() or self.bounded >= self.limit

    def extend(self, budget: Budget) -> None:
        self.budget = budget
        self.goal.context = replace(self.goal.context, budget=budget)
        self.neurons = replace(self.neurons, most=None, most_hopeless=None)

    def only(self, disjuncts: Sequence[int]) -> None:
        """Keep only these of the undecided disjuncts, by their position among them: close the
        bundles of the others, which are decided elsewhere."""
        self.undecided = [self.undecided[d] for d in disjuncts]
        if waiting := self.frontier.everything():
            kept = waiting["disjunct"].new_tensor(self.undecided)
            others = torch.nonzero(~torch.isin(waiting["disjunct"], kept)).flatten()
            (share,) = read(self.frontier.take(others)["share"].sum())
            self.search.closed += share

    def copy(self, confirm: Confirm, budget: Budget, part: int) -> NeuronSplits:
        context = replace(self.goal.context, budget=budget)
        goal = replace(self.goal, context=context, confirm=confirm, found=None)
        goal.counts, goal.gaps = Counter(), []
        goal.clipper = goal.clipper and replace(goal.clipper)
        search = BestFirst(goal, Frontier(budget.waiting), self.batch)
        fresh = NeuronSplits(goal, search, self.neurons)
        fresh.part = part
        if self.search.keep is not keep_nothing:
            search.keep = fresh.kept.append
        return fresh

    def report(self) -> Any:
        goal, search = self.goal, self.search
        report = search.bundles, search.closed, goal.counts, goal.gaps, list(self.kept)
        search.bundles, search.closed, goal.counts, goal.gaps = 0, 0.0, Counter(), []
        self.kept.clear()
        return report

    def absorb(self, report: Any) -> None:
        goal, search = self.goal, self.search
        bundles, closed, counts, gaps, kept = report
        search.bundles += bundles
        search.closed += closed
        goal.counts.update(counts)
        goal.gaps += gaps
        for proved in kept:
            search.keep(proved)

    def outcome(self) -> Outcome:
        goal, lp, left = self.goal, self.goal.effort.lp, self.open
        counts, unsettled = goal.counts, goal.counts["unsettled"]
        statistics = {"bundles": self.bounded}
        statistics |= {"lps": counts["lps"]} if lp else {}
        statistics |= {"leaves": counts["leaves"]} if counts["leaves"] else {}
        if self.found is not None:
            return Outcome("sat", self.found, statistics=statistics)
        expired = self.budget.expired()
        if left and not expired:
            reason = f"{plural(left, 'bundle')} left open"
            return Outcome("unknown", reason=reason, statistics=statistics, unfinished=True)
        if left or (unsettled and expired):
            where = f"with {plural(left, 'bundle')} open" if left else "in the last regions"
            reason = f"time is up {where}"
            return Outcome("timeout", reason=reason, statistics=statistics, unfinished=True)
        if unsettled:
            reason = why_open(plural(unsettled, "region"), goal.gaps, lp)
            if smooth := goal.context.query.network.smooth_names:
                open_ones = plural(unsettled, "bundle")
                reason = f"{open_ones} left open in which only {smooth} is not linear"
            return Outcome("unknown", reason=reason, statistics=statistics)
        return Outcome("unsat", statistics=statistics)
