"""Steps before a search: what they decide, and what they leave to the next ones."""

from __future__ import annotations

from dataclasses import replace

import torch

from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog, ProofLog
from fgp_vnn.engine.settings import Settings
from fgp_vnn.engine.steps import bound_windows
from fgp_vnn.network.model import Dense
from fgp_vnn.query import Query
from fgp_vnn.strategy import Strategy
from tests.bounds.test_windows import joint, windowed


def least_of_windows() -> float:
    """What joint bounds prove of the row of `windowed`."""
    row = joint(*windowed(0))
    row.ascend(Strategy().windows, UNLIMITED)
    return float(row.least())


def asked(query: Query, log: NullLog | None = None, *, float32: bool = False) -> Problem:
    chosen = Settings(attack=False, float32_semantics=float32)
    log = NullLog(query) if log is None else log
    problem = Problem(query, lambda points: None, chosen, UNLIMITED, Strategy(), log)
    _, problem.bounds = windowed(0)
    return problem


def test_windows_decide_what_they_close_and_keep_the_rest() -> None:
    least = least_of_windows()
    query, _ = windowed(0, offset=0.1 - least)
    verdict = bound_windows(asked(query))
    assert verdict is not None and (verdict.status, verdict.decided_by) == ("unsat", "bounds")
    output = query.network.output
    assert isinstance(output, Dense)
    both = replace(
        output,
        weights=tuple(torch.cat([w, w]) for w in output.weights),
        bias=torch.cat([output.bias - 1000, output.bias]),
    )
    two = replace(
        query,
        network=replace(query.network, output=both),
        disjunct=torch.arange(2),
        strict=query.strict.repeat(2),
        disjuncts=2,
    )
    problem = asked(two)
    assert bound_windows(problem) is None
    assert problem.query.disjuncts == 1
    assert float(problem.query.network.output.bias) == float(output.bias - 1000)


def test_windows_have_no_part_in_what_they_cannot_prove() -> None:
    """A certificate cannot hold them, and they are about real arithmetic."""
    query, _ = windowed(0, offset=0.1 - least_of_windows())
    assert bound_windows(asked(query, ProofLog(query, 0))) is None
    assert bound_windows(asked(query, float32=True)) is None


def test_work_on_a_relaxed_problem_counts_for_the_problem_it_stands_for() -> None:
    query, bounds = windowed(0)
    problem = asked(query)
    problem.count(bundles=2)
    before = problem.verdict("unknown")
    part = problem.relaxed(query, bounds, UNLIMITED)
    part.count(bundles=3)
    assert problem.verdict("unknown").statistics["bundles"] == 5
    assert before.statistics["bundles"] == 2  # a verdict keeps its own numbers
