"""Networks that cannot be verified: they are only attacked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from fgp_vnn.attack.black_box import Aim, BlackBox, falsify_program
from fgp_vnn.base.outcome import Confirm
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.budget.budget import Budget
from fgp_vnn.domain.sets import Domain
from fgp_vnn.engine.settings import Settings
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import ask_of_outputs
from fgp_vnn.strategy import Strategy


@dataclass(eq=False)
class AttackProblem:
    """The question whether an output in one of the conjunctions can be reached, for a program."""

    program: BlackBox
    outputs: int
    domain: Domain
    unsafe: Sequence[Conjunction]
    judge: Confirm
    settings: Settings
    budget: Budget
    reason: str  # why there is nothing but the program
    strategy: Strategy = field(default_factory=Strategy)


def attack_program(problem: AttackProblem) -> Verdict:
    """`sat` with a counterexample, or `unknown` with the reason why nothing else was tried."""
    begin = time.perf_counter()
    blind, settings = problem.strategy.attack.blind, problem.settings
    unsafe = ask_of_outputs(problem.outputs, problem.unsafe)
    aim = Aim(problem.program, unsafe, problem.domain, problem.judge, blind)
    found = falsify_program(aim, problem.budget, settings.seed) if problem.unsafe else None
    seconds = {"attack": time.perf_counter() - begin}
    if found is not None:
        return Verdict("sat", "attack", found, seconds=seconds)
    return Verdict("unknown", reason=f"attacked only, in vain: {problem.reason}", seconds=seconds)
