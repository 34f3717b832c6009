"""The split search along inputs: boxes halved until linear bounds decide each.

For inputs of few dimensions this beats splitting neurons: a smaller box makes every relaxation
tighter at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from fgp_vnn.attack.descent import Near
from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.reading import places, read
from fgp_vnn.base.story import Stage, Teller, tell
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.base.words import plural
from fgp_vnn.bounds.forward import Forward, pays
from fgp_vnn.bounds.second_order import applies
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import boxes_at_once, curved_at_once
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query
from fgp_vnn.search.best_first import keep_nothing
from fgp_vnn.search.box_attacks import BoxAttacks
from fgp_vnn.search.box_neurons import BoxNeurons
from fgp_vnn.search.boxes import (
    BoundedBoxes,
    Subdivision,
    bound_boxes,
    bound_exactly,
    can_be_split,
    halves,
    left_open,
    open_boxes,
    score,
)
from fgp_vnn.search.curved_boxes import CurvedRows, bound_curved
from fgp_vnn.search.divisible import Divisible
from fgp_vnn.search.frontier import Frontier
from fgp_vnn.search.last_boxes import Parts, last_boxes, walk_boxes
from fgp_vnn.search.pace import Pace
from fgp_vnn.search.trial import Trial
from fgp_vnn.search.walk.walk import WalkOptions

# Receives the lower and upper corners [boxes, inputs] of boxes, the weights [boxes, rows] of the
# sums of rows that prove the closed ones, and which boxes are closed [boxes].
KeepBoxes = Callable[[Tensor, Tensor, Tensor, Tensor], None]


def split_inputs(
    query: Query, confirm: Confirm, budget: Budget, subdivision: Subdivision
) -> Outcome:
    """Search the query's box, halving sides until every part is decided.

    Bounds are computed in float32, with their rounding error. A box that only this error keeps open
    is bounded once more in the query's own precision.
    """
    search = InputSplits(query, confirm, budget, subdivision)
    search.begin()
    search.run(search.enough)
    return search.outcome()


class InputSplits(Divisible):
    """The state of a search that splits inputs."""

    def __init__(
        self,
        query: Query,
        confirm: Confirm,
        budget: Budget,
        how: Subdivision,
        keep: KeepBoxes = keep_nothing,
    ) -> None:
        if not isinstance(query.domain, Box):
            raise TypeError("inputs are split in boxes only")
        self.query, self.confirm, self.budget = query, confirm, budget
        self.frontier = Frontier(budget.waiting)
        self._how, self._keep, self._kept = how, keep, list[tuple[Tensor, ...]]()
        fit, usual = boxes_at_once(query.network, budget.at_once), how.strategy.inputs.batch
        if self._curved is not None:
            columns, usual = self._curved.forms.columns, how.strategy.inputs.curved_batch
            fit = min(fit, curved_at_once(query.network, columns, budget.at_once))
        self._pace = Pace(usual, fit, query.network.device)
        self.batch = self._pace.size
        self.statistics = {"boxes": 0, "bundles": 0, "stuck": 0, **({"lps": 0} if how.lp else {})}
        self._turns = BoxNeurons.of(query, confirm, budget, how)
        self._closed, self._reasons = 0.0, list[str]()

    @property
    def bounded(self) -> int:
        return self.statistics["boxes"] + self.bounded_out

    @property
    def closed(self) -> float:
        return self._closed

    @cached_property
    def _forward(self) -> Forward | None:
        """Forward propagation of linear forms, where it is faster than backward passes."""
        factor = self._how.strategy.slopes.forward_factor
        return Forward(self.query.network) if pays(self.query.network, factor) else None

    @cached_property
    def _curved(self) -> CurvedRows | None:
        """Second-order forms, where they apply; certificates do not support them."""
        query, numbers = self.query, self._how.strategy.inputs
        known = self._keep is keep_nothing and query.network.dtype == torch.float64
        fits = known and applies(query.network, numbers.together, numbers.curved_relus)
        return CurvedRows(query, numbers) if fits else None

    @cached_property
    def _trial(self) -> Trial:
        return Trial(*self._how.strategy.inputs.trial)

    @cached_property
    def _coarse(self) -> Query:
        """The query in float32, unless forms are propagated forward: their rounding errors add up
        over the layers, which is too much for float32."""
        in_float32 = self._how.coarse and self._forward is None and self._curved is None
        return self.query.to(self.query.network.device, torch.float32) if in_float32 else self.query

    @cached_property
    def _attacks(self) -> BoxAttacks:
        return BoxAttacks(self._coarse, self.confirm, self._how.strategy.attack, self.part)

    @property
    def _root(self) -> Box:
        box = self._coarse.domain
        assert isinstance(box, Box)
        return box

    def begin(self) -> None:
        """Start with the whole box."""
        box = self._root
        signs = torch.zeros(1, self.query.network.neurons, dtype=torch.int8).to(box.lower.device)
        parts = Parts(box.lower.unsqueeze(0), box.upper.unsqueeze(0), signs)
        self._visit(parts, box.lower.new_ones(1))

    def run(self, until: Callable[[], bool]) -> None:
        teller = Teller()
        while len(self.frontier) and self.found is None and not until():
            if teller.due():
                told = self.open, self.frontier.lowest, self.budget.known_left()
                tell(Stage(f"split, {plural(self.bounded, 'box', 'boxes')} bounded", *told))
            self._pace.begin()
            parts, share = self._halved(self.frontier.pop(max(self.batch // 2, 1)))
            self._visit(parts, share)
            self.batch = self._pace.end(len(share))

    def enough(self) -> bool:
        return self.budget.expired() or self._hopeless

    @property
    def _hopeless(self) -> bool:
        """Whether only unsat is of use and some box cannot be split further."""
        return self._how.whole and self.statistics["stuck"] > 0

    def extend(self, budget: Budget) -> None:
        self.budget = budget

    def copy(self, confirm: Confirm, budget: Budget, part: int) -> InputSplits:
        fresh = InputSplits(self.query, confirm, budget, self._how)
        if self._keep is not keep_nothing:
            fresh._keep = fresh._collect
        # Share what is computed once per network.
        for name in ("_forward", "_curved", "_trial", "_coarse"):
            fresh.__dict__[name] = getattr(self, name)
        if fresh._turns is not None and self._turns is not None:
            fresh._turns.few = self._turns.few
        fresh.part = part
        return fresh

    def _collect(self, *boxes: Tensor) -> None:
        closed = boxes[-1]
        self._kept.append(tuple(part[closed] for part in boxes))

    def report(self) -> Any:
        found = self.statistics, self._closed, self._reasons, self._kept
        self.statistics = dict.fromkeys(self.statistics, 0)
        self._closed, self._reasons, self._kept = 0.0, [], []
        return found

    def absorb(self, report: Any) -> None:
        statistics, closed, reasons, kept = report
        for name, number in statistics.items():
            self.statistics[name] += number
        self._closed += closed
        self._reasons += reasons
        for boxes in kept:
            self._keep(*boxes)

    def outcome(self) -> Outcome:
        statistics, stuck = self.statistics, self.statistics["stuck"]
        if self.found is not None:
            return Outcome("sat", self.found, statistics=statistics)
        left = 0 if self._hopeless else self.open
        if left and self.budget.expired():
            reason = f"time is up with {plural(left, 'box', 'boxes')} open"
            return Outcome("timeout", reason=reason, statistics=statistics)
        if left:
            reason = f"{plural(left, 'box', 'boxes')} left open"
            return Outcome("unknown", reason=reason, statistics=statistics, unfinished=True)
        if stuck and self.budget.expired():
            return Outcome("timeout", reason="time is up in the last boxes", statistics=statistics)
        if stuck:
            boxes = plural(stuck, "box", "boxes")
            reason = f"{boxes} left open, too small to be split further"
            if self._reasons:
                reason = f"{boxes} could not be settled; in the last {self._reasons[-1]}"
            return Outcome("unknown", reason=reason, statistics=statistics)
        return Outcome("unsat", statistics=statistics)

    def _visit(self, parts: Parts, share: Tensor) -> None:
        """Bound a batch of boxes, each a share [boxes] of the whole tree; queue the open ones."""
        coarse, how, attack = self._coarse, self._how, self._how.strategy.attack
        self.statistics["boxes"] += len(share)
        bounded = self._bounded(parts)
        points = bounded.points.flatten(0, 1)
        near = Near.of(coarse, points, coarse.network(points), attack.in_boxes.offer)
        again = bounded.almost & ~bounded.closed
        offered, unsure, *known = read(near.flags.sum(), again.sum(), *left_open(bounded, share))
        if unsure and coarse is not self.query:
            at = places(again, unsure)
            bounded = bound_exactly(self.query, parts, bounded, at, self.budget, how)
            known = read(*left_open(bounded, share))
        self._keep(parts.lower, parts.upper, bounded.weights, bounded.closed)
        self.found = near.confirmed(self.confirm, offered, attack.in_boxes.offer)
        if self.found is None and how.lp:
            self.found, bounded = self._walked(bounded)
            known = read(*left_open(bounded, share))
        many = len(self.frontier) or (
            self.part and 2 * len(share) >= self.batch
        )  # few boxes take as long
        if self.found is None and self._turns is not None and many:
            bounded, self.found, spent = self._turns.take(bounded, open_boxes(bounded), self.budget)
            self.statistics["bundles"] += spent
            known = read(*left_open(bounded, share))
        if self.found is None:
            self._push_open(bounded, share, known)
            if how.attacks:
                self.found = self._attacks.after(len(share), self.frontier, self.budget)

    def _bounded(self, parts: Parts) -> BoundedBoxes:
        """Linear or second-order bounds of the boxes."""
        how, curved = self._how, self._curved

        def straight() -> BoundedBoxes:
            return bound_boxes(self._coarse, parts, self._forward, self.budget, how)

        if curved is None:
            return straight()
        return self._trial.bound(lambda: bound_curved(curved, parts, cut=how.clip), straight)

    def _walked(self, bounded: BoundedBoxes) -> tuple[Counterexample | None, BoundedBoxes]:
        """Walk through the boxes that splits do not decide, and mark them as closed; those that
        stay undecided are counted as stuck."""
        strategy, statistics = self._how.strategy, self.statistics
        rest = last_boxes(self._root, bounded.left, bounded.closed, strategy.inputs)
        boxes = Parts(*(part[rest] for part in bounded.left))
        walk = WalkOptions(lp=True, numbers=strategy.walk, projections=strategy.projections)
        found = None
        for outcome in walk_boxes(self.query, boxes, self.confirm, self.budget, walk):
            found = outcome.counterexample
            statistics["lps"] += outcome.statistics.get("lps", 0)
            if found is not None:
                break
            if outcome.status != "unsat":
                statistics["stuck"] += 1
                self._reasons += [outcome.reason] if outcome.reason else []
        return found, bounded._replace(closed=bounded.closed.index_fill(0, rest, True))

    def _push_open(self, bounded: BoundedBoxes, share: Tensor, known: list[float]) -> None:
        """Queue the open boxes that can be split; `known` is the result of `left_open`."""
        count, stuck, closed = known
        self._closed += closed
        self.statistics["stuck"] += int(stuck)
        open_ = places(open_boxes(bounded), count)
        self.frontier.push(
            score(self.query, bounded.nominal)[open_],
            lower=bounded.left.lower[open_],
            upper=bounded.left.upper[open_],
            signs=bounded.left.signs[open_],
            pull=bounded.pull[open_],
            share=share[open_],
        )

    def _halved(self, taken: dict[str, Tensor]) -> tuple[Parts, Tensor]:
        """Both halves of each box, along the input that causes the greatest loss, and their
        shares."""
        parts = Parts(taken["lower"], taken["upper"], taken["signs"])
        pull = torch.where(can_be_split(parts), taken["pull"], -torch.inf)
        return halves(parts, pull.argmax(-1)), taken["share"].repeat(2) / 2
