"""Smooth networks: bounds and verdicts against dense sampling, with attacks off."""

from __future__ import annotations

import pytest
import torch

import fgp_vnn
from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.base.robustness import Norm
from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.slopes import Rows, ascend, plain_multipliers
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.engine.settings import Settings
from fgp_vnn.network.activations.sigmoids import SIGMOID
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.strategy import Ascent
from tests.helpers.smooth_networks import sampled, smooth_case, smooth_network
from tests.helpers.solving import solve
from tests.helpers.ticking import Ticking


def _never(least: torch.Tensor) -> bool:
    return False


@pytest.mark.parametrize("part", range(6))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_bounds_of_smooth_networks_hold_at_sampled_points(part: int, dtype: torch.dtype) -> None:
    for number in range(20 * part, 20 * part + 3):
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


def test_no_verdict_on_a_smooth_network_contradicts_a_sample() -> None:
    """The usual engine begins with linear bounds, so that these are tried as well."""
    proved = 0
    for number in (1000, 1001, 1020, 1021):
        case = smooth_case(number)
        verdict = solve(case.query, lambda points: None, Settings(attack=False), Ticking(100))
        proved += verdict.status == "unsat"
        if case.seen < -1e-9:
            assert verdict.status != "unsat", (number, case.names)
            assert sum(verdict.statistics.get(part, 0) for part in ("bundles", "boxes")), number
    assert proved


@pytest.mark.slow
def test_slopes_of_smooth_networks_only_raise_bounds() -> None:
    raised = 0
    for number in range(6):
        network, box, _ = smooth_network(number)
        bounds = root_bounds(network, box, budget=UNLIMITED)
        rows = torch.ones(1, 1, 1, dtype=torch.float64)
        depth = len(network.layers)
        first = plain_multipliers(rows, bounds)
        plain = backward(network, box, depth, rows, bounds.lines(first.alpha)).least
        best = ascend(Rows(network, box, depth, rows, bounds), ascent=Ascent(), done=_never)
        if bool(plain.isfinite()):
            assert float(best.least) >= float(plain) - 1e-6 * (1 + abs(float(plain)))
            raised += float(best.least) > float(plain) + 1e-6
    assert raised > 1


def _classifier() -> Network:
    random = torch.Generator().manual_seed(0)
    first, last = (
        Dense((k,), (torch.randn(n, m, generator=random).double(),), torch.zeros(n).double())
        for k, (n, m) in enumerate(((5, 3), (2, 5)))
    )
    return Network((first,), last, 3, (SIGMOID,))


def test_what_needs_regions_refuses_smooth_networks_by_name() -> None:
    network = _classifier()
    x = [0.1, 0.2, 0.3]
    walked = fgp_vnn.certify(network, x, epsilon=0.5, norm="linf", engine="walk")
    assert isinstance(walked, fgp_vnn.Robustness)
    assert walked.status in ("unknown", "not_robust")
    assert "Sigmoid" in walked.reason
    with pytest.raises(UnsupportedError, match="Sigmoid"):
        fgp_vnn.radius(network, x, engine="walk")


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_smooth_classifiers_are_certified(norm: Norm) -> None:
    network = _classifier()
    found = fgp_vnn.certify(network, [0.1, 0.2, 0.3], epsilon=1e-3, norm=norm)
    assert isinstance(found, fgp_vnn.Robustness)
    assert found.status == "robust"


def test_bounds_of_other_activations_are_no_bounds_of_a_network() -> None:
    network, box, _ = smooth_network(3)
    bounds = root_bounds(network, box, budget=UNLIMITED)
    if network.piecewise_linear:
        pytest.skip("drawn without a smooth layer")
    with pytest.raises(AssertionError, match="other activations"):
        Rounding(network, box, LayerBounds(bounds.lower, bounds.upper))
