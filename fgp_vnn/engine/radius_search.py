"""The steps that narrow the two ends of a radius: plain bounds, the walk, splits at growing radii.

A proof at the goal, a little below the nearest counterexample, is all that is needed, so it is
tried first. If it does not end soon, the radius grows from the one that plain bounds certify; the
search of each larger ball starts from the bundles that cover the ball before it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fgp_vnn.attack.boundary import Target, polish
from fgp_vnn.base.radius import Radius
from fgp_vnn.engine.radius_ends import Ends
from fgp_vnn.engine.radius_stages import SmallBall, plain_bounds, small_ball
from fgp_vnn.engine.run import run
from fgp_vnn.search.ball import Reporter
from fgp_vnn.search.bundles import Bundles
from fgp_vnn.search.distance import Distances
from fgp_vnn.search.walk.outwards import walk_outwards

UNSETTLED = (
    "a region is neither proved to be farther away nor confirmed by a float32 input, because of "
    "rounding or because projections do not converge"
)


@dataclass(frozen=True, eq=False)
class Attempt:
    """A search of one ball."""

    radius: float
    small: SmallBall
    search: Distances

    def resume(self, ends: Ends, stop: Callable[[Distances], bool]) -> None:
        """Resume the search until the ends meet or `stop` returns True."""
        before = self.search.bundles
        self.search.run(lambda: ends.done or stop(self.search))
        ends.largest.count(bundles=self.search.bundles - before)

    def handed_on(self, later: SmallBall, root: Bundles) -> Bundles | None:
        """The bundles that cover this ball, turned into a cover of a later ball; None if they were
        not kept.

        A class that plain bounds had closed in this ball starts from the later root.
        """
        found = self.search.cover()
        if not found:
            return None
        cover = Bundles.joined(found)
        here, there = self.small.neurons, later.neurons
        size = int(torch.cat([here, there, here.new_zeros(1)]).max()) + 1
        place = here.new_full((size,), -1)
        place[here] = torch.arange(len(here), device=here.device)
        source = place[there]  # [later neurons] index of each in this ball, or -1
        known = source >= 0
        old = [later.classes.index(c) if c in later.classes else -1 for c in self.small.classes]
        disjunct = torch.tensor(old, device=here.device)[cover.disjunct]
        cover = replace(cover, disjunct=disjunct).at(torch.nonzero(disjunct >= 0).flatten())
        begin = root.at(cover.disjunct)

        def carry(old: Tensor, new: Tensor) -> Tensor:
            # The padding is an extra column for the index -1.
            return torch.where(known, torch.nn.functional.pad(old, (0, 1))[:, source], new)

        carried = replace(
            begin,
            signs=carry(cover.signs, begin.signs),
            alpha=carry(cover.alpha, begin.alpha),
            beta=carry(cover.beta, begin.beta),
        )
        new = [i for i, c in enumerate(later.classes) if c not in self.small.classes]
        fresh = root.at(torch.tensor(new, dtype=torch.long, device=here.device))
        return Bundles.joined([carried, fresh])


def bound_roughly(ends: Ends) -> Radius | None:
    """Raise the lower end by plain bounds; returns the answer if that is enough or time is up."""
    plain_bounds(ends, ends.numbers.rough)
    return ends.answer("bounds") if ends.done or ends.budget.expired() else None


def bound_finely(ends: Ends) -> Radius:
    """Raise the lower end by plain bounds, as far as they go."""
    plain_bounds(ends, ends.numbers.fine)
    ends.reason = "linear bounds alone do not close the gap"
    return ends.answer("bounds")


def walk_nearest(ends: Ends) -> Radius:
    """Narrow the ends by the walk, the nearest region first."""
    radius = ends.goal
    made = small_ball(ends, radius)
    if made is None:
        ends.raise_to(radius)
    else:
        reporter, how = _reporter(ends, made, radius), ends.classifier.strategy
        walked = walk_outwards(made.ball, reporter, ends.budget, how.walk, how.projections)
        ends.largest.count(regions=walked.regions)
        ends.reason = "there is no memory for more regions" if walked.full else UNSETTLED
    return ends.answer("walk")


def halve_balls(ends: Ends) -> Radius | None:
    """Narrow the ends in a smooth network, where bundles have no exact leaves, by bisection over
    the radius, between the largest proved ball and the smallest ball that stayed open.

    A proof for a ball holds for all smaller ones. Each ball gets a share of the time left; if a
    ball stayed open for lack of time, the bisection starts again with twice the share.
    """
    if ends.classifier.network.piecewise_linear:
        return None
    plain_bounds(ends, ends.numbers.fine)
    open_ = math.inf  # the smallest radius that stayed open
    share, late = ends.numbers.ball_share, False
    while not ends.done and not ends.budget.expired():
        high = min(ends.goal, open_)
        if high <= (1 + ends.numbers.fine) * ends.lower:
            if not late or share >= 1:
                break
            open_, share, late = math.inf, min(2 * share, 1.0), False
            continue
        radius = high if open_ == math.inf else (ends.lower + high) / 2
        patience = ends.budget.share(share)
        verdict = run(ends.classifier.problem(ends.center, radius, patience), "certify")
        ends.largest.count(radii=1)
        found = verdict.counterexample
        if verdict.status == "unsat":
            ends.raise_to(radius)
        elif found is None or not ends.offer(torch.from_numpy(found.x).unsqueeze(0)):
            open_, late = radius, late or verdict.status == "timeout"
            why = verdict.reason or "its counterexample is not one in real arithmetic"
            ends.reason = f"the ball of radius {radius:.6g} stays open: {why}"
    return ends.answer("split")


def split_nearest(ends: Ends) -> Radius | None:
    """Narrow the ends by neuron splits in the ball at the goal, the nearest bundle first, as long
    as enough of the tree is closed in time."""
    begin, whole = time.monotonic(), _time_left(ends)

    def hopeless(search: Distances) -> bool:
        spent = (time.monotonic() - begin) / whole
        parts = (part for share, part in ends.numbers.promising if share <= spent)
        needed = max(parts, default=0.0)
        if needed:
            plain_bounds(ends, ends.numbers.fine)
        return search.closed < needed

    first = _attempt(ends, ends.goal)
    if first is None:
        return ends.answer("split")
    first.resume(ends, hopeless)
    if ends.done or first.search.stuck < math.inf:
        ends.reason = UNSETTLED
        return ends.answer("split")
    plain_bounds(ends, ends.numbers.fine)
    ends.waiting = [first]
    return None


def split_growing(ends: Ends) -> Radius:
    """Prove one radius after another, and start each search from the bundles of the last proof.

    Each radius gets a little time. The next radius lies midway (geometric mean) between the largest
    proved and the smallest unproved one; once these are close, the search at the latter resumes.
    """
    how, waiting = ends.numbers, ends.waiting
    before: Attempt | None = None
    patience, close = how.grow_share * _time_left(ends), how.close
    while not ends.done and not ends.budget.expired():
        low = max(ends.lower, how.least * ends.goal)
        least = waiting[-1].radius if waiting else math.inf
        if least < close * low:
            made: Attempt | None = waiting.pop()
            patience, close = 2 * patience, math.sqrt(close)
        else:
            made = _attempt(ends, min(ends.goal, how.step * low, math.sqrt(low * least)), before)
        if made is None:
            continue
        others = [*waiting, *(() if before is None or before is made else (before,))]
        held = sum(attempt.search.held for attempt in others)
        made.search.allow(max(0, ends.budget.waiting - held))
        made.resume(ends, _until(time.monotonic() + patience))
        if ends.lower >= min(made.radius, ends.goal) * (1 - 1e-9):
            before, close = made, how.close
        elif made.search.stuck < math.inf:
            ends.reason = UNSETTLED
            break
        else:
            waiting.append(made)
    return ends.answer("split")


def _time_left(ends: Ends) -> float:
    left = ends.budget.left()
    return ends.numbers.usual if left == math.inf else max(left, 1e-3)


def _until(moment: float) -> Callable[[Distances], bool]:
    return lambda search: time.monotonic() > moment


def _attempt(ends: Ends, radius: float, before: Attempt | None = None) -> Attempt | None:
    """A new search of the ball of that radius; None if plain bounds prove it."""
    made = small_ball(ends, radius)
    if made is None:
        ends.raise_to(radius)
        return None
    reporter, strategy = _reporter(ends, made, radius), ends.classifier.strategy
    search = Distances(made.ball, reporter, ends.budget, strategy)
    search.start(None if before is None else before.handed_on(made, search.root))
    ends.largest.count(radii=1, bundles=search.bundles)
    return Attempt(radius, made, search)


def _reporter(ends: Ends, made: SmallBall, radius: float) -> Reporter:
    """The ends in the coordinates and distances of a small ball's search."""
    ball, attack = made.ball, ends.classifier.strategy.attack
    target = Target(ball.query.network, ball.origin, ends.center.norm, attack.projected.active)
    how = attack.polish

    def offer(points: Tensor) -> bool:
        nearest = polish(target, points, ends.budget, how)[: how.offered]
        return ends.offer(made.lift(nearest))

    def goal() -> float:
        return min(radius, ends.goal) / made.scale

    def lower(level: float) -> None:
        ends.raise_to(min(radius, ends.goal) if level >= goal() else level * made.scale)

    return Reporter(goal, lower, offer)


# The last steps of a radius: bisection over balls in a smooth network, else neuron splits.
NEAREST = (halve_balls, split_nearest, split_growing)
