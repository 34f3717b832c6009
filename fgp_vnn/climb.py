"""Searches for the radius at one input: plain bounds, and bundles at growing radii.

A proof at the goal, a little below the nearest counterexample, is all that is needed, so it is
tried first. Where it does not end soon, the radius grows from what plain bounds certify, and the
bundles that cover one ball are where the search of the next larger one begins.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fgp_vnn.ascent import Ascent
from fgp_vnn.certifier import ball
from fgp_vnn.collapse import collapse
from fgp_vnn.decide import remaining, shrink
from fgp_vnn.decoupled import Decoupled, decouple
from fgp_vnn.domain import Box, L2Ball
from fgp_vnn.ends import Ends
from fgp_vnn.nearest import Approach, Target, approach, polish, starts
from fgp_vnn.query import Query
from fgp_vnn.reduction import Lift, reduce_inputs
from fgp_vnn.refine import refine_layers
from fgp_vnn.search.bundles import Bundles
from fgp_vnn.search.distance import Distances
from fgp_vnn.search.radius import Walked
from fgp_vnn.search.settled import Ball, Reporter

SLOPES = Ascent(steps=20, rate=0.3, decay=0.95)
# Shares of the time, and the part of the tree that has to be closed by then: a proof at the goal
# that has less does not look as if it would end.
PROMISING = ((0.1, 1e-3), (0.4, 0.15), (0.7, 0.75))
GROW_SHARE = 0.05  # of the time, for a radius that is tried first
FIRST_STEP, CLOSE = 1.3, 1.1  # factors from the largest radius that is proved
ROUGH, FINE = 0.1, 1e-3  # relative, how closely the radius of plain bounds is found
USUAL = 60.0  # seconds, where no limit is given
Through = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Stage:
    """The question whether a ball of some radius holds a counterexample, made small."""

    ball: Ball
    lift: Through  # to the network's own input
    scale: float  # a distance in the ball times this is at most the true distance
    neurons: Tensor  # places of the ball's neurons among those of the network
    classes: list[int]  # numbers of the disjuncts that plain bounds leave open


def reduced(ends: Ends, radius: float) -> tuple[Query, Through, float]:
    """The query about the ball of that radius, in the row space of the first layer if it can be."""
    certifier = ends.certifier
    device = certifier.network.device
    query = certifier.query(ball(ends.x, radius, ends.norm, ends.clip, device), ends.label)
    domain = query.domain
    if certifier.space is None or not isinstance(domain, L2Ball):
        return query, lambda points: points, 1.0
    small, lift = certifier.space.restrict(query, domain)
    return small, lift, 1 / certifier.space.stretch


def attack(ends: Ends) -> None:
    """The upper end, by minimum-norm attacks of two kinds."""
    query, lift, _ = reduced(ends, 1.0)
    clip = None
    if ends.clip is not None:
        low, high = (torch.full_like(query.domain.center, bound) for bound in ends.clip)
        clip = Box(low, high)
    center = torch.from_numpy(ends.x).to(query.domain.center)
    center = query.domain.center if isinstance(query.domain, L2Ball) else center
    target = Target(query.network, center, ends.norm, clip)
    begin = starts(target, seed=ends.certifier.settings.seed)
    found = [
        decouple(target, begin, ends.deadline, Decoupled()),
        approach(target, begin, ends.deadline, Approach()),
    ]
    if not ends.offer(lift(polish(target, torch.cat(found), ends.deadline)[:3])):
        _descend(ends)


def _descend(ends: Ends) -> None:
    """A longer attack in the largest ball of interest, where projections lead nowhere."""
    witness = ends.certifier.attack(
        ends.x,
        epsilon=ends.maximum,
        norm=ends.norm,
        clip=ends.clip,
        timeout=max(ends.deadline.left(), 1e-3),
    )
    if witness is not None:
        ends.offer(torch.from_numpy(witness.x).unsqueeze(0))


def plain_bounds(ends: Ends, tolerance: float) -> None:
    """The greatest radius that linear bounds prove by themselves (CROWN), by regula falsi.

    The least margin falls as the radius grows: positive at `low`, not at `high`. Nothing is done
    if that has been found before, as closely.
    """
    if ends.plain <= tolerance:
        return
    ends.plain = tolerance
    low, high = 0.0, min(ends.maximum, ends.upper)
    at_low, at_high = _least(ends, 0.0), _least(ends, high)
    if at_high > 0:
        ends.raise_to(high)
        return
    side = 0
    while at_low > 0 and high - low > tolerance * high and not ends.deadline.expired():
        share = at_low / (at_low - at_high) if math.isfinite(at_high) else 0.5
        middle = low + min(max(share, 0.05), 0.95) * (high - low)
        value = _least(ends, middle)
        if value > 0:
            ends.raise_to(middle)
            at_high = at_high / 2 if side > 0 else at_high  # the Illinois rule
            low, at_low, side = middle, value, 1
        else:
            at_low = at_low / 2 if side < 0 else at_low
            high, at_high, side = middle, value, -1


def _least(ends: Ends, radius: float) -> float:
    """The least margin that plain bounds prove over the ball."""
    ends.count("bounds")
    query, _, _ = reduced(ends, radius)
    least = float(shrink(query).least.min())
    return least if math.isfinite(least) else -math.inf


def stage(ends: Ends, radius: float) -> Stage | None:
    """The ball of that radius on its unstable neurons; None if plain bounds prove it."""
    query, lift, scale = reduced(ends, radius)
    small = shrink(query)
    classes = torch.nonzero(~query.closed(small.least)).flatten().tolist()
    if not classes:
        return None
    neurons, bounds = small.neurons, small.bounds
    query = small.query.only(classes)
    if len(bounds.lower) > 1:
        bounds = refine_layers(query, bounds, SLOPES, ends.deadline)
        collapsed, kept = collapse(query, bounds)
        neurons = neurons[remaining(query, collapsed, bounds)]
        query, bounds = collapsed, kept
    origin = query.domain.center
    if not isinstance(query.domain, L2Ball):
        origin = torch.from_numpy(ends.x).to(origin)
        return Stage(Ball(query, bounds, origin, radius), lift, scale, neurons, classes)
    before = query.domain.radius
    query, inner = reduce_inputs(query)
    if not isinstance(query.domain, L2Ball):
        raise AssertionError("a ball stays a ball")
    scale *= before / query.domain.radius
    around = Ball(query, bounds, query.domain.center, query.domain.radius)
    return Stage(around, _then(inner, lift), scale, neurons, classes)


def _then(inner: Lift, outer: Through) -> Through:
    return lambda points: outer(inner(points))


@dataclass(frozen=True, eq=False)
class Attempt:
    """A search of one ball."""

    radius: float
    stage: Stage
    search: Distances

    def go_on(self, ends: Ends, stop: Callable[[Distances], bool]) -> None:
        """Search until someone says stop."""
        before = self.search.bundles
        self.search.run(lambda: ends.done or stop(self.search))
        self.search.report()
        ends.count("bundles", self.search.bundles - before)

    def handed_on(self, later: Stage, root: Bundles) -> Bundles | None:
        """The bundles that cover this ball as a cover of a later one; None if they were not kept.

        Bundles of classes that were closed before are those of the later root.
        """
        found = self.search.cover()
        if not found:
            return None
        cover = Bundles(
            *(torch.cat(parts) for parts in zip(*(b.parts() for b in found), strict=True))
        )
        here, there = self.stage.neurons, later.neurons
        size = int(torch.cat([here, there, here.new_zeros(1)]).max()) + 1
        place = here.new_full((size,), -1)
        place[here] = torch.arange(len(here), device=here.device)
        source = place[there]  # [later neurons] where each was before, or -1
        known = source >= 0
        old = [later.classes.index(c) if c in later.classes else -1 for c in self.stage.classes]
        disjunct = torch.tensor(old, device=here.device)[cover.disjunct]
        cover = replace(cover, disjunct=disjunct).at(torch.nonzero(disjunct >= 0).flatten())
        begin = root.at(cover.disjunct)
        signs = torch.where(known, cover.signs[:, source], begin.signs)
        alpha = torch.where(known, cover.alpha[:, source], begin.alpha)
        beta = torch.where(known, cover.beta[:, source], begin.beta)
        carried = replace(begin, signs=signs, alpha=alpha, beta=beta)
        new = [i for i, c in enumerate(later.classes) if c not in self.stage.classes]
        fresh = root.at(torch.tensor(new, dtype=torch.long, device=here.device))
        pairs = zip(carried.parts(), fresh.parts(), strict=True)
        return Bundles(*(torch.cat(pair) for pair in pairs))


def search_walk(ends: Ends) -> None:
    """Narrow the ends by the walk outwards, region by region."""
    radius = ends.goal
    made = stage(ends, radius)
    if made is None:
        ends.raise_to(radius)
        return
    walked = Walked(made.ball, _reporter(ends, made, radius), ends.deadline)
    walked.run()
    ends.count("regions", walked.regions)


def search_bundles(ends: Ends) -> None:
    """Narrow the ends by the split search."""
    begin, whole = time.monotonic(), _time_left(ends)

    def hopeless(search: Distances) -> bool:
        spent = (time.monotonic() - begin) / whole
        needed = max((part for share, part in PROMISING if share <= spent), default=0.0)
        if needed:
            plain_bounds(ends, FINE)
        return search.closed < needed

    first = _attempt(ends, ends.goal)
    if first is None:
        return
    first.go_on(ends, hopeless)
    if ends.done or first.search.stuck < math.inf:
        return
    plain_bounds(ends, FINE)
    _grow(ends, first)


def _grow(ends: Ends, last: Attempt) -> None:
    """Prove one radius after the other, the bundles of each handed on to the next.

    Each gets a little time. Between the largest that is proved and the least that is not, the
    middle comes next; once they are close together, the least that is not proved goes on.
    """
    before: Attempt | None = None
    waiting = [last]  # what was not proved in its time, the least radius last
    patience, close = GROW_SHARE * _time_left(ends), CLOSE
    while not ends.done and not ends.deadline.expired():
        low = max(ends.lower, ends.goal / 64)
        least = waiting[-1].radius if waiting else math.inf
        if least < close * low:
            made: Attempt | None = waiting.pop()
            patience, close = 2 * patience, math.sqrt(close)
        else:
            made = _attempt(ends, min(ends.goal, FIRST_STEP * low, math.sqrt(low * least)), before)
        if made is None:
            continue
        made.go_on(ends, _until(time.monotonic() + patience))
        if ends.lower >= min(made.radius, ends.goal) * (1 - 1e-9):
            before, close = made, CLOSE
        elif made.search.stuck < math.inf:
            return
        else:
            waiting.append(made)


def _time_left(ends: Ends) -> float:
    left = ends.deadline.left()
    return USUAL if left == math.inf else max(left, 1e-3)


def _until(moment: float) -> Callable[[Distances], bool]:
    return lambda search: time.monotonic() > moment


def _attempt(ends: Ends, radius: float, before: Attempt | None = None) -> Attempt | None:
    """A search of the ball of that radius, set out; None if plain bounds prove it."""
    made = stage(ends, radius)
    if made is None:
        ends.raise_to(radius)
        return None
    search = Distances(made.ball, _reporter(ends, made, radius), ends.deadline)
    search.begin(None if before is None else before.handed_on(made, search.root))
    ends.count("radii")
    return Attempt(radius, made, search)


def _reporter(ends: Ends, made: Stage, radius: float) -> Reporter:
    """The ends as the search of a stage sees them."""
    target = Target(made.ball.query.network, made.ball.origin, ends.norm)

    def offer(points: Tensor) -> bool:
        return ends.offer(made.lift(polish(target, points, ends.deadline)[:3]))

    def goal() -> float:
        return min(radius, ends.goal) / made.scale

    def lower(level: float) -> None:
        ends.raise_to(min(radius, ends.goal) if level >= goal() else level * made.scale)

    return Reporter(goal, lower, offer)
