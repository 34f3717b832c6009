"""Steps that aim at 0, and batches that shrink while they are worked on."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.multipliers import State
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.slopes import Ascended, Rows, ascend, plain_multipliers
from fgp_vnn.bounds.stepping import Reaching, Rise
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Dense
from fgp_vnn.strategy import Ascent
from tests.helpers.random_networks import random_domain, random_network, sample

AIMED = Ascent(steps=6, aim=0.3)
ROOM = 0.02  # of a row's range, between what is asked and what its values reach


def rows_of(seed: int, count: int = 24) -> Rows:
    """Bundles with random signs of a network whose output is nearly safe."""
    network = random_network(seed, inputs=4, widths=(12, 10))
    domain: Domain = random_domain(seed, "box", inputs=4, size=1.5)
    source = torch.Generator().manual_seed(seed)
    signs = [torch.randint(-1, 2, (count, n), generator=source) for n in network.widths]
    signs = [s.to(torch.int8) for s in signs]
    y = network(sample(domain, 2000, seed))[:, 0]
    low = float(y.min()) - ROOM * float(y.max() - y.min())
    output = network.output
    assert isinstance(output, Dense)
    network = replace(network, output=replace(output, bias=output.bias - low))
    bounds = root_bounds(network, domain, budget=UNLIMITED).within(signs)
    upper = tuple(map(torch.maximum, bounds.lower, bounds.upper))
    bounds = LayerBounds(bounds.lower, upper)
    rows = torch.eye(2, dtype=torch.float64)[:1].expand(count, -1, -1)
    return Rows(network, domain, 2, rows, bounds, signs)


def raised(asked: Rows, ascent: Ascent) -> Ascended:
    begin = plain_multipliers(asked.rows, asked.bounds)
    return ascend(asked, begin=begin, ascent=ascent, done=lambda least: False)


def closed(asked: Rows, ascent: Ascent) -> Tensor:
    return raised(asked, ascent).least.squeeze(-1) > 0


def test_a_step_reaches_its_target_where_the_bound_is_linear() -> None:
    """The target is 0, and a part of what is lacking beyond it; multipliers count in their size."""
    slope = torch.tensor([[[0.03, -0.02]], [[0.0, 0.01]]])
    push = torch.tensor([[[0.5]], [[-0.25]]])
    sizes = torch.tensor([[[2.0]], [[0.1]]])
    state = State(torch.full((2, 1, 2), 0.5), torch.ones(2, 1, 1), None)
    least = torch.tensor([[-0.001], [-0.0001]])
    after = Reaching(AIMED, state).next(state, Rise(slope, push, sizes), least)
    risen = (slope * (after.alpha - 0.5)).sum(-1) + (push * (after.beta - 1)).sum(-1)
    torch.testing.assert_close(risen, -1.3 * least, rtol=1e-3, atol=0)


@pytest.mark.parametrize("lacking", [0.5, torch.inf])
def test_a_bound_that_nothing_raises_keeps_its_slopes_and_can_rise_later(lacking: float) -> None:
    state = State(torch.full((1, 1, 2), 0.5), torch.zeros(1, 1, 1), None)
    flat = Rise(torch.zeros(1, 1, 2), torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    steps = Reaching(AIMED, state)
    after = steps.next(state, flat, torch.tensor([[-lacking]]))
    assert after.alpha.equal(state.alpha) and after.beta.equal(state.beta)
    later = steps.next(after, Rise(torch.ones(1, 1, 2), *flat[1:]), torch.tensor([[-0.5]]))
    assert bool(later.alpha.isfinite().all())
    assert lacking == torch.inf or bool((later.alpha > state.alpha).all())


def test_a_bound_above_its_target_stays_where_it_is() -> None:
    state = State(torch.full((1, 1, 2), 0.5), torch.zeros(1, 1, 1), None)
    rise = Rise(torch.ones(1, 1, 2), torch.ones(1, 1, 1), torch.ones(1, 1, 1))
    after = Reaching(AIMED, state).next(state, rise, torch.tensor([[0.1]]))
    assert after.alpha.equal(state.alpha) and after.beta.equal(state.beta)


def test_steps_with_an_aim_close_more_bundles_than_as_many_of_adam() -> None:
    aimed, plain = 0, 0
    for seed in range(6):
        asked = rows_of(seed)
        aimed += int(closed(asked, AIMED).sum())
        plain += int(closed(asked, Ascent(steps=6, rate=0.2, decay=0.9, beta_rate=0.5)).sum())
    assert aimed > plain


@pytest.mark.parametrize("domain_kind", ["one box", "a box each"])
def test_what_is_closed_early_is_left_out_and_the_others_do_not_notice(domain_kind: str) -> None:
    left_out = 0
    for seed in range(6):
        asked = rows_of(seed)
        if domain_kind == "a box each":
            box = asked.domain.box()
            wide = Box(*(side.expand(len(asked.rows), -1) for side in (box.lower, box.upper)))
            asked = asked._replace(domain=wide)
        whole, looked = (raised(asked, replace(AIMED, looks=looks)) for looks in (False, True))
        done = (looked.least > 0).squeeze(-1)
        assert done.equal((whole.least > 0).squeeze(-1))
        torch.testing.assert_close(looked.least[~done], whole.least[~done])
        left_out += int((looked.least[done] < whole.least[done]).sum())
        assert bool((looked.least <= whole.least + 1e-9 * whole.least.abs()).all())
    assert left_out
