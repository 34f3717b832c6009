"""A deadline that passes in the middle of a step: what is left of it is not done."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.bounding import bound_outputs
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.engine.settings import Settings
from fgp_vnn.query import Query, ask_values
from fgp_vnn.strategy import Ascent, Strategy
from tests.helpers.small_networks import random_network, sample
from tests.helpers.solving import solve

ROWS = 5


@dataclass(frozen=True)
class Looks(Budget):
    """A budget that is up after so many looks at the clock."""

    looks: list[int] = field(default_factory=list)

    def left(self) -> float:
        self.looks[0] -= 1
        return float(self.looks[0])


def asked() -> Query:
    network = random_network([3, 8, 8, ROWS], 1)
    box = Box(torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
    return ask_values(network, box, 2, torch.eye(ROWS, dtype=torch.float64))


def bounded(ascent: Ascent | None, looks: int) -> Tensor:
    """Bounds of rows that are taken one at a time, with so many looks at the clock."""
    query, budget = asked(), Looks(math.inf, 0, [looks])
    problem = Problem(query, lambda x: None, Settings(), budget, Strategy(), NullLog(query))
    problem.bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    return bound_outputs(problem, ascent)


@pytest.mark.parametrize("ascent", [None, Ascent(steps=3)], ids=["plain", "optimised"])
def test_rows_whose_turn_comes_too_late_have_no_bounds_and_the_others_keep_theirs(
    ascent: Ascent | None,
) -> None:
    query = asked()
    least = query.network(sample(query.domain, 200, 0)).amin(0)
    assert bool(bounded(ascent, 1000).isfinite().all())
    for looks in range(1, 12):
        found = bounded(ascent, looks)
        assert bool((found <= least).all())
        late = found == -torch.inf
        assert bool((late[1:] >= late[:-1]).all())
    assert bool(bounded(ascent, 1).isinf().all())
    assert 0 < int(bounded(ascent, 4).isinf().sum()) < ROWS


def test_without_time_nothing_is_bounded() -> None:
    verdict = solve(asked(), lambda x: None, Settings(), Budget(0.0, 1 << 30))
    assert verdict.status == "timeout"
    assert "bounds" not in verdict.seconds
