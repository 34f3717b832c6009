"""Smooth networks: bounds and verdicts against dense sampling, with attacks off."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.bounds.backward import LayerBounds, Rounding, backward, root_bounds
from fgp_vnn.bounds.slopes import Rows, ascend, start
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.engine.settings import Settings
from fgp_vnn.strategy import Ascent
from tests.helpers.smooth_networks import sampled, smooth_case, smooth_network
from tests.helpers.solving import solve


def _never(least: torch.Tensor) -> bool:
    return False


@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_bounds_of_smooth_networks_hold_at_sampled_points(part: int, dtype: torch.dtype) -> None:
    for number in range(20 * part, 20 * part + 20):
        exact, box, names = smooth_network(number)
        network, domain = exact.to("cpu", dtype), box.to("cpu", dtype)
        bounds = root_bounds(network, domain, budget=UNLIMITED)
        points = sampled(exact, box, 2000, number)
        slack = 1e-9 if dtype == torch.float64 else 0.0  # the float64 sample itself is rounded
        for k, z in enumerate(exact.preactivations(points)[:-1]):
            room = slack * (1 + z.abs())
            z = torch.where(z.isfinite(), z, torch.nan)
            assert not bool((z < bounds.lower[k].double() - room).any()), (number, names, k)
            assert not bool((z > bounds.upper[k].double() + room).any()), (number, names, k)
        rows = torch.ones(1, 1, 1, dtype=dtype)
        rounding = Rounding(network, domain, bounds)
        depth = len(network.layers)
        plain = backward(network, domain, depth, rows, bounds.lines(), rounding=rounding).least
        asked = Rows(network, domain, depth, rows, bounds)
        better = ascend(asked, ascent=Ascent(steps=5), done=_never).least
        y = exact(points)
        least = float(y[y.isfinite()].min())
        for found in (plain, better):
            assert float(found) <= least + slack * (1 + abs(least)), (number, names)


@pytest.mark.parametrize("part", range(10))
def test_no_verdict_on_a_smooth_network_contradicts_a_sample(part: int) -> None:
    for number in range(1000 + 20 * part, 1000 + 20 * part + 20):
        case = smooth_case(number)
        for engine in ("auto", "bounds"):
            settings = Settings(engine=engine, attack=False)
            verdict = solve(case.query, lambda points: None, settings, Budget.of(0.2, None))
            assert not (verdict.status == "unsat" and case.seen < -1e-9), (number, case.names)


def test_slopes_of_smooth_networks_only_raise_bounds() -> None:
    raised = 0
    for number in range(40):
        network, box, _ = smooth_network(number)
        bounds = root_bounds(network, box, budget=UNLIMITED)
        rows = torch.ones(1, 1, 1, dtype=torch.float64)
        depth = len(network.layers)
        first = start(network, rows, bounds)
        plain = backward(network, box, depth, rows, bounds.lines(first.alpha)).least
        best = ascend(Rows(network, box, depth, rows, bounds), ascent=Ascent(), done=_never)
        if bool(plain.isfinite()):
            assert float(best.least) >= float(plain) - 1e-6 * (1 + abs(float(plain)))
            raised += float(best.least) > float(plain) + 1e-6
    assert raised > 5


def test_bounds_of_other_activations_are_no_bounds_of_a_network() -> None:
    network, box, _ = smooth_network(3)
    bounds = root_bounds(network, box, budget=UNLIMITED)
    if network.piecewise_linear:
        pytest.skip("drawn without a smooth layer")
    with pytest.raises(AssertionError, match="other activations"):
        Rounding(network, box, LayerBounds(bounds.lower, bounds.upper))
