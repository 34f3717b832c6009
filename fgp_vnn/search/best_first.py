"""Best-first search over bundles: one loop for every goal.

Each round takes the bundles with the lowest levels, splits each at one neuron, and bounds all
children together. A child is then closed, settled if it has no open neuron, or put back into the
frontier. The goal defines what a level is and when a bundle is closed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.reading import places, read
from fgp_vnn.base.story import Stage, Teller, tell
from fgp_vnn.base.words import plural
from fgp_vnn.search.bundles import PARTS, BoundedBundles, BundleContext, Bundles, Cut, children, cut
from fgp_vnn.search.choice import choose
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.pace import Pace

_OWN = ("key", *PARTS, "neuron", "share", *Cut._fields)
Held = dict[str, Tensor]  # [bundles, ...] each
Keep = Callable[[Bundles], None]


def keep_nothing(*proved: object) -> None:
    """Keep no record of what was proved."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Bundles that are bounded together."""

    bundles: Bundles
    level: Tensor  # [bundles] of the bundle itself, or of its parent
    share: Tensor  # [bundles] its part of the whole tree of splits, from 0 to 1
    held: Held  # data that the goal keeps for each bundle between two visits

    def at(self, index: Tensor) -> Batch:
        """Some of the bundles."""
        held = {name: part[index] for name, part in self.held.items()}
        return Batch(self.bundles.at(index), self.level[index], self.share[index], held)


class Visited(NamedTuple):
    """A batch of bundles with its bounds, levels and closed bundles."""

    bounded: BoundedBundles
    level: Tensor  # [bundles]
    closed: Tensor  # [bundles] proved by bounds to hold nothing of interest
    held: Held  # data to keep for the bundles that stay open


class Goal(ABC):
    """The purpose of a search over bundles: what a level is, and when a bundle is closed."""

    context: BundleContext
    over: bool = False  # the answer is known, whatever is still open

    @abstractmethod
    def visit(self, batch: Batch) -> Visited:
        """Bound a batch of bundles, and tell which ones their bounds close."""

    @abstractmethod
    def settle(self, visited: Visited, at: Tensor) -> Bundles:
        """Decide the bundles `at`, which are regions (no neuron is open). Returns the bundles to
        record as closed."""

    def take(self, frontier: Frontier, count: int) -> Held:
        """Take out about `count` bundles to split next; none if splitting would not help."""
        return frontier.pop(count)

    def done(self, batch: Batch) -> Tensor | None:
        """Which bundles [bundles] were closed while they waited; None if none ever is."""
        return None

    def choose(self, visited: Visited, at: Tensor) -> Tensor:
        """The neuron at which to split each of the bundles `at`. If `done` does not return None,
        -1 is allowed: bound the bundle again instead of splitting it."""
        return choose(self.context, visited.bounded, at)


@dataclass(eq=False)
class Cover:
    """The closed bundles of a search, as long as there are fewer than `most`.

    Once one is left out, the others no longer cover the domain: all are dropped and none is kept
    from then on, whatever `most` becomes.
    """

    most: float = torch.inf
    count: int = 0
    parts: list[Bundles] = field(default_factory=list)
    incomplete: bool = False

    @property
    def full(self) -> bool:
        """Whether further bundles are left out."""
        return self.incomplete or self.count >= self.most

    @property
    def bytes(self) -> int:
        """The memory of the kept bundles."""
        return sum(part.nbytes for bundles in self.parts for part in bundles.parts())

    def keep(self, bundles: Bundles) -> None:
        """Add bundles, unless there are too many already."""
        if not len(bundles.signs):
            return
        if self.full:
            self.incomplete = True
            self.parts.clear()
            return
        self.parts.append(bundles)
        self.count += len(bundles.signs)


@dataclass(eq=False)
class BestFirst:
    """The state of one search."""

    goal: Goal
    frontier: Frontier
    batch: int  # bundles that are bounded at once
    keep: Keep = keep_nothing  # receives closed bundles
    bundles: int = 0  # number of bundles bounded so far
    closed: float = 0.0  # the part of the tree that is closed, from 0 to 1
    pace: Pace | None = None  # measures how large batches should be

    def begin(self, bundles: Bundles, held: Held) -> None:
        """Start with bundles that together cover the domain."""
        count = len(bundles.signs)
        share = bundles.alpha.new_full((count,), 1 / max(count, 1))
        whole = Batch(bundles, torch.full_like(share, -torch.inf), share, held)
        for part in torch.split(torch.arange(count, device=share.device), self.batch):
            if not self.goal.over:
                self._process(whole.at(part))

    def run(self, until: Callable[[], bool]) -> None:
        """Split the lowest bundles until none is left, the goal is over or `until` is true."""
        teller = Teller()
        while len(self.frontier) and not self.goal.over and not until():
            if teller.due():
                left = self.goal.context.budget.known_left()
                told = len(self.frontier), self.frontier.lowest, left
                tell(Stage(f"split, {plural(self.bundles, 'bundle')} bounded", *told))
            taken = self.goal.take(self.frontier, max(self.batch // 2, 1))
            if not len(taken["key"]):
                break
            if self.pace is not None:
                self.pace.begin()
            found = Cut(taken["point"], taken["column"]) if "point" in taken else None
            self._step(_restored(taken), taken["neuron"], found)
            if self.pace is not None:
                self.batch = self.pace.end(2 * len(taken["key"]))

    def waiting(self) -> list[Bundles]:
        """The open bundles."""
        return [_restored(self.frontier.everything()).bundles] if len(self.frontier) else []

    def _step(self, batch: Batch, neuron: Tensor, where: Cut | None) -> None:
        """Split each bundle at its neuron [bundles]. If the goal has `done`, leave out the bundles
        that it closes, and bound those with neuron -1 again instead."""
        done = self.goal.done(batch)
        if done is None:
            self._process(_split(batch, neuron, where))
            return
        flags = done, ~done & (neuron < 0), ~done & (neuron >= 0)
        closed, *counted = read((batch.share * done).sum(), *(flag.sum() for flag in flags))
        gone, again, split = (places(*pair) for pair in zip(flags, counted, strict=True))
        if len(gone):
            self.closed += closed
            self.keep(batch.bundles.at(gone))
        parts = [batch.at(again)] if len(again) else []
        if len(split):
            some = None if where is None else Cut(*(part[split] for part in where))
            parts.append(_split(batch.at(split), neuron[split], some))
        if parts:
            self._process(_joined(parts))

    def _process(self, batch: Batch) -> None:
        """Bound a batch; close, settle or put back each of its bundles."""
        self.bundles += len(batch.share)
        visited = self.goal.visit(batch)
        if self.goal.over:
            return
        bounded, level, closed, held = visited
        full = ~closed & ~bounded.crossing.any(-1)
        rest = ~closed & ~full
        share, *counted = read(
            (batch.share * ~rest).sum(), *(flag.sum() for flag in (closed, full, rest))
        )
        gone, regions, at = map(places, (closed, full, rest), counted)
        if len(gone) and self.keep is not keep_nothing:
            self.keep(bounded.bundles.at(gone))
        if len(regions):
            self.keep(self.goal.settle(visited, regions))
        self.closed += share
        if not len(at) or self.goal.over:
            return
        kept = bounded.bundles.at(at)
        neuron = self.goal.choose(visited, at)
        where = cut(self.goal.context, bounded, at, neuron)
        self.frontier.push(
            level[at],
            **dict(zip(PARTS, _cast(torch.float32, kept.parts()), strict=True)),
            neuron=neuron,
            share=batch.share[at],
            **{name: part[at] for name, part in held.items()},
            **({} if where is None else where._asdict()),
        )


def _cast(dtype: torch.dtype, parts: Iterable[Tensor]) -> Iterator[Tensor]:
    """The parts; those of floating-point numbers in the given precision."""
    return (part.to(dtype) if part.is_floating_point() else part for part in parts)


def _restored(taken: Held) -> Batch:
    """The batch of records taken out of the frontier."""
    bundles = Bundles(*_cast(taken["share"].dtype, (taken[name] for name in PARTS)))
    held = {name: part for name, part in taken.items() if name not in _OWN}
    return Batch(bundles, taken["key"], taken["share"], held)


def _joined(parts: list[Batch]) -> Batch:
    """One or two batches as one."""
    if len(parts) == 1:
        return parts[0]
    level, share = (torch.cat([getattr(p, n) for p in parts]) for n in ("level", "share"))
    held = {name: torch.cat([p.held[name] for p in parts]) for name in parts[0].held}
    return Batch(Bundles.joined([part.bundles for part in parts]), level, share, held)


def _split(batch: Batch, neuron: Tensor, where: Cut | None) -> Batch:
    """Both children of each bundle: first all with their neuron [bundles] off, then all on."""
    held = {name: torch.cat([part, part]) for name, part in batch.held.items()}
    level, share = batch.level.repeat(2), batch.share.repeat(2) / 2
    return Batch(children(batch.bundles, neuron, where), level, share, held)
