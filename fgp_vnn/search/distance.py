"""The split search with the radius as the unknown.

Every bundle has a level: no counterexample of it is nearer to the centre than that. Where the
linear bound of a bundle is w . (x - c) + v, its counterexamples lie in the half-space
w . (x - c) + v <= 0, so the level is v / |w|, and its halves are bounded over the cap that the
half-space leaves of the ball only, hidden neurons included. The lowest bundle is split first: the
lowest level is a certified radius at any time. A level stays valid when a counterexample makes the
ball smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive, unit
from fgp_vnn.bounds.backward import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import ascents_at_once, parts, polyhedra_at_once
from fgp_vnn.domain.caps import Caps, both, half_space
from fgp_vnn.domain.sets import L2Ball
from fgp_vnn.network.model import Network
from fgp_vnn.regions.polyhedra import region_spaces
from fgp_vnn.search.ball import Ball, Reporter, distances
from fgp_vnn.search.bundles import (
    Bounded,
    Bundles,
    Setting,
    Splitting,
    bound,
    bounds_at,
    choose,
    halves,
    set_out,
)
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.rebound import empty_ones, over_caps, uncrossed
from fgp_vnn.strategy import Projections

SMALL = 160  # neurons up to which hidden bounds are made anew for each bundle
RISE = 0.05  # of the radius: in a larger network, where the level has risen so much since
MANY = 20_000  # closed bundles that are kept, if their share of the memory allows it
BATCH = 256  # bundles that are bounded at once
SIDES = ("lower", "upper")  # names of the bounds in the queue


@dataclass(frozen=True, eq=False)
class _Held:
    """What the search keeps of each bundle besides the bundle itself."""

    bounds: LayerBounds
    based: Tensor  # [bundles] the level of the cap that the bounds were made for
    share: Tensor  # [bundles] of the whole tree


@dataclass(eq=False)
class Distances:
    """The state of one search; `stuck` is the lowest level of a region that nothing raises."""

    ball: Ball
    reporter: Reporter
    budget: Budget
    splitting: Splitting = field(default_factory=Splitting)
    bundles: int = 0
    closed: float = 0.0  # the part of the tree that is done with, from 0 to 1
    stuck: float = torch.inf
    leaves: int = 0  # bundles that turned out to be regions
    finished: list[Bundles] = field(default_factory=list)  # those that are done with

    def __post_init__(self) -> None:
        query = self.ball.query
        self._setting, self.root = set_out(query, self.ball.bounds, self.budget, self.splitting)
        self._network32 = query.network.to(query.network.device, torch.float32)
        self._frontier = Frontier(0)
        self.allow(self.budget.waiting)
        depth = len(query.network.layers)
        self._batch = min(BATCH, ascents_at_once(query.network, depth, self.budget.at_once))
        self._kept = 0
        self._small = 0 < query.network.neurons <= SMALL
        self._cuts = isinstance(query.domain, L2Ball)

    def allow(self, limit: int) -> None:
        """Keep bundles in so many bytes: half for those that wait, a quarter for closed ones."""
        each = sum(part[:1].nbytes for part in self.root.parts())
        self._frontier.limit, self._most = limit // 2, min(MANY, limit // 4 // max(each, 1))

    @property
    def held(self) -> int:
        """Bytes of all bundles that are kept."""
        done = sum(part.nbytes for bundles in self.finished for part in bundles.parts())
        return self._frontier.bytes + done

    @property
    def level(self) -> float:
        """The certified radius."""
        return min(self._frontier.lowest, self.stuck, self.reporter.goal())

    def __len__(self) -> int:
        return len(self._frontier)

    def begin(self, bundles: Bundles | None = None) -> None:
        """Start with one bundle per disjunct, or with bundles that cover the ball together."""
        first = self.root if bundles is None else bundles
        count = len(first.signs)
        bounds = _expand(self.ball.bounds, count)
        caps = self._caps(self.ball.origin.new_zeros(count, len(self.ball.origin)), None)
        share = first.alpha.new_full((count,), 1 / max(count, 1))
        based = torch.zeros_like(share)
        for part in torch.split(torch.arange(count, device=share.device), self._batch):
            held = _Held(bounds_at(bounds, part), based[part], share[part])
            self._process(first.at(part), caps.at(part), held)

    def run(self, until: Callable[[], bool]) -> None:
        """Split the lowest bundles until none is left or someone says stop."""
        while len(self._frontier) and not until() and not self.budget.expired():
            if self._frontier.lowest >= self.stuck:
                break
            self._step()
            self.report()

    def report(self) -> None:
        self.reporter.lower(self.level)

    def _step(self) -> None:
        taken = self._frontier.pop(max(1, self._batch // 2))
        goal = self.reporter.goal()
        if bool((taken["key"] >= goal).any()):
            done = taken["key"] >= goal
            self._close(self._bundles(taken), done, taken["share"])
            taken = {name: part[~done] for name, part in taken.items()}
        if not len(taken["key"]):
            return
        again = taken["neuron"] < 0
        whole = {name: part[again] for name, part in taken.items()}
        rest = {name: part[~again] for name, part in taken.items()}
        if len(whole["key"]):
            self._resume(self._bundles(whole), whole)
        if len(rest["key"]):
            children = halves(self._bundles(rest), rest["neuron"])
            rest["share"] = rest["share"] / 2
            two = {name: torch.cat([part, part]) for name, part in rest.items()}
            self._resume(children, two)

    def _resume(self, bundles: Bundles, taken: dict[str, Tensor]) -> None:
        """Bound bundles from where they, or those that they are halves of, were left."""
        lower, upper = (torch.split(taken[side], self._setting.widths, -1) for side in SIDES)
        held = _Held(LayerBounds(tuple(lower), tuple(upper)), taken["based"], taken["share"])
        self._process(bundles, self._caps(taken["normal"], taken["key"].unsqueeze(-1)), held)

    def _process(self, bundles: Bundles, caps: Caps, held: _Held) -> None:
        """Bound a batch; close, settle or keep each of its bundles."""
        self.bundles += len(bundles.signs)
        signs = torch.split(bundles.signs, self._setting.widths, -1)
        held = self._rebound(bundles, caps, replace(held, bounds=held.bounds.within(signs)))
        empty = empty_ones(held.bounds, len(bundles.signs), bundles.signs.device)
        bounds = uncrossed(held.bounds)
        bounded = bound(self._local(caps, bounds), bundles)
        cut = self._cut(caps, bounded)
        self._look(bounded, ~empty)
        level = torch.where(empty, torch.inf, cut.level.squeeze(-1))
        level = torch.where(positive(bounded.result.least.squeeze(-1)), torch.inf, level)
        open_ = level < self.reporter.goal()
        full = open_ & ~bounded.crossing.any(-1)
        if bool(full.any()):
            self._settle(bounded, level, torch.nonzero(full).flatten())
            open_ = open_ & ~full
        self._close(bounded.bundles, ~open_, held.share)
        at = torch.nonzero(open_).flatten()
        if len(at):
            self._keep(bounded, cut, at, held)

    def _rebound(self, bundles: Bundles, caps: Caps, held: _Held) -> _Held:
        """The bounds of hidden neurons made anew, where that is worth its time."""
        level = caps.level.squeeze(-1)
        if self._small:
            due = (level > 0) | (bundles.signs != 0).any(-1)
            due = due.any().expand_as(due)
        else:
            due = self._risen(level, held.based)
        at = torch.nonzero(due).flatten()
        if not len(at):
            return held
        bounds = over_caps(self._network, caps, held.bounds, at, self.budget)
        return replace(held, bounds=bounds, based=torch.where(due, level, held.based))

    def _risen(self, level: Tensor, based: Tensor) -> Tensor:
        """Which caps are so much thinner than those of the bounds that new ones would pay."""
        if not self._cuts or self._small:
            return torch.zeros_like(level, dtype=torch.bool)
        return level - based >= RISE * self.ball.radius

    @property
    def _network(self) -> Network:
        return self._setting.query.network

    def _local(self, caps: Caps, bounds: LayerBounds) -> Setting:
        """The setting of a batch: its own caps and bounds."""
        query = replace(self._setting.query, domain=caps)
        coarse = self._network32, caps.to(self._network.device, torch.float32)
        return replace(self._setting, query=query, bounds=bounds, coarse=coarse)

    def _cut(self, caps: Caps, bounded: Bounded) -> Caps:
        """The caps after the bundles' own linear bounds have cut them."""
        linear = bounded.result.linear
        if linear is None:
            raise AssertionError("a proved bound has its linear function")
        weight, size_of = linear.weight.squeeze(-2), unit(linear.weight.dtype)
        constant, nominal, least = (
            part.squeeze(-1) for part in (linear.constant, linear.nominal, linear.least)
        )
        moved = (self.ball.origin - caps.center) * weight
        # Less what rounding may have added: to the bound, to the sum of the terms of the shift, and
        # to that of all three.
        slack = nominal - least + size_of.share(4) * (constant.abs() + nominal.abs())
        slack = slack + size_of.share(moved.shape[-1] + 6) * moved.abs().sum(-1)
        slack = slack + size_of.lost * (4 * moved.shape[-1] + 8 + weight.abs().sum(-1))
        value = constant + moved.sum(-1) - slack
        return both(caps, *half_space(caps.whole, weight, value))

    def _caps(self, normal: Tensor, level: Tensor | None) -> Caps:
        """Caps of the ball as far as it is still of interest."""
        whole = self.ball.within(self.reporter.goal())
        if level is None:
            level = normal.new_zeros(len(normal), 1)
        most = whole.radius if isinstance(whole, L2Ball) else self.ball.radius
        return Caps(whole, normal, level.clamp(max=most))

    def _look(self, bounded: Bounded, alive: Tensor) -> None:
        """Offer the points at which bounds are least, where they have another class."""
        points = bounded.result.points.flatten(0, 1)[alive]
        values = self._network(points)
        crossed = torch.nonzero(values.amin(-1) <= 0).flatten()
        if len(crossed):
            self.reporter.offer(points[crossed])

    def _settle(self, bounded: Bounded, level: Tensor, at: Tensor) -> None:
        """Bundles with nothing open are regions: their distances are found by projections."""
        signs = bounded.bundles.signs[at]
        lowers = (lo.expand(len(level), -1)[at] for lo in bounded.bounds.lower)
        lower = torch.cat([bounded.bundles.alpha[at, :0], *lowers], -1)
        stable = torch.where(lower >= 0, 1, -1).to(torch.int8)
        signs, disjunct = torch.where(signs == 0, stable, signs), bounded.bundles.disjunct[at]
        query = replace(self._setting.query, domain=self.ball.free())
        self.leaves += len(at)
        for some in parts(len(at), polyhedra_at_once(query.network, self.budget.at_once)):
            spaces = region_spaces(query, signs[some], disjunct[some])
            distance = distances(self.ball, spaces, self.reporter, self.budget, Projections())
            rest = torch.maximum(level[at[some]], distance)[distance < self.reporter.goal()]
            if len(rest):
                self.stuck = min(self.stuck, float(rest.min()))

    def _close(self, bundles: Bundles, which: Tensor, share: Tensor) -> None:
        self.closed += float(share[which].sum())
        if bool(which.any()) and self._kept < self._most:
            self.finished.append(bundles.at(torch.nonzero(which).flatten()))
            self._kept += len(self.finished[-1].signs)

    def _keep(self, bounded: Bounded, cut: Caps, at: Tensor, held: _Held) -> None:
        """Put the open bundles back, each with the neuron to be split next, or with none: those
        that are to be bounded again first."""
        kept = bounded.bundles.at(at)
        bounds = bounds_at(_expand(bounded.bounds, len(held.share)), at)
        caps = cut.at(at)
        two = torch.cat([torch.arange(len(at), device=at.device)] * 2)
        chosen = choose(self._local(caps.at(two), bounds_at(bounds, two)), bounded, at)
        level, based = caps.level.squeeze(-1), held.based[at]
        self._frontier.push(
            level,
            disjunct=kept.disjunct,
            signs=kept.signs,
            alpha=kept.alpha.float(),
            beta=kept.beta.float(),
            weights=kept.weights.float(),
            neuron=torch.where(self._risen(level, based), -1, chosen),
            share=held.share[at],
            based=based,
            normal=caps.normal,
            lower=torch.cat(bounds.lower, -1),
            upper=torch.cat(bounds.upper, -1),
        )

    def _bundles(self, taken: dict[str, Tensor]) -> Bundles:
        floats = (taken[name].to(self._network.dtype) for name in ("alpha", "beta", "weights"))
        return Bundles(taken["disjunct"], taken["signs"], *floats)

    def cover(self) -> list[Bundles]:
        """Bundles that cover the ball together: those that are closed, and those that wait.

        None at all if they are too many to keep.
        """
        if self._kept >= self._most:
            return []
        waiting = [self._bundles(self._frontier.everything())] if len(self._frontier) else []
        return [*self.finished, *waiting]


def _expand(bounds: LayerBounds, count: int) -> LayerBounds:
    lower = tuple(bound.expand(count, -1) for bound in bounds.lower)
    return LayerBounds(lower, tuple(bound.expand(count, -1) for bound in bounds.upper))
