"""A deadline in the middle of a pass over a large network: at most one more pass is begun.

The clock goes on by one with each map that is applied to anything, forward or back. So a test says
what was done after the end, however fast the machine is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import fgp_vnn
from fgp_vnn.attack.descent import falsify
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.problem import Problem
from fgp_vnn.engine.proof_log import NullLog
from fgp_vnn.engine.settings import Settings
from fgp_vnn.engine.steps import BEGIN
from fgp_vnn.network import Operator, load_network
from fgp_vnn.network.maps.patches import PatchMap
from fgp_vnn.network.model import Dense
from fgp_vnn.property.model import Case, Property
from fgp_vnn.query import Query, ask_values
from fgp_vnn.strategy import Descent, Offer, Shrinking, Strategy
from tests.helpers.network_models import Builder

SHAPE, DEPTH = (1, 2, 6, 6), 8
MAPS = DEPTH + 1
METHODS = (
    (Operator, ("linear", "magnitude", "adjoint")),
    (Dense, ("linear", "magnitude", "adjoint", "spread")),
    (PatchMap, ("pull",)),
)
ROWS = Strategy(shrinking=Shrinking(columns=0))  # no forms forward


@dataclass(frozen=True)
class Working(Budget):
    """A budget whose time is the work that was done."""

    work: list[str] = field(default_factory=list)

    def left(self) -> float:
        return self.moment - len(self.work)

    def share(self, part: float) -> Budget:
        return replace(self, moment=len(self.work) + part * max(self.left(), 0.0))


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods of maps that were called, one after the other."""
    done: list[str] = []

    def counted(kind: type, name: str) -> Any:
        plain = getattr(kind, name)

        def method(*args: Any) -> Any:
            done.append(name)
            return plain(*args)

        return method

    for kind, names in METHODS:
        for name in names:
            monkeypatch.setattr(kind, name, counted(kind, name))
    return done


def stack(activation: str) -> Any:
    """A stack of convolutions of two channels, with five outputs."""
    b = Builder(SHAPE, 13, seed=0)
    x = "x"
    for _ in range(DEPTH):
        weight, bias = b.random(2, 2, 3, 3), b.random(2)
        x = b.op(activation, b.op("Conv", x, weight, bias, pads=[1, 1, 1, 1]))
    end = b.op("Gemm", b.op("Reshape", x, b.ints(1, -1)), b.random(72, 5), b.random(5))
    return b.model(end)


def asked(activation: str, moving: int) -> Query:
    """The outputs of a stack of convolutions, where so many inputs move."""
    network = load_network(stack(activation), dense_entries=0).network
    lower, upper = torch.zeros(72).double(), torch.zeros(72).double()
    upper[:moving] = 0.5
    return ask_values(network, Box(lower, upper), len(network.layers), torch.eye(5).double())


def begin(query: Query, settings: Settings, budget: Budget, strategy: Strategy) -> None:
    """Take a query through what comes before slopes are optimised."""
    problem = Problem(query, lambda x: None, settings, budget, strategy, NullLog(query))
    with torch.no_grad():
        for step in BEGIN:
            if step(problem) is not None:
                break


@pytest.mark.parametrize(
    ("activation", "moving", "strategy"),
    [("Relu", 72, ROWS), ("Relu", 3, Strategy()), ("Sigmoid", 72, Strategy())],
    ids=["rows", "columns", "smooth"],
)
@pytest.mark.parametrize("attack", [False, True], ids=["proof", "attack"])
def test_after_the_deadline_at_most_one_pass_is_begun(
    work: list[str], activation: str, moving: int, strategy: Strategy, attack: bool
) -> None:
    query = asked(activation, moving)
    # One map at a time has its intervals, and a step of an attack is a pass forward, back and
    # forward again.
    most = 3 * MAPS if attack else MAPS + 4
    for limit in range(1, 250, 29):
        work.clear()
        begin(query, Settings(attack=attack), Working(limit, 1 << 30, work), strategy)
        assert len(work) <= limit + most, work[limit:]
        if len(work) < limit:
            break
    else:
        raise AssertionError("first bounds have an end")


def test_a_network_is_read_a_map_at_a_time(work: list[str]) -> None:
    model = stack("Relu")
    seen: list[int] = []
    load_network(model, dense_entries=0, watch=lambda: seen.append(len(work)))
    seen.append(len(work))
    assert seen[-1] >= 2 * MAPS
    assert max(later - sooner for sooner, later in pairwise(seen)) <= 2


def test_a_deadline_while_a_network_is_read_is_a_timeout() -> None:
    prop = Property((Case(np.zeros(72), np.ones(72), ()),), 72, 5)
    verdict = fgp_vnn.verify(stack("Relu"), prop, timeout=1e-9, attack=False)
    assert (verdict.status, verdict.reason) == ("timeout", "time is up while the network is read")


def test_starts_of_an_attack_are_no_more_at_once_than_fit_into_the_memory() -> None:
    query = asked("Relu", 72)
    least, budget = [], replace(UNLIMITED, memory=1)

    def look(points: Tensor) -> None:
        assert len(points) == 1
        least.append(points)

    near = Offer(near=math.inf)
    falsify(query, look, budget, Descent(restarts=3, steps=2, offer=near))
    assert len(least) == 5 * 3 * 3
