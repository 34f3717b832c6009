"""The split search for the distance of the nearest counterexample.

The goal is a *distance*: no counterexample of a bundle is nearer to the centre than its level.
Where the linear bound of a bundle is w . (x - c) + v, its counterexamples lie in the half-space
w . (x - c) + v <= 0, so the level is v / |w|. Its children, and their hidden neurons, are bounded
only over the cap that the half-space leaves of the ball. The lowest bundle is split first, so the
lowest level is a certified radius at any time. A level stays valid when a counterexample makes the
ball smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive, unit
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import parts, polyhedra_at_once
from fgp_vnn.domain.caps import Caps, both, half_space
from fgp_vnn.domain.sets import L2Ball
from fgp_vnn.regions.region_halfspaces import region_spaces
from fgp_vnn.search.ball import Reporter, SearchBall, distances
from fgp_vnn.search.best_first import Batch, BestFirst, Cover, Goal, Held, Visited
from fgp_vnn.search.bundles import (
    BoundedBundles,
    BundleContext,
    Bundles,
    bound,
    bundles_at_once,
    context_and_root,
)
from fgp_vnn.search.choice import choose
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.waiting_bounds import empty_ones, over_caps
from fgp_vnn.strategy import Strategy


class Distance(Goal):
    """The goal of finding the distance of the nearest counterexample, up to the goal of a reporter.

    For each bundle it keeps the normal of its cap, the bounds of its neurons, and `based`, the
    level of the cap over which these bounds were computed.
    """

    def __init__(
        self, ball: SearchBall, reporter: Reporter, context: BundleContext, strategy: Strategy
    ) -> None:
        self.ball, self.reporter, self.context = ball, reporter, context
        self.stuck = torch.inf  # the lowest level of a region that cannot be raised
        self.leaves = 0  # bundles that turned out to be regions
        self._projections = strategy.projections
        self._small = 0 < context.query.network.neurons <= strategy.hidden.small
        self._rise = strategy.hidden.rise * ball.radius

    def first(self, count: int) -> Held:
        """Initial data of `count` bundles: the whole ball and its bounds."""
        none = self.ball.origin.new_zeros(count)
        normal = none.unsqueeze(-1).expand(-1, len(self.ball.origin))
        bounds = _flat(self.ball.bounds, none[:1])
        wide = {name: part.expand(count, -1) for name, part in bounds.items()}
        return {"normal": normal, "based": none, **wide}

    def done(self, batch: Batch) -> Tensor:
        return batch.level >= self.reporter.goal()

    def visit(self, batch: Batch) -> Visited:
        local = self._local(batch.held, batch.level)
        caps, signs = _caps_of(local), batch.bundles.signs
        bounds = local.bounds.within(torch.split(signs, local.widths, -1))
        due = self._due(batch.bundles, caps.level.squeeze(-1), batch.held["based"])
        based = batch.held["based"]
        if bool(due.any()):
            at = torch.nonzero(due).flatten()
            bounds = over_caps(local.query.network, caps, bounds, at, local.budget)
            based = torch.where(due, caps.level.squeeze(-1), based)
        empty = empty_ones(bounds, len(signs), signs.device)
        bounded = bound(replace(local, bounds=bounds.uncrossed()), batch.bundles)
        cut = self._cut(caps, bounded)
        self._look(bounded, ~empty)
        proved = empty | positive(bounded.result.least.squeeze(-1))
        level = torch.where(proved, torch.inf, cut.level.squeeze(-1))
        held = {"normal": cut.normal, "based": based, **_flat(bounded.bounds, level)}
        return Visited(bounded, level, level >= self.reporter.goal(), held)

    def settle(self, visited: Visited, at: Tensor) -> Bundles:
        """Bound the distances of regions by projections."""
        kept, signs = visited.bounded.bundles.at(at), visited.bounded.regions(at)
        query, budget = replace(self.context.query, domain=self.ball.free()), self.context.budget
        self.leaves += len(at)
        for some in parts(len(at), polyhedra_at_once(query.network, budget.at_once)):
            spaces = region_spaces(query, signs[some], kept.disjunct[some])
            distance = distances(self.ball, spaces, self.reporter, budget, self._projections)
            level = torch.maximum(visited.level[at[some]], distance)
            rest = level[~(distance >= self.reporter.goal())]
            if len(rest):
                self.stuck = min(self.stuck, float(rest.min()))
        return kept

    def choose(self, visited: Visited, at: Tensor) -> Tensor:
        level, two = visited.level[at], at.repeat(2)
        halves = {name: part[two] for name, part in visited.held.items()}
        chosen = choose(self._local(halves, level.repeat(2)), visited.bounded, at)
        return torch.where(self._risen(level, visited.held["based"][at]), -1, chosen)

    def _local(self, held: Held, level: Tensor) -> BundleContext:
        """The context of a batch: the caps of the part of the ball still of interest, and bounds
        that hold in them."""
        whole = self.ball.within(self.reporter.goal())
        most = whole.radius if isinstance(whole, L2Ball) else self.ball.radius
        level = level.unsqueeze(-1).clamp(0, most)
        # The centre of a clipped box is not the origin.
        origin = None if isinstance(whole, L2Ball) else self.ball.origin
        caps = Caps(whole, held["normal"], level, origin)
        lower, upper = (torch.split(held[s], self.context.widths, -1) for s in ("lower", "upper"))
        coarse = self.context.coarse
        return replace(
            self.context,
            query=replace(self.context.query, domain=caps),
            bounds=replace(self.context.bounds, lower=tuple(lower), upper=tuple(upper)),
            coarse=coarse and (coarse[0], caps.to(coarse[0].device, coarse[0].dtype)),
        )

    def _due(self, bundles: Bundles, level: Tensor, based: Tensor) -> Tensor:
        """Which bundles get new bounds of their hidden neurons."""
        if not self._small:
            return self._risen(level, based)
        return ((level > 0) | (bundles.signs != 0).any(-1)).any().expand_as(level)

    def _risen(self, level: Tensor, based: Tensor) -> Tensor:
        """Which caps have become so much thinner since their bounds were computed that new bounds
        pay."""
        if self._small:
            return torch.zeros_like(level, dtype=torch.bool)
        return level - based >= self._rise

    def _cut(self, caps: Caps, bounded: BoundedBundles) -> Caps:
        """The caps, cut further by the bundles' own linear bounds."""
        weight, constant, least, nominal = (part.squeeze(1) for part in bounded.result.linear[:4])
        size_of = unit(weight.dtype)
        moved = (self.ball.origin - caps.center) * weight
        # Subtract the rounding errors of the bound, of the sum of the shift's terms, and of the sum
        # of all three.
        slack = nominal - least + size_of.share(4) * (constant.abs() + nominal.abs())
        slack = slack + size_of.share(moved.shape[-1] + 6) * moved.abs().sum(-1)
        slack = slack + size_of.underflow * (4 * moved.shape[-1] + 8 + weight.abs().sum(-1))
        value = constant + moved.sum(-1) - slack
        return both(caps, *half_space(caps.whole, weight, value))

    def _look(self, bounded: BoundedBundles, alive: Tensor) -> None:
        """Offer the minimisers of the bounds that lie in another class."""
        points = bounded.result.points.flatten(0, 1)[alive]
        values = self.context.query.network(points)
        crossed = torch.nonzero(values.amin(-1) <= 0).flatten()
        if len(crossed):
            self.reporter.offer(points[crossed])


class Distances(BestFirst):
    """One search, which can be continued, and whose bundles can be handed on to another search."""

    def __init__(
        self, ball: SearchBall, reporter: Reporter, budget: Budget, strategy: Strategy
    ) -> None:
        ascent, neurons = strategy.slopes.values, strategy.neurons
        context, self.root = context_and_root(ball.query, ball.bounds, budget, ascent, neurons)
        self._distance = Distance(ball, reporter, context, strategy)
        self._most, self._cover = strategy.radius.kept, Cover()
        batch = bundles_at_once(context, neurons.batch)
        super().__init__(self._distance, Frontier(0), batch, self._cover.keep)
        self.allow(budget.waiting)

    def allow(self, limit: int) -> None:
        """Limit bundles to `limit` bytes: half for waiting bundles, a quarter for closed ones."""
        each = sum(part[:1].nbytes for part in self.root.parts())
        self.frontier.limit = limit // 2
        self._cover.most = min(self._most, limit // 4 // max(each, 1))

    @property
    def held(self) -> int:
        """Bytes of all bundles, waiting or closed."""
        return self.frontier.bytes + self._cover.bytes

    @property
    def level(self) -> float:
        """The certified radius."""
        return min(self.frontier.lowest, self.stuck, self._distance.reporter.goal())

    @property
    def stuck(self) -> float:
        """The lowest level of a region whose distance bound cannot be raised."""
        return self._distance.stuck

    def start(self, bundles: Bundles | None = None) -> None:
        """Start with one bundle per disjunct, or with bundles that together cover the ball."""
        first = self.root if bundles is None else bundles
        self.begin(first, self._distance.first(len(first.signs)))

    def run(self, until: Callable[[], bool]) -> None:
        """Split the lowest bundles until none is left, time is up, the lowest level is stuck or
        `until` is true."""
        report, budget = self._distance.reporter.lower, self.goal.context.budget

        def enough() -> bool:
            report(self.level)
            return until() or budget.expired() or self.frontier.lowest >= self.stuck

        super().run(enough)
        report(self.level)

    def cover(self) -> list[Bundles]:
        """Bundles that together cover the ball: the closed and the waiting ones.

        Empty if they are too many to keep.
        """
        return [] if self._cover.full else [*self._cover.parts, *self.waiting()]


def _caps_of(context: BundleContext) -> Caps:
    caps = context.query.domain
    if not isinstance(caps, Caps):
        raise AssertionError("a batch is bounded over its caps")
    return caps


def _flat(bounds: LayerBounds, like: Tensor) -> Held:
    """Bounds of all layers side by side, for as many bundles as `like` has."""
    none = like.new_zeros(len(like), 0)
    lower, upper = bounds.joined(len(like)) if bounds.lower else (none, none)
    return {"lower": lower, "upper": upper}
