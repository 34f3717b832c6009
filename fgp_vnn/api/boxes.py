"""The boxes of a property as problems, solved one by one, and the joint verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from fgp_vnn.api.cases import box_points, check_fit, compares_only, join_verdicts, load_for
from fgp_vnn.api.models import load_compared
from fgp_vnn.api.refused import attack_refused
from fgp_vnn.attack.confirm import Judge
from fgp_vnn.base.errors import OutOfTimeError, UnsupportedError
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.host import cores
from fgp_vnn.engine.device import pick_device
from fgp_vnn.engine.many import Doubles, box_of, log_box, proved_at_once
from fgp_vnn.engine.parallel.actors import Actors
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog, ProofLog
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network import LoadedNetwork, Network
from fgp_vnn.network.onnx.deployed import Deployment, read_deployment
from fgp_vnn.network.onnx.opaque import FLAT_OPERATORS
from fgp_vnn.property import Property
from fgp_vnn.query import Query, ask
from fgp_vnn.strategy import Strategy
from fgp_vnn.transform.float32 import deployed, received


@dataclass(eq=False)
class BoxProblems:
    """Iterates over the problems of a property; the caller runs each one and passes its verdict to
    `add` before it asks for the next.

    The iteration ends at the first counterexample or at the deadline: one broken box breaks the
    property, and a proof needs all boxes.
    """

    settings: Settings
    proof: bool = False  # whether to keep proof logs
    strategy: Strategy = field(default_factory=Strategy)
    staff: Actors | None = None  # workers of a cluster, if one is used
    logs: list[ProofLog] = field(init=False, default_factory=list)
    verdicts: list[Verdict] = field(init=False, default_factory=list)
    _load: float = field(init=False, default=0.0)  # seconds
    _note: str = field(init=False, default="")
    _refused: str = field(init=False, default="")  # why the float32 program cannot be bounded

    def add(self, verdict: Verdict) -> None:
        """Record the verdict on the last problem."""
        if self._refused and verdict.status == "unknown":
            verdict = replace(verdict, reason=self._refused)
        self.verdicts.append(verdict)

    def verdict(self) -> Verdict:
        """One verdict on all boxes."""
        joined = join_verdicts(self.verdicts)
        return replace(joined, seconds={"load": self._load, **joined.seconds}, note=self._note)

    def of_model(
        self, model: Any, prop: Property, limit: Callable[[], Budget]
    ) -> Iterator[Problem]:
        """The problems of a model, or of a pair of files (network, property); `limit` returns the
        budget from now on."""
        begin, done, opened = time.perf_counter(), 0, limit()
        for loaded, part in self._opened(model, prop, opened):
            budget, self._note = limit(), loaded.note
            self._load += time.perf_counter() - begin
            # Step functions have zero gradients: first attack with substitute slopes.
            flat = FLAT_OPERATORS & loaded.operators.keys()
            if self.settings.attack and flat and part.joint is None:
                some = budget.share(self.strategy.attack.blind.share)
                with suppress(UnsupportedError):
                    error = UnsupportedError("its gradients are 0")
                    tried = attack_refused(model, part, self.settings, some, error)
                    if tried.status == "sat":
                        self.verdicts = [tried]
                        return
            program = model[0] if self.settings.float32_semantics else None
            yield from self.of_network(loaded, part, budget, program)
            done += len(part.cases)
            if any(verdict.status == "sat" for verdict in self.verdicts):
                return
            if done < len(prop.cases) and budget.expired():
                self.add(Verdict("timeout", reason="time is up before the last boxes"))
                return
            begin = time.perf_counter()

    def of_network(
        self, loaded: LoadedNetwork, prop: Property, budget: Budget, program: Path | None = None
    ) -> Iterator[Problem]:
        """The problems of a network. If the file `program` is given, proofs cover every float32
        evaluation of it; where these cannot be bounded, the network is only attacked."""
        settings = self.settings
        device = pick_device(settings.device, settings.precision)
        dtype = getattr(torch, settings.precision)
        network = loaded.network.to(device, dtype)
        jobs = settings.jobs or cores() if device.type == "cpu" else 1  # a GPU has work for one
        jobs = jobs if self.staff is None else self.staff.capacity
        deployment = None if program is None else self._deployment(program)
        proved = self._proved_together(network, prop, budget) if program is None else {}
        for number, case in enumerate(prop.cases):
            domain, verified = box_of(case), network
            if number in proved:
                if self.proof:
                    log = self._log(ask(network, domain, case.unsafe), number)
                    log_box(log, case, proved[number])
                continue
            if number and budget.expired():
                self.add(Verdict("timeout", reason=f"time is up before box {number + 1}"))
                return
            if deployment is not None and not self._refused:
                try:
                    with torch.no_grad():
                        wide = deployed(loaded.network, received(domain), deployment, budget=budget)
                    domain, verified = received(domain), wide.to(device, dtype)
                except UnsupportedError as error:
                    self._refused = str(error)
            if self._refused:
                settings = replace(settings, engine="attack")
            judge = Judge(*case.ends(), loaded.runtime.run, prop.broken_by)
            query = ask(verified, domain, case.unsafe)
            log = self._log(query, number)
            yield Problem(query, judge, settings, budget, self.strategy, log, jobs, self.staff)
            if self.verdicts[-1].status == "sat":
                return

    def _opened(
        self, model: Any, prop: Property, budget: Budget
    ) -> Iterator[tuple[LoadedNetwork, Property]]:
        """Like `_networks`, but records a timeout verdict if the deadline passes while loading."""

        def watch() -> None:
            if budget.expired():
                raise OutOfTimeError("time is up while the network is read")

        try:
            yield from self._networks(model, prop, watch)
        except OutOfTimeError as error:
            self.add(Verdict("timeout", reason=str(error)))

    def _networks(
        self, model: Any, prop: Property, watch: Callable[[], None]
    ) -> Iterator[tuple[LoadedNetwork, Property]]:
        """The networks of a model or of a pair of files, each with its part of the property."""
        if isinstance(model, tuple):
            # Certificates and float32 proofs are about the file itself: one network, all inputs.
            for_all = self.proof or self.settings.float32_semantics
            yield from load_for(model, prop, all_inputs=for_all, watch=watch)
            return
        whole = not compares_only(prop)
        loaded = load_compared(model, box_points(prop), whole=whole, watch=watch)
        check_fit(loaded, prop, "the model", "the property")
        yield loaded, prop

    def _deployment(self, program: Path) -> Deployment | None:
        try:
            return read_deployment(program)
        except UnsupportedError as error:
            self._refused = str(error)
            return None

    def _proved_together(
        self, network: Network, prop: Property, budget: Budget
    ) -> dict[int, Doubles]:
        """If the property has many boxes, bound them all at once. Returns, by number, the boxes
        that plain bounds prove, with the weights [rows] of the rows that prove them."""
        inputs = self.strategy.inputs
        # Boxes that the checker's own bounds do not prove are split further when the certificate is
        # written, which is practical for few inputs only.
        together = not self.proof or network.inputs <= inputs.few
        together = together and self.settings.engine != "attack"
        if not together or len(prop.cases) < inputs.cases:
            return {}
        begin = time.perf_counter()
        found = proved_at_once(network, prop.cases, budget, self.strategy)
        proved = {n: weights for n, weights in enumerate(found) if weights is not None}
        if proved:
            spent, boxes = {"bounds": time.perf_counter() - begin}, {"boxes": len(prop.cases)}
            self.add(Verdict("unsat", "bounds", seconds=spent, statistics=boxes))
        return proved

    def _log(self, query: Query, case: int) -> NullLog:
        if not self.proof:
            return NullLog(query)
        self.logs.append(ProofLog(query, case))
        return self.logs[-1]
