"""Gradient ascent steps on slopes and multipliers: Adam, and Polyak's, which aim at a bound of 0.

The bound of a bundle is of use once it is above 0. If the bound is d below 0 and its gradient is g,
a step of length d / |g| would reach 0 if the bound were linear (Polyak). Such a step is long while
the bound is far from 0 and short near it, whatever the size of slopes and multipliers; Adam's step
length is fixed in advance.

Bundles of mnist_fc 256x4 that are closed after 0, 2, 4 and 12 steps of a batch of 256: 7, 9, 9 and
33 % by Adam, 7, 99, 99 and 100 % by Polyak; of oval21: 44, 53, 56 and 58 %, and 44, 56, 58 and
60 %.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from fgp_vnn.bounds.multipliers import State
from fgp_vnn.strategy import Ascent


class Rise(NamedTuple):
    """Gradient of a bound."""

    alpha: Tensor  # [batch, rows, values] by each slope
    beta: Tensor | None  # [batch, rows, neurons] by each multiplier; None if these stay fixed
    sizes: Tensor | None  # [batch, rows, neurons] scale of each multiplier; slopes have scale 1


class Steps(Protocol):
    """A rule for the steps of an ascent on slopes and multipliers."""

    def next(self, state: State, rise: Rise, least: Tensor) -> State:
        """The state after one step; `least` [batch, rows] are the bounds before it."""

    def keep(self, index: Tensor) -> None:
        """Forget all batch entries but `index`."""


class Adam:
    """Adam: steps of decaying length along the running mean of the gradients."""

    def __init__(self, ascent: Ascent, state: State) -> None:
        self._ascent, self._factor = ascent, 1.0
        self._alpha, self._beta = (Moments(s, ascent.means) for s in (state.alpha, state.beta))

    def next(self, state: State, rise: Rise, least: Tensor) -> State:
        ascent, factor = self._ascent, self._factor
        self._factor *= ascent.decay
        alpha = state.alpha + ascent.rate * factor * self._alpha.direction(rise.alpha)
        beta = state.beta
        if rise.beta is not None and rise.sizes is not None:
            moved = rise.sizes * self._beta.direction(rise.beta)
            beta = beta + ascent.beta_rate * factor * moved
        return State(alpha.clamp(0, 1), beta.clamp(min=0), state.weights)

    def keep(self, index: Tensor) -> None:
        self._alpha.keep(index)
        self._beta.keep(index)


class Moments:
    """Adam's running means of the gradients, without the overhead of torch's optimiser."""

    def __init__(self, like: Tensor, means: tuple[float, float]) -> None:
        self._first, self._second = torch.zeros_like(like), torch.zeros_like(like)
        self._means, self._step = means, 0

    def direction(self, gradient: Tensor) -> Tensor:
        """The direction of the next step, given the gradient."""
        self._step += 1
        a, b = self._means
        self._first.mul_(a).add_(gradient, alpha=1 - a)
        self._second.mul_(b).addcmul_(gradient, gradient, value=1 - b)
        scale = (self._second / (1 - b**self._step)).sqrt_().add_(1e-12)
        return (self._first / (1 - a**self._step)) / scale

    def keep(self, index: Tensor) -> None:
        """Forget all batch entries but `index`."""
        self._first, self._second = self._first[index], self._second[index]


class Reaching:
    """Polyak's steps with momentum. If the bound were linear, each step would reach the target:
    above 0 by a fraction `aim` of the initial gap."""

    def __init__(self, ascent: Ascent, state: State) -> None:
        self._aim, self._momentum = ascent.aim or 0.0, ascent.momentum
        self._target: Tensor | None = None  # [batch, rows]
        self._alpha, self._beta = torch.zeros_like(state.alpha), torch.zeros_like(state.beta)

    def next(self, state: State, rise: Rise, least: Tensor) -> State:
        if self._target is None:
            self._target = self._aim * (-least).clamp(min=0)
        # A slope or multiplier at the end of its range can move only inwards.
        stuck = ((state.alpha <= 0) & (rise.alpha < 0)) | ((state.alpha >= 1) & (rise.alpha > 0))
        alpha, beta = torch.where(stuck, 0, rise.alpha), None
        squares = alpha.square().sum(-1, keepdim=True)
        if rise.beta is not None and rise.sizes is not None:
            scaled = rise.sizes * rise.beta
            beta = torch.where((state.beta <= 0) & (scaled < 0), 0, scaled)
            squares = squares + beta.square().sum(-1, keepdim=True)
        lacking = (self._target - least).clamp(min=0).unsqueeze(-1)
        length = lacking / squares
        length = torch.where(length.isfinite(), length, 0.0)  # the gradient is 0 or not a number
        self._alpha = self._momentum * self._alpha + length * alpha
        moved = state.beta
        if beta is not None and rise.sizes is not None:
            self._beta = self._momentum * self._beta + length * rise.sizes * beta
            moved = (moved + self._beta).clamp(min=0)
        return State((state.alpha + self._alpha).clamp(0, 1), moved, state.weights)

    def keep(self, index: Tensor) -> None:
        self._alpha, self._beta = self._alpha[index], self._beta[index]
        self._target = None if self._target is None else self._target[index]


class Best:
    """The best bounds so far and the states that give them; drops finished batch entries."""

    def __init__(self, least: Tensor, state: State, *, moves: bool, most: float) -> None:
        self.least, self.state = least, state  # least: [batch, rows]
        self._moves = moves  # whether multipliers move; only then the best ones are selected
        self._most = most  # finished entries are dropped if at most this fraction is unfinished
        self._left: Tensor | None = None  # [n] indices of the active entries; None: all

    def see(self, least: Tensor, state: State) -> None:
        """Update each active row [n, rows] if its new bound is better."""
        if self._left is None:
            self.least, self.state = self._better(self.least, self.state, least, state)
        else:
            at = self._left
            found = self._better(self.least[at], self.state.at(at), least, state)
            self.least = self.least.index_copy(0, at, found[0])
            self.state = self.state.with_these(at, found[1])

    def _better(
        self, old: Tensor, old_state: State, new: Tensor, state: State
    ) -> tuple[Tensor, State]:
        higher = new > old
        wide = higher.unsqueeze(-1)
        alpha = torch.where(wide, state.alpha, old_state.alpha)
        beta = torch.where(wide, state.beta, old_state.beta) if self._moves else state.beta
        weights = state.weights
        if weights is not None and old_state.weights is not None:
            weights = torch.where(higher, weights, old_state.weights)
        return torch.where(higher, new, old), State(alpha, beta, weights)

    def left(self) -> Tensor | None:
        """Indices among the active entries [n] of those not yet above 0, which alone stay active;
        None (no change) if they are too many to drop the others."""
        now = self.least if self._left is None else self.least[self._left]
        left = torch.nonzero(~(now > 0).all(-1)).flatten()
        if len(left) > self._most * len(now):
            return None
        self._left = left if self._left is None else self._left[left]
        return left
