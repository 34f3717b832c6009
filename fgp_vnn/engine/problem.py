"""One query on its way through the steps: its current form, its bounds and its budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fgp_vnn.base.outcome import Confirm, Outcome
from fgp_vnn.base.spread import ALONE, Led, Spread
from fgp_vnn.base.verdict import Counterexample, Status, Verdict, summed
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.parallel.processes import Staff, can_fork
from fgp_vnn.engine.parallel.spread import ForkedSpread
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.engine.settings import Settings
from fgp_vnn.query import Query
from fgp_vnn.search.neurons import NeuronSplits
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.chains import Condensed
from fgp_vnn.transform.increasing import take_off_end
from fgp_vnn.transform.inputs import Lift, reduce_inputs
from fgp_vnn.transform.opposites import merge_opposites
from fgp_vnn.transform.stable import collapse, left_over

Through = Callable[[Tensor], Tensor]  # points [points, inputs] as points of another input space


@dataclass(eq=False)
class Problem:
    """The query in its current, shrunk form, and the time and work spent on it.

    Methods that shrink the query update the bounds, the lift to the original input and the names.
    """

    query: Query
    judge: Confirm  # takes points of the original input
    settings: Settings
    budget: Budget
    strategy: Strategy
    log: NullLog  # proof log
    jobs: int = 1  # how many processes may search
    staff: Staff | None = None  # starts these processes; None: they are forks of this one
    bounds: LayerBounds = field(init=False, default_factory=lambda: LayerBounds((), ()))
    condensed: Condensed | None = field(init=False, default=None)  # until `drop_stable` uses it
    lift: Through = field(init=False, default_factory=lambda: lambda x: x)  # to the original input
    seconds: dict[str, float] = field(init=False, default_factory=dict)
    statistics: dict[str, int] = field(init=False, default_factory=dict)
    unstable: int = field(init=False, default=0)  # unstable neurons after the last `shrink`
    begun: float = field(init=False, default_factory=time.perf_counter)
    # how far the bounds of the disjuncts were below 0, in sum, at the last optimised bounds
    lack: float = field(init=False, default=math.inf)
    tightened: bool = field(init=False, default=False)  # better hidden bounds made neurons stable
    # a neuron-split search that can be resumed: its bounds are about as tight as the current ones
    unfinished: NeuronSplits | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.settings.lp:
            self.statistics["lps"] = 0
        if self.log.wanted:
            self.strategy = replace(self.strategy, slopes=self.strategy.slopes.storable())

    @property
    def spent(self) -> float:
        """Seconds since the work on the problem began."""
        return time.perf_counter() - self.begun

    @property
    def spread(self) -> Spread:
        """Runs independent pieces of work on several processes: right away if the problem has taken
        a while, else starting with the first batch that is expected to take long."""
        numbers = self.strategy.crew
        if self.jobs < 2 or not can_fork():
            return ALONE
        tiny = self.spent < numbers.alone[0]
        return ForkedSpread(self.jobs, numbers.least_work, rate=0.0 if tiny else math.inf)

    def spread_out(self, work: Callable[[Spread], Led]) -> Led:
        """Return `work(spread)`. Its processes last until it ends; where proofs are kept, each
        batch starts new ones, because lasting processes would have to be sent every proof."""
        return work(self.spread) if self.log.wanted else self.spread.lead(work)

    @property
    def confirm(self) -> Confirm:
        """A function that returns the first counterexample among points [points, inputs] of the
        current query; it stays valid when the query is shrunk further."""
        judge, lift = self.judge, self.lift
        return lambda points: judge(lift(points))

    def only(self, disjuncts: Sequence[int]) -> None:
        """Reduce the problem to some of the disjuncts."""
        self.query = self.query.only(disjuncts)
        self.log.names.keep_disjuncts(disjuncts)

    def enter(self, query: Query, lift: Lift) -> None:
        """Replace the query by an equivalent one in a smaller input space."""
        outer = self.lift
        self.query, self.lift = query, lambda points: outer(lift(points))
        self.log.names.keep_inputs(lift)

    def reduce_inputs(self) -> None:
        """Drop fixed inputs of a box, or rotate an l2 ball into the subspace that the network
        reads, unless the user forbids it."""
        if self.settings.reduce:
            self.enter(*reduce_inputs(self.query))

    def take_off_end(self) -> None:
        """Drop a strictly increasing function at the end, if the rows allow it; not with a proof
        log or float32 semantics, which are about the whole file."""
        if not self.log.wanted and not self.settings.float32_semantics:
            self.query = take_off_end(self.query)

    def relaxed(self, query: Query, bounds: LayerBounds, budget: Budget) -> Problem:
        """A separate problem about a relaxed query over the same inputs, which can be met wherever
        this one can; its time and work are counted here."""
        found = copy(self)
        found.query, found.bounds, found.budget, found.log = query, bounds, budget, NullLog(query)
        found.unfinished = None
        return found

    def drop_stable(self) -> None:
        """Drop the stable neurons, if that makes the query smaller."""
        before, bounds = self.query, self.bounds
        if self.condensed is not None:
            self.query, self.bounds = self.condensed.query, self.condensed.bounds
            self.log.names.keep_neurons(self.condensed.neurons)
            self.condensed = None
            return
        if self.budget.expired():
            return
        left = left_over(before, bounds)
        self.query, self.bounds = collapse(before, bounds, budget=self.budget, left=left)
        if self.query is not before:
            none = torch.zeros(0, dtype=torch.bool, device=before.network.device)
            self.log.names.keep_neurons(torch.nonzero(torch.cat([none, *left])).flatten())

    def shrink(self) -> None:
        """Drop all that cannot matter: stable neurons, duplicate neurons and inputs."""
        self.drop_stable()
        # A proof log names the neurons of the file, and merged neurons are not in the file.
        rounded_away = self.strategy.shrinking.rounded_away
        merged = None if self.log.wanted else merge_opposites(self.query, self.bounds, rounded_away)
        if merged is not None:
            self.query, prior = merged
            network, domain = self.query.network, self.query.domain
            self.bounds = root_bounds(network, domain, prior=prior, budget=self.budget)
            self.drop_stable()
        self.unstable = sum(int(mask.sum()) for mask in self.bounds.unstable())
        self.statistics["unstable"] = self.unstable
        self.reduce_inputs()

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time spent in the block to `seconds`."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin

    def count(self, **more: int) -> None:
        """Add these counts to the statistics."""
        self.statistics.update(summed([self.statistics, more]))

    def report(self, method: str, outcome: Outcome) -> Verdict:
        """The verdict for the outcome of a search, whose counts are added to the statistics."""
        self.count(**outcome.statistics)
        decided = method if outcome.status in ("sat", "unsat") else ""
        return self.verdict(outcome.status, decided, outcome.counterexample, outcome.reason)

    def verdict(
        self,
        status: Status,
        decided_by: str = "",
        counterexample: Counterexample | None = None,
        reason: str = "",
    ) -> Verdict:
        """A verdict with the time and the counts so far."""
        counts = dict(self.statistics)
        return Verdict(status, decided_by, counterexample, reason, self.seconds, counts)
