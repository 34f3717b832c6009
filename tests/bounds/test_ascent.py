"""Optimised bounds: valid, never worse than where they start, and their gradients right."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fgp_vnn.bounds.backward import backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.slopes import Ascended, Multipliers, Rows, ascend, carry, plain_multipliers
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Network
from fgp_vnn.strategy import Ascent
from tests.helpers.exact import TOLERANCE, least, polytope
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    output_rows,
    random_domain,
    random_network,
    sample,
)

WIDTHS = (5, 4, 3)
SHORT = Ascent(steps=8)
AIMED = Ascent(steps=8, aim=0.3)
both_steps = pytest.mark.parametrize("ascent", [SHORT, AIMED], ids=["adam", "aimed"])
kinds = pytest.mark.parametrize("kind", KINDS)


def never(least_: Tensor) -> bool:
    return False


def closed_signs(network: Network, point: Tensor) -> list[Tensor]:
    """Every other neuron [1, n_k] closed as the point has it."""
    result = []
    for z in network.preactivations(point.unsqueeze(0))[:-1]:
        signs = z.sign().to(torch.int8)
        signs[:, ::2] = 0
        result.append(signs)
    return result


def raise_bounds(
    network: Network,
    domain: Domain,
    bounds: LayerBounds,
    signs: list[Tensor] | None = None,
    *,
    begin: Multipliers | None = None,
    ascent: Ascent = SHORT,
) -> tuple[Tensor, Ascended]:
    """The proved plain bounds of the outputs and their negatives, and the ascended ones."""
    rows = output_rows(network).expand(len(bounds.lower[0]), -1, -1)
    rounding = Rounding(network, domain, bounds)
    target = len(network.layers)
    plain = backward(network, domain, target, rows, bounds.lines(), rounding=rounding)
    asked = Rows(network, domain, target, rows, bounds, signs)
    raised = ascend(asked, begin=begin, ascent=ascent, done=never)
    return plain.least, raised


@pytest.mark.parametrize("domain_kind", DOMAINS)
@both_steps
@kinds
def test_it_never_falls_below_the_plain_bound_and_stays_valid(
    kind: str, ascent: Ascent, domain_kind: str
) -> None:
    seed = DOMAINS.index(domain_kind) + len(DOMAINS) * (ascent is AIMED)
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, domain_kind, inputs=3)
    points = sample(domain, 100, seed)
    signs = closed_signs(network, points[seed % 100])
    root = root_bounds(network, domain, budget=UNLIMITED)
    for bounds, given_signs in ((root, None), (root.within(signs), signs)):
        plain, raised = raise_bounds(network, domain, bounds, given_signs, ascent=ascent)
        assert bool((raised.least >= plain - 1e-9 * plain.abs().clamp(min=1)).all())
        inside = points
        if given_signs is not None:
            before = network.preactivations(points)[:-1]
            pairs = zip(before, given_signs, strict=True)
            inside = points[torch.stack([(z * s >= 0).all(-1) for z, s in pairs]).all(0)]
            assert len(inside) > 0
        y = network(inside)
        values = torch.cat([y, -y], -1)
        assert bool((values.amin(0) >= raised.least[0]).all())


@kinds
def test_optimised_bounds_stay_below_the_exact_minimum_and_come_nearer(kind: str) -> None:
    gained = 0.0
    for seed in range(4):
        network, domain = random_network(seed, kind), random_domain(seed)
        signs = closed_signs(network, sample(domain, 20, seed)[5])
        bounds = root_bounds(network, domain, budget=UNLIMITED).within(signs)
        plain, raised = raise_bounds(network, domain, bounds, signs, ascent=Ascent(steps=30))
        for j in range(network.outputs):
            closed = [s[0].double() for s in signs]
            exact = least(network, polytope(domain), rows=[j], signs=closed)
            assert float(raised.least[0, j]) <= exact + TOLERANCE
            gained += float(raised.least[0, j] - plain[0, j])
    # The degenerate networks have too few neurons left open to gain anything.
    assert gained > 1e-3 or kind == "degenerate"


@pytest.mark.parametrize(
    "ascent", [Ascent(steps=15, rate=2.0), replace(AIMED, steps=15, aim=9.0)], ids=["adam", "aimed"]
)
def test_multipliers_stay_where_they_are_sound(ascent: Ascent) -> None:
    for seed in range(3, 9):
        network, domain = random_network(seed, widths=WIDTHS), random_domain(seed)
        signs = closed_signs(network, domain.center)
        bounds = root_bounds(network, domain, budget=UNLIMITED).within(signs)
        _, raised = raise_bounds(network, domain, bounds, signs, ascent=ascent)
        for alpha, beta in zip(raised.multipliers.alpha, raised.multipliers.beta, strict=True):
            assert bool(((alpha >= 0) & (alpha <= 1)).all())
            assert bool((beta >= 0).all())


@kinds
@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_formulas_are_those_of_autograd(kind: str, seed: int) -> None:
    """d bound / d alpha = max(A, 0) z and d bound / d beta = -s z, at the minimiser."""
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, "l2", inputs=3)
    signs = closed_signs(network, sample(domain, 9, seed)[3])
    bounds = root_bounds(network, domain, budget=UNLIMITED).within(signs)
    rows = torch.eye(2, dtype=torch.float64).unsqueeze(0)
    source = torch.Generator().manual_seed(seed)
    shapes = [(1, 2, n) for n in network.widths]
    alpha = [torch.rand(s, generator=source, dtype=torch.float64) for s in shapes]
    beta = [torch.rand(s, generator=source, dtype=torch.float64) for s in shapes]
    for tensor in (*alpha, *beta):
        tensor.requires_grad_()
    signed = [s.unsqueeze(-2) * b for s, b in zip(signs, beta, strict=True)]
    lines = bounds.lines(alpha)
    passed = backward(network, domain, len(WIDTHS), rows, lines, beta=signed)
    checked = 0
    slopes = torch.autograd.grad(passed.least.sum(), [*alpha, *beta], materialize_grads=True)
    with torch.no_grad():
        points = domain.maximiser(-passed.weight)
        values, _, _ = carry(network, len(WIDTHS), points, lines, passed.coefficients)
        for k, unstable in enumerate(bounds.unstable()):
            if k + 1 not in values:
                continue
            checked += 1
            z, coefficient = values[k + 1], passed.coefficients[k + 1]
            expected = coefficient.clamp(min=0) * z * unstable.unsqueeze(-2)
            torch.testing.assert_close(slopes[k], expected, rtol=1e-9, atol=1e-12)
            expected = -signs[k].unsqueeze(-2) * z
            torch.testing.assert_close(slopes[3 + k], expected, rtol=1e-9, atol=1e-12)
    assert checked >= 2


def test_a_carried_minimiser_has_the_value_of_the_bound() -> None:
    network, domain = random_network(5, "residual", widths=WIDTHS), random_domain(5, "l1")
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    rows = torch.eye(2, dtype=torch.float64).unsqueeze(0)
    lines = bounds.lines()
    passed = backward(network, domain, 3, rows, lines)
    points = domain.maximiser(-passed.weight)
    at = ((points - domain.center) * passed.weight).sum(-1) + passed.constant
    torch.testing.assert_close(at, passed.least)
    z, _, arrived = carry(network, 3, points, lines, passed.coefficients)
    torch.testing.assert_close((arrived * rows).sum(-1), passed.least)
    low, chord, intercept, _ = lines[2]
    last = torch.where(passed.coefficients[3] >= 0, low * z[3], chord * z[3] + intercept)
    layers = [points]
    for k in (1, 2):
        low, chord, intercept, _ = lines[k - 1]
        layers.append(
            torch.where(passed.coefficients[k] >= 0, low * z[k], chord * z[k] + intercept)
        )
    y = network.output([*layers, last])  # [1, rows, outputs]
    torch.testing.assert_close((y * rows).sum(-1), passed.least)


def test_a_warm_start_is_where_the_ascent_begins() -> None:
    network, domain = random_network(6, widths=WIDTHS), random_domain(6)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    _, first = raise_bounds(network, domain, bounds, ascent=Ascent(steps=15))
    _, again = raise_bounds(
        network, domain, bounds, begin=first.multipliers, ascent=Ascent(steps=0)
    )
    assert bool((again.least >= first.least - 1e-12).all())


def test_without_steps_it_is_the_plain_bound() -> None:
    network, domain = random_network(7, widths=WIDTHS), random_domain(7)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    plain, raised = raise_bounds(network, domain, bounds, ascent=Ascent(steps=0))
    torch.testing.assert_close(raised.least, plain, rtol=0, atol=0)
    rows = torch.zeros(1, 4, 2, dtype=torch.float64)
    begin = plain_multipliers(rows, bounds)
    assert all(not bool(beta.any()) for beta in begin.beta)


def test_it_stops_when_it_is_told_to() -> None:
    network, domain = random_network(8, widths=WIDTHS), random_domain(8)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    rows = torch.eye(2, dtype=torch.float64).unsqueeze(0)
    calls: list[Tensor] = []

    def done(least_: Tensor) -> bool:
        calls.append(least_)
        return len(calls) == 3

    ascend(Rows(network, domain, 3, rows, bounds), ascent=Ascent(steps=50), done=done)
    assert len(calls) == 3


def test_a_batch_of_boxes_agrees_with_one_at_a_time() -> None:
    network = random_network(2, "residual", inputs=3, widths=WIDTHS)
    boxes = [random_domain(seed, "box", inputs=3).box() for seed in range(3)]
    batch = Box(torch.stack([b.lower for b in boxes]), torch.stack([b.upper for b in boxes]))
    bounds = root_bounds(network, batch, budget=UNLIMITED)
    _, together = raise_bounds(network, batch, bounds)
    for i, box in enumerate(boxes):
        own = LayerBounds(
            tuple(lo[i : i + 1] for lo in bounds.lower), tuple(up[i : i + 1] for up in bounds.upper)
        )
        _, alone = raise_bounds(network, box, own)
        torch.testing.assert_close(together.least[i], alone.least[0])


@pytest.mark.parametrize("offset", [0.0, 1e3])
@kinds
def test_steps_in_single_precision_give_bounds_that_are_proved_in_full(
    kind: str, offset: float
) -> None:
    """Far from 0 single precision is off by more than the domain is wide."""
    for seed in range(4):
        network = random_network(seed, kind, inputs=3, widths=WIDTHS)
        box = random_domain(seed, "box", inputs=3, size=1e-4 if offset else 1.0).box()
        domain = Box(box.lower + offset, box.upper + offset)
        bounds = root_bounds(network, domain, budget=UNLIMITED)
        raised = ascend(
            Rows(network, domain, 3, output_rows(network), bounds),
            coarse=(network.to("cpu", torch.float32), domain.to("cpu", torch.float32)),
            ascent=SHORT,
            done=never,
        )
        assert raised.least.dtype == torch.float64
        for alpha, beta in zip(raised.multipliers.alpha, raised.multipliers.beta, strict=True):
            assert bool(((alpha >= 0) & (alpha <= 1)).all()) and bool((beta >= 0).all())
        y = network(sample(domain, 100, seed))
        slack = torch.cat([y, -y], -1).amin(0) - raised.least[0]
        assert bool((slack >= -1e-9 * (1 + offset)).all())
        assert bool(domain.contains(raised.points).all())
