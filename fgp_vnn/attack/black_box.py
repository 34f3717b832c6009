"""Black-box attacks: gradient steps (gradients are estimated by finite differences where the
program provides none) and random changes of the best point so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from fgp_vnn.attack.descent import descent_starts, gradient_steps, offer, pushed
from fgp_vnn.base.draws import Draws
from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Domain
from fgp_vnn.query import Query
from fgp_vnn.strategy import Blind

_LARGE = 1e30  # replaces infinity, so that a difference is never NaN
_COPIES = 3  # of a point's tensors: a forward pass, a backward pass, and what both share


class BlackBox(Protocol):
    """The interface that an attack needs of a network."""

    @property
    def differentiable(self) -> bool:
        """Whether `slopes` is available."""

    @property
    def bytes_at_a_point(self) -> int:
        """Approximate size in bytes of all tensors computed for one input."""

    def values(self, x: Tensor) -> Tensor:
        """The outputs [points, outputs] at x [points, inputs]."""

    def slopes(self, x: Tensor, weigh: Callable[[Tensor], Tensor]) -> Tensor:
        """Gradients [points, inputs] at x of the weighted sum of the outputs; `weigh` maps outputs
        [points, outputs] to weights of the same shape."""


@dataclass(frozen=True, eq=False)
class Aim:
    """The program to attack, its domain, and the unsafe set to reach."""

    program: BlackBox
    unsafe: Query  # of the program's outputs: its network maps them to the rows of the unsafe set
    domain: Domain  # of the program's inputs
    confirm: Confirm
    how: Blind

    def rows(self, x: Tensor) -> Tensor:
        """Values [points, rows] of the unsafe set's rows at x [points, inputs]; NaN becomes
        infinity."""
        found = self.unsafe.network(self.program.values(x))
        return found.nan_to_num(torch.inf, torch.inf, -torch.inf)

    def offer(self, x: Tensor, rows: Tensor) -> Counterexample | None:
        """Pass the points that meet or nearly meet a disjunct to `confirm`."""
        return offer(self.unsafe, self.confirm, x, rows, self.how.descent.offer)

    def slopes(self, x: Tensor, mine: Tensor, draws: Draws) -> Tensor:
        """Gradients [points, inputs] of the rows that have to decrease (see `pushed`) among those
        selected by `mine` [points, rows]."""

        def weigh(y: Tensor) -> Tensor:
            weights: Tensor = pushed(self.unsafe.network(y), mine)
            return self.unsafe.network.output.adjoint(weights)[0]

        if self.program.differentiable:
            return self.program.slopes(x, weigh)
        return self._estimated(x, mine, draws)

    def _estimated(self, x: Tensor, mine: Tensor, draws: Draws) -> Tensor:
        """The gradients of `slopes`, up to scale, estimated by finite differences."""
        weights = pushed(self.rows(x), mine)
        count, width = self.how.probes, self.domain.box().radius * self.how.probe
        if x.shape[1] <= count:  # along each input
            aside = torch.eye(x.shape[1], device=x.device, dtype=x.dtype).expand(len(x), -1, -1)
        else:
            noise = draws.uniform(len(x), count, x.shape[1]) - 0.5
            aside = noise.to(x.device, x.dtype).sign()  # [points, probes, inputs]
        # One batch per probe, so that a batch never has more points than the memory allows.
        change = [self._grown(x, width * step, weights) for step in aside.unbind(1)]
        result: Tensor = (torch.stack(change, 1).unsqueeze(-1) * aside).sum(1)
        return result

    def _grown(self, x: Tensor, step: Tensor, weights: Tensor) -> Tensor:
        """Increase [points] of rows . weights from x - step to x + step; weights [points, rows]."""
        up, down = (self.rows(x + way).clamp(-_LARGE, _LARGE) for way in (step, -step))
        grown: Tensor = (weights * (up - down)).sum(-1)
        return grown


def falsify_program(aim: Aim, budget: Budget, seed: int) -> Counterexample | None:
    """Search the domain for a counterexample, alternating gradient descent and random changes."""
    draws = Draws(seed)
    fit = budget.at_once // (_COPIES * max(1, aim.program.bytes_at_a_point))
    points = max(1, min(aim.how.descent.restarts, fit))
    best: Tensor | None = None
    for turn in range(aim.how.rounds):
        how = replace(aim.how.descent, restarts=points, seed=seed + turn)
        x = descent_starts(aim.domain, 1, how)
        if best is not None:  # half of the starts near the best point so far
            near = best + aim.how.near * (x[: points // 2] - aim.domain.center)
            x = torch.cat([aim.domain.project(near), x[points // 2 :]])
        found, best = _descend(aim, x, best, budget, draws)
        if found is None and not budget.expired():
            found, best = _change(aim, best, points, budget, draws)
        if found is not None or budget.expired():
            return found
    return None


def _descend(
    aim: Aim, x: Tensor, best: Tensor | None, budget: Budget, draws: Draws
) -> tuple[Counterexample | None, Tensor]:
    """Gradient descent from x [points, inputs] towards the nearest disjuncts; returns the
    counterexample, if any, and the best point so far."""
    rows = aim.rows(x)
    order = aim.unsafe.worst(rows).mean(0).argsort()[: aim.how.targets]
    target = order[torch.arange(len(x), device=order.device) % len(order)]
    mine = aim.unsafe.disjunct.unsqueeze(0) == target.unsqueeze(1)  # [points, rows]
    record, found = _Record(aim, best), None

    def slope(x: Tensor) -> Tensor:
        return aim.slopes(x, mine, draws)

    for point in gradient_steps(aim.domain, x, aim.how.descent, slope):
        rows = rows if point is x else aim.rows(point)
        record.see(point, rows)
        found = aim.offer(point, rows)
        if found is not None or budget.expired():
            break
    return found, record.x


def _change(
    aim: Aim, best: Tensor, points: int, budget: Budget, draws: Draws
) -> tuple[Counterexample | None, Tensor]:
    """Change random coordinates of the best point and keep the changes that help."""
    box, record = aim.domain.box(), _Record(aim, best)
    record.see(best.unsqueeze(0), aim.rows(best.unsqueeze(0)))
    shape = points, best.shape[0]
    for turn in range(aim.how.changes):
        share = aim.how.shares[turn % len(aim.how.shares)]
        noise = 3 * draws.uniform(*shape) - 1.5
        noise = noise.clamp(-1, 1).to(best)  # a third of the values are -1 or 1
        chosen = draws.uniform(*shape) < share
        x = torch.where(chosen.to(best.device), box.center + noise * box.radius, record.x)
        x = aim.domain.project(x)
        rows = aim.rows(x)
        found = aim.offer(x, rows)
        if found is not None or budget.expired():
            return found, record.x
        record.see(x, rows)
    return None, record.x


class _Record:
    """The point nearest to the unsafe set so far."""

    def __init__(self, aim: Aim, x: Tensor | None) -> None:
        self._aim = aim
        self._level = torch.inf
        self.x = aim.domain.center if x is None else x  # [inputs]

    def see(self, x: Tensor, rows: Tensor) -> None:
        """Update the record from points x [points, inputs] with these row values."""
        levels = self._aim.unsafe.worst(rows).amin(1)
        least = int(levels.argmin())
        if float(levels[least]) < self._level:
            self._level, self.x = float(levels[least]), x[least]
