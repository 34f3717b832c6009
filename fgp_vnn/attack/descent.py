"""A short batched attack: gradient steps from the centre, corners and random points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.draws import Draws
from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.reading import counts
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import parts, points_at_once
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.query import Query
from fgp_vnn.regions.forms import pulled_back
from fgp_vnn.strategy import Descent, Offer

# Takes points [points, inputs] and their values [points, rows]; returns whether to stop.
Look = Callable[[Tensor, Tensor], bool]


def falsify(
    query: Query, confirm: Confirm, budget: Budget, attack: Descent
) -> Counterexample | None:
    """Search the domain for a point that meets a disjunct, in batches of disjuncts (or of one
    disjunct's starts) that fit into memory."""
    fit, domain, judge = points_at_once(query.network, budget.at_once), query.domain, confirm

    def into_domain(x: Tensor) -> Counterexample | None:
        return confirm(domain.project(x.double()))

    if query.network.inputs >= attack.single_from and query.network.dtype == torch.float64:
        query, judge = query.to(query.network.device, torch.float32), into_domain
    for some in parts(query.disjuncts, fit // attack.restarts):
        numbers = range(query.disjuncts)[some]
        part = query if len(numbers) == query.disjuncts else query.only(numbers)
        begin = descent_starts(part.domain, part.disjuncts, attack)
        for points in torch.split(begin, max(fit, 1)) if numbers else ():
            found = descend(part, judge, budget, attack, points)
            if found is not None or budget.expired():
                return found
    return None


def descend(
    query: Query,
    confirm: Confirm,
    budget: Budget,
    attack: Descent,
    begin: Tensor,
    reach: Tensor | None = None,
) -> Counterexample | None:
    """Gradient steps from `begin` [disjuncts * points, inputs], with equally many starts for each
    disjunct; `reach` [disjuncts * points, 1] scales the steps of each start."""
    found: Counterexample | None = None

    def look(x: Tensor, outputs: Tensor) -> bool:
        nonlocal found
        found = offer(query, confirm, x, outputs, attack.offer)
        return found is not None

    step_down(query, look, budget, attack, begin, reach)
    return found


def step_down(
    query: Query,
    look: Look,
    budget: Budget,
    attack: Descent,
    begin: Tensor,
    reach: Tensor | None = None,
) -> None:
    """Gradient steps like those of `descend`, until `look` returns True for the current points and
    their values."""
    target = torch.arange(query.disjuncts, device=query.disjunct.device)
    target = target.repeat_interleave(len(begin) // query.disjuncts)
    mine = query.disjunct.unsqueeze(0) == target.unsqueeze(1)  # [points, rows]
    before: list[Tensor] = []

    def slope(x: Tensor) -> Tensor:
        return pulled_back(query.network, before, pushed(before[-1], mine))

    for x in gradient_steps(query.domain, begin, attack, slope, reach):
        before[:] = query.network.preactivations(x)
        if look(x, before[-1]) or budget.expired():
            return
        if not before[-1].shape[-1]:
            return  # no row to push down: every point meets the disjuncts, but none was confirmed


def gradient_steps(
    domain: Domain,
    begin: Tensor,
    attack: Descent,
    slope: Callable[[Tensor], Tensor],
    reach: Tensor | None = None,
) -> Iterator[Tensor]:
    """Yield `begin`, then the points [points, inputs] after each projected step with momentum;
    `slope` gives the gradients at the latest points, `reach` scales the steps of each start."""
    x, velocity, length = begin, torch.zeros_like(begin), attack.first_step
    scale = domain.box().radius.unsqueeze(0)  # [1 or points, inputs]
    scale = scale if reach is None else reach * scale
    ratio = (attack.last_step / attack.first_step) ** (1 / max(attack.steps - 1, 1))
    yield x
    for _ in range(attack.steps):
        velocity = attack.momentum * velocity + unit_step(domain, slope(x))
        x = domain.project(x - length * scale * unit_step(domain, velocity))
        length *= ratio
        yield x


def descent_starts(domain: Domain, disjuncts: int, attack: Descent) -> Tensor:
    """Starts [disjuncts * restarts, inputs]: the centre, then alternately corners and random
    points."""
    center = domain.center
    box = domain.box()
    draws = Draws(attack.seed)
    noise = 2 * draws.uniform(disjuncts, attack.restarts, center.shape[-1]) - 1
    noise[:, 1::2] = noise[:, 1::2].sign()
    points = box.center + noise.to(center.device, center.dtype) * box.radius
    points[:, 0] = center
    return domain.project(points.flatten(0, 1))


def pushed(outputs: Tensor, mine: Tensor) -> Tensor:
    """Weight 1 for each row that a point has to decrease: its rows above 0, or its greatest row if
    none is above 0."""
    values = outputs.masked_fill(~mine, -torch.inf)
    above = mine & (values > 0)
    greatest = values == values.amax(-1, keepdim=True)
    return torch.where(above.any(-1, keepdim=True), above, greatest & mine).to(outputs.dtype)


def unit_step(domain: Domain, direction: Tensor) -> Tensor:
    """The direction scaled to unit length: its signs for a box, the l2 norm for other domains."""
    if isinstance(domain, Box):
        return direction.sign()
    size: Tensor = torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
    return direction / size.clamp(min=torch.finfo(direction.dtype).tiny)


class Near(NamedTuple):
    """A batch of points, with flags for those that meet or nearly meet a disjunct."""

    points: Tensor  # [points, inputs]
    worst: Tensor  # [points] greatest row of the disjunct that is closest to being met
    flags: Tensor  # [points] whether the point meets or nearly meets a disjunct

    @classmethod
    def of(cls, query: Query, x: Tensor, outputs: Tensor, how: Offer) -> Near:
        """Classify points x [points, inputs] with these outputs [points, rows]."""
        worst = query.worst(outputs).amin(-1)
        size = torch.nn.functional.pad(outputs.abs(), (0, 1), value=1.0).amax(-1)
        return cls(x, worst, worst <= how.near * size)

    def confirmed(self, confirm: Confirm, count: float, how: Offer) -> Counterexample | None:
        """The first counterexample among the flagged points, tried by ascending `worst`; `count` is
        the number of flagged points."""
        if not count:
            return None
        order = torch.where(self.flags, self.worst, torch.inf)
        chosen = order.topk(min(int(count), how.most), largest=False).indices
        return confirm(self.points[chosen])


def offer(
    query: Query, confirm: Confirm, x: Tensor, outputs: Tensor, how: Offer
) -> Counterexample | None:
    """Pass the points that meet or nearly meet a disjunct to `confirm`, by ascending worst row."""
    near = Near.of(query, x, outputs, how)
    (count,) = counts(near.flags)
    return near.confirmed(confirm, count, how)
