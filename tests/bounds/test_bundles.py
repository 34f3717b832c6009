"""Linear bounds of bundles: neurons that are closed, slopes and multipliers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import Dense, Network
from tests.bounds.test_backward import WIDTHS, domain_kinds, kinds, seeds
from tests.helpers.exact import TOLERANCE, least, polytope
from tests.helpers.random_networks import (
    generator,
    output_rows,
    random_domain,
    random_network,
    sample,
)


def signs_at(network: Network, point: Tensor, seed: int, *, part: float = 0.5) -> list[Tensor]:
    """Signs [1, n_k] of a bundle that holds the point: about `part` of the neurons are closed."""
    source = generator(seed)
    result = []
    for z in network.preactivations(point.unsqueeze(0))[:-1]:
        closed = torch.rand(z.shape, generator=source) < part
        result.append(torch.where(closed & (z != 0), z.sign(), torch.zeros_like(z)).to(torch.int8))
    return result


def in_bundle(network: Network, points: Tensor, signs: Sequence[Tensor]) -> Tensor:
    before = network.preactivations(points)[:-1]
    return torch.stack([(z * s >= 0).all(-1) for z, s in zip(before, signs, strict=True)]).all(0)


def random_slopes(bounds: LayerBounds, rows: int, seed: int) -> list[Tensor]:
    source = generator(seed)
    return [
        torch.rand(len(lo), rows, lo.shape[-1], generator=source, dtype=lo.dtype)
        for lo in bounds.lower
    ]


@domain_kinds
@kinds
@settings(max_examples=6)
@given(seed=seeds)
def test_any_slopes_and_multipliers_give_a_bound_of_the_bundle(
    kind: str, domain_kind: str, seed: int
) -> None:
    """Soundness for every alpha in [0, 1] and beta >= 0: the bound may be bad, never false."""
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, domain_kind, inputs=3)
    points = sample(domain, 120, seed)
    signs = signs_at(network, points[seed % len(points)], seed)
    bounds = root_bounds(network, domain, budget=UNLIMITED).within(signs)
    rows = output_rows(network)
    alpha = random_slopes(bounds, rows.shape[1], seed)
    beta = [
        2 * s.unsqueeze(-2) * a
        for s, a in zip(signs, random_slopes(bounds, rows.shape[1], seed + 1), strict=True)
    ]
    rounding = Rounding(network, domain, bounds)
    passed = backward(
        network, domain, len(WIDTHS), rows, bounds.lines(alpha), beta=beta, rounding=rounding
    )
    inside = points[in_bundle(network, points, signs)]
    assert len(inside) > 0
    assert bool(((network(inside) @ rows[0].T).amin(0) >= passed.least[0]).all())


def test_the_multiplier_of_the_wrong_sign_would_be_unsound() -> None:
    """The sign convention itself: relu(x) on x <= 0 is 0, and beta cannot lift it above."""
    one = torch.ones(1, 1, dtype=torch.float64)
    layer = Dense((0,), (one,), torch.zeros(1, dtype=torch.float64))
    network = Network((layer,), Dense((1,), (one,), torch.zeros(1, dtype=torch.float64)), 1)
    domain = Box(-one[0], one[0])
    off = [torch.full((1, 1), -1, dtype=torch.int8)]
    bounds = root_bounds(network, domain, budget=UNLIMITED).within(off)
    rows = one.unsqueeze(0)

    def bound(signed: float) -> float:
        beta = [torch.full((1, 1, 1), signed, dtype=torch.float64)]
        return float(backward(network, domain, 1, rows, bounds.lines(), beta=beta).least)

    assert bound(-1.0) <= 0  # s = -1 times beta = 1: z <= 0 is used as it is meant
    assert abs(bound(0.0)) <= 1e-300


@kinds
@pytest.mark.parametrize("domain_kind", ["box", "l1"])
def test_bounds_of_a_bundle_are_below_its_exact_minimum(kind: str, domain_kind: str) -> None:
    for seed in range(3):
        network = random_network(seed, kind)
        domain = random_domain(seed, domain_kind)
        signs = signs_at(network, sample(domain, 20, seed)[7], seed)
        bounds = root_bounds(network, domain, budget=UNLIMITED).within(signs)
        rows = torch.eye(2, dtype=torch.float64).unsqueeze(0)
        beta = [s.unsqueeze(-2) * 0.3 for s in signs]
        for multipliers in (None, beta):
            passed = backward(network, domain, 2, rows, bounds.lines(), beta=multipliers)
            for j in range(2):
                exact = least(
                    network, polytope(domain), rows=[j], signs=[s[0].double() for s in signs]
                )
                assert float(passed.least[0, j]) <= exact + TOLERANCE


def test_the_bound_of_a_region_with_every_sign_closed_is_that_of_its_linear_function() -> None:
    network, domain = random_network(9), random_domain(9)
    points = sample(domain, 50, 9)
    signs = signs_at(network, points[3], 0, part=2.0)
    bounds = root_bounds(network, domain, budget=UNLIMITED).within(signs)
    assert not any(bool(mask.any()) for mask in bounds.unstable())
    rows = output_rows(network)
    passed = backward(network, domain, 2, rows, bounds.lines())
    inside = points[in_bundle(network, points, signs)]
    below = (inside - domain.center) @ passed.weight[0].T + passed.constant[0]
    torch.testing.assert_close(network(inside) @ rows[0].T, below)


def test_closing_neurons_cuts_off_one_side_of_their_bounds() -> None:
    lower, upper = torch.tensor([[-1.0, -1.0, -1.0]]), torch.tensor([[2.0, 2.0, 2.0]])
    cut = LayerBounds((lower,), (upper,)).within([torch.tensor([[1, -1, 0]])])
    assert cut.lower[0].tolist() == [[0.0, -1.0, -1.0]]
    assert cut.upper[0].tolist() == [[2.0, 0.0, 2.0]]
    assert cut.unstable()[0].tolist() == [[False, False, True]]
    assert cut.sizes()[0].tolist() == [[2.0, 1.0, 2.0]]


@kinds
def test_batches_of_bundles_agree_with_one_at_a_time(kind: str) -> None:
    network = random_network(6, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(6, "l2", inputs=3)
    root = root_bounds(network, domain, budget=UNLIMITED)
    points = sample(domain, 20, 6)
    each = [signs_at(network, point, i) for i, point in enumerate(points[:6])]
    together = root.within([torch.cat(layer) for layer in zip(*each, strict=True)])
    rows = output_rows(network)
    batch = backward(
        network,
        domain,
        3,
        rows.expand(6, -1, -1),
        together.lines(),
        rounding=Rounding(network, domain, together),
    )
    for i, signs in enumerate(each):
        alone = root.within(signs)
        rounding = Rounding(network, domain, alone)
        one = backward(network, domain, 3, rows, alone.lines(), rounding=rounding)
        torch.testing.assert_close(batch.least[i], one.least[0])
        torch.testing.assert_close(batch.weight[i], one.weight[0])
