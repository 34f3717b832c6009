"""Attacks on programs that can only be run: with gradients, without them, with NaN on the way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from fgp_vnn.attack.black_box import Aim, falsify_program
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box, Domain, L2Ball
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import ask_of_outputs
from fgp_vnn.strategy import Blind, Descent

SIZE = 60
SLOPES = torch.linspace(-2, 2, SIZE, dtype=torch.float64)
BOX = Box(-torch.ones(SIZE).double(), torch.ones(SIZE).double())
BALL = L2Ball(torch.zeros(SIZE).double(), 1.0)


class Linear:
    """One output, SLOPES . x: NaN where the first input is below -0.5, if asked for."""

    bytes_at_a_point = 8 * SIZE

    def __init__(self, *, differentiable: bool, gaps: bool = False) -> None:
        self.differentiable = differentiable
        self._gaps = gaps
        self.runs = 0

    def values(self, x: Tensor) -> Tensor:
        self.runs += len(x)
        y = (x @ SLOPES).unsqueeze(1)
        return torch.where(x[:, :1] < -0.5, torch.nan, y) if self._gaps else y

    def slopes(self, x: Tensor, weigh: Callable[[Tensor], Tensor]) -> Tensor:
        assert self.differentiable
        return weigh(self.values(x)) * SLOPES


def attack(
    program: Linear, domain: Domain, least: float, how: Blind, budget: Budget = UNLIMITED
) -> Counterexample | None:
    """Look for an output of at least `least`."""

    def confirm(points: Tensor) -> Counterexample | None:
        for x in points.numpy():
            if x @ SLOPES.numpy() >= least and bool(domain.contains(torch.from_numpy(x[None]))):
                return Counterexample(x, np.zeros(1, np.float32))
        return None

    unsafe = [Conjunction(np.array([[-1.0]]), np.array([-least]), np.zeros(1, bool))]
    aim = Aim(program, ask_of_outputs(1, unsafe), domain, confirm, how)
    return falsify_program(aim, budget, 0)


STEPS_ONLY = Blind(descent=Descent(restarts=4, steps=40), rounds=2, changes=0)
CHANGES_ONLY = Blind(descent=Descent(restarts=16, steps=0), rounds=20, changes=60)


@pytest.mark.parametrize("differentiable", [True, False])
@pytest.mark.parametrize(
    ("domain", "share", "gaps"),
    [(BOX, 0.9, False), (BALL, 0.6, False), (BALL, 0.6, True)],
    ids=["box", "ball", "ball with gaps"],
)
def test_steps_alone_come_near_the_greatest_output(
    domain: Domain, share: float, differentiable: bool, gaps: bool
) -> None:
    greatest = float(domain.support(SLOPES.unsqueeze(0)))
    program = Linear(differentiable=differentiable, gaps=gaps)
    assert attack(program, domain, share * greatest, STEPS_ONLY) is not None
    assert attack(program, domain, 1.01 * greatest, STEPS_ONLY) is None


def test_changes_alone_climb_far_above_random_points() -> None:
    # A random corner gives more than 4 deviations, 0.61 of the greatest output, once in 30,000.
    greatest = float(BOX.support(SLOPES.unsqueeze(0)))
    assert attack(Linear(differentiable=False), BOX, 0.7 * greatest, CHANGES_ONLY) is not None


def test_an_expired_budget_ends_it_after_one_batch() -> None:
    program = Linear(differentiable=True)
    assert attack(program, BOX, 1e9, STEPS_ONLY, Budget(0.0, 1 << 30)) is None
    assert program.runs <= STEPS_ONLY.descent.restarts


def test_little_memory_makes_small_batches() -> None:
    program = Linear(differentiable=True)
    program.bytes_at_a_point = 1 << 20
    attack(program, BOX, 1e9, STEPS_ONLY, Budget(0.0, 1 << 20))
    assert program.runs == 1
