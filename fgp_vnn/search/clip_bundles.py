"""Tighter bounds ("clipping") of hidden neurons in open bundles: of the costliest sides (lower or
upper bounds of neurons), or of many more where a trial favours that.

A bound that is x below 0 and is expected to rise by r gains min(x, r). A search that has clipped
many bundles clips some of them twice, by `Neurons.costly` and then, on top, by `Neurons.thorough`.
It continues with the second if that has gained clearly more. Each of several processes runs its
own trial.

Gains of the second relative to the first, and seconds of searches with the second and with the
first alone. All these numbers were measured with both sides of a neuron at once: for half of the
cost and at most 128 neurons, and for nine tenths of it and at most 256.

    9931 of oval21    1.5    79  161    (open after 565 with eight neurons)
    8517              1.6   1.4  2.2
    4510              1.4   2.1  2.3
    876               1.4   5.6  4.9
    6767              1.2   3.0  2.3
    1204, relusplitter 1.2  121   95
    5988              1.1    45   27

With a trial on the first bundles, 9931 takes 71 s and five of the shorter ones 44 s together; with
one after 512 bundles 75 and 35; without one 161 and 35: short searches are better without a trial.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fgp_vnn.base.reading import read
from fgp_vnn.search.best_first import Visited
from fgp_vnn.search.bundles import BundleContext
from fgp_vnn.search.clipped_neurons import Clipping, clip_neurons, near, promised
from fgp_vnn.search.waiting_bounds import waiting_bounds, with_waiting


@dataclass(eq=False)
class BundleClipper:
    """Clips the bundles of one search, and records the gains."""

    clipping: Clipping  # of the costliest sides
    gains: tuple[float, float] = (0.0, 0.0)  # by the costliest sides, and by many more
    seen: int = 0  # bundles clipped so far
    tried: int = 0  # of these, the number clipped twice

    def clip(self, context: BundleContext, visited: Visited) -> Visited:
        """Copy of `visited` with tighter bounds for the children of open bundles; bundles that turn
        out to hold no counterexample are closed."""
        bounded, _, closed, _ = visited
        sides = (torch.cat(side, -1) for side in (bounded.bounds.lower, bounded.bounds.upper))
        now = visited._replace(held=waiting_bounds(*sides))
        at = torch.arange(len(closed), device=closed.device)
        if context.ascent.looks:
            at = at[~closed & near(context, bounded, self.clipping.near)]
        if not len(at):
            return now
        self.seen += len(at)
        if not context.ascent.looks or not self._tries:
            return _clipped(context, self._chosen, now, at)
        gains = list[Tensor]()
        for clipping in (self.clipping, self._thorough):
            now = _clipped(context, clipping, now, at)
            gains.append(_gained(context, visited, now, at).sum())
        usual, more = read(*gains)
        # The later bundles of a search say more about it than the first ones.
        self.gains = self.gains[0] / 2 + usual, self.gains[1] / 2 + more
        self.tried += len(at)
        return now

    @property
    def _tries(self) -> bool:
        """Whether bundles are now clipped twice."""
        after, count = self.clipping.numbers.trial
        return self.seen > after and self.tried < count

    @property
    def _chosen(self) -> Clipping:
        """The clipping of bundles that are clipped once."""
        usual, more = self.gains
        return self._thorough if more > self.clipping.numbers.worth * usual else self.clipping

    @property
    def _thorough(self) -> Clipping:
        """The clipping of many more sides."""
        numbers = self.clipping.numbers
        part, most = numbers.thorough
        return replace(self.clipping, numbers=replace(numbers, costly=part, clipped=most))


def _clipped(context: BundleContext, clipping: Clipping, now: Visited, at: Tensor) -> Visited:
    """Copy of `now` with some more sides of neurons recomputed in the bundles `at`."""
    held = now.held
    bounded = replace(now.bounded, bounds=with_waiting(context, held).bounds)
    low, high = clip_neurons(context, clipping, bounded, at)
    closed = now.closed.index_copy(0, at, now.closed[at] | (low > high).any(-1))
    sides = zip((held["lower"], held["upper"]), (low, torch.maximum(low, high)), strict=True)
    lower, upper = (whole.to(some).index_copy(0, at, some) for whole, some in sides)
    return now._replace(closed=closed, held=waiting_bounds(lower, upper))


def _gained(context: BundleContext, before: Visited, after: Visited, at: Tensor) -> Tensor:
    """Improvement of each bundle's lower bound [at], capped at the amount it needs to reach 0."""
    bounds = with_waiting(context, after.held).bounds
    lacks = -before.level[at].clamp(max=0)
    rise = torch.minimum(promised(before.bounded, bounds, at), lacks)
    gained = torch.where(after.closed[at], lacks, rise)
    return torch.where(gained.isfinite(), gained, 0.0)
