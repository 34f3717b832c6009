"""Linear bounds of whole domains, against sampled points and exact minima."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.bounds.backward import backward, backward_neurons, backward_sides
from fgp_vnn.bounds.intervals import interval_step
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.lines import Lines
from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import Box
from tests.helpers.exact import TOLERANCE, least, polytope
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    output_rows,
    random_domain,
    random_network,
    sample,
)

kinds = pytest.mark.parametrize("kind", KINDS)
domain_kinds = pytest.mark.parametrize("domain_kind", DOMAINS)
seeds = st.integers(0, 10_000)
WIDTHS = (5, 4, 3)


@domain_kinds
@kinds
@pytest.mark.parametrize("worth", [(), None], ids=["intervals", "backward passes"])
@settings(max_examples=4)
@given(seed=seeds)
def test_root_bounds_hold_at_every_point(
    kind: str, domain_kind: str, worth: tuple[()] | None, seed: int
) -> None:
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, domain_kind, inputs=3)
    bounds = root_bounds(network, domain, worth=worth, budget=UNLIMITED)
    seen = network.preactivations(sample(domain, 60, seed))
    for z, lo, up in zip(seen[:-1], bounds.lower, bounds.upper, strict=True):
        assert bool((z.amin(0) >= lo - 1e-12).all())
        assert bool((z.amax(0) <= up + 1e-12).all())


@pytest.mark.parametrize("domain_kind", ["box", "l1"])
@kinds
def test_root_bounds_contain_the_exact_range(kind: str, domain_kind: str) -> None:
    for seed in range(3):
        network = random_network(seed, kind)
        domain = random_domain(seed, domain_kind)
        bounds = root_bounds(network, domain, budget=UNLIMITED)
        for j in range(3):
            lowest = least(network, polytope(domain), rows=[j], target=1)
            assert float(bounds.lower[1][0, j]) <= lowest + TOLERANCE


def test_first_layer_bounds_are_exact_for_a_box() -> None:
    network, domain = random_network(4), random_domain(4)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    for j in range(4):
        exact = least(network, polytope(domain), rows=[j], target=0)
        assert float(bounds.lower[0][0, j]) == pytest.approx(exact, abs=TOLERANCE)


@kinds
def test_a_backward_pass_never_loosens_the_intervals(kind: str) -> None:
    network = random_network(5, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(5, "box", inputs=3)
    loose, tight = (
        root_bounds(network, domain, worth=(), budget=UNLIMITED),
        root_bounds(network, domain, budget=UNLIMITED),
    )
    for a, b in zip(loose.lower, tight.lower, strict=True):
        assert bool((b >= a).all())
    for a, b in zip(loose.upper, tight.upper, strict=True):
        assert bool((b <= a).all())
    assert sum(int(m.sum()) for m in tight.unstable()) <= sum(
        int(m.sum()) for m in loose.unstable()
    )


@domain_kinds
@kinds
@settings(max_examples=6)
@given(seed=seeds)
def test_a_plain_bound_holds_at_every_point(kind: str, domain_kind: str, seed: int) -> None:
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, domain_kind, inputs=3)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    rows = output_rows(network)
    passed = backward(network, domain, len(WIDTHS), rows, bounds.lines())
    points = sample(domain, 60, seed)
    values = network(points) @ rows[0].T  # [points, rows]
    assert bool((values.amin(0) >= passed.least[0] - 1e-9).all())
    below = (points - domain.center) @ passed.weight[0].T + passed.constant[0]
    assert bool((values >= below - 1e-9).all())


def test_lines_enclose_the_relu() -> None:
    lower = torch.tensor([[-2.0, -1.0, 0.0, 1.0, -3.0, -1e-9]]).double()
    upper = torch.tensor([[1.0, 3.0, 2.0, 4.0, 0.0, 1e9]]).double()
    ((low, chord, intercept, _),) = LayerBounds((lower,), (upper,)).lines()
    for t in torch.linspace(0, 1, 21):
        z = lower + float(t) * (upper - lower)
        a = z.clamp(min=0)
        assert bool((low[0] * z <= a + 1e-9).all())
        assert bool((chord[0] * z + intercept[0] >= a - 1e-6).all())
    for z in (lower, upper):  # the chord is the best line: it touches at both ends
        torch.testing.assert_close(chord[0] * z + intercept[0], z.clamp(min=0))


def test_given_slopes_are_used_for_unstable_neurons_only() -> None:
    bounds = LayerBounds(
        (torch.tensor([[-1.0, 1.0, -2.0]]).double(),), (torch.tensor([[1.0, 2.0, -1.0]]).double(),)
    )
    alpha = torch.full((1, 1, 3), 0.25, dtype=torch.float64)
    (lines,) = bounds.lines([alpha])
    assert isinstance(lines, Lines)
    assert lines.low[0, 0].tolist() == [0.25, 1.0, 0.0]


@kinds
def test_batches_of_boxes_agree_with_one_at_a_time(kind: str) -> None:
    network = random_network(2, kind, inputs=3, widths=WIDTHS)
    boxes = [random_domain(seed, "box", inputs=3, size=0.3 * seed).box() for seed in range(1, 6)]
    batch = Box(torch.stack([b.lower for b in boxes]), torch.stack([b.upper for b in boxes]))
    bounds = root_bounds(network, batch, budget=UNLIMITED)
    rows = output_rows(network).expand(len(boxes), -1, -1)
    rounding = Rounding(network, batch, bounds)
    passed = backward(network, batch, 3, rows, bounds.lines(), rounding=rounding)
    for i, box in enumerate(boxes):
        alone = root_bounds(network, box, budget=UNLIMITED)
        one = backward(
            network,
            box,
            3,
            rows[:1],
            alone.lines(),
            rounding=Rounding(network, box, alone),
        )
        # A box may get a few stable neurons bounded for the sake of its companions.
        for whole, single in zip(bounds.lower, alone.lower, strict=True):
            assert bool((whole[i] >= single[0] - 1e-9).all())
        assert bool((passed.least[i] >= one.least[0] - 1e-9).all())
        points = sample(box, 60, i)
        assert bool(((network(points) @ rows[0].T).amin(0) >= passed.least[i]).all())


@kinds
def test_hidden_layers_can_be_targets(kind: str) -> None:
    network = random_network(8, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(8, "box", inputs=3)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    z = network.preactivations(sample(domain))[1]
    eye = torch.eye(4, dtype=torch.float64)
    rows = torch.cat([eye, -eye]).unsqueeze(0)
    below = backward(network, domain, 1, rows, bounds.lines()).least[0]
    assert bool((z.amin(0) >= below[:4] - 1e-12).all())
    assert bool((z.amax(0) <= -below[4:] + 1e-12).all())


@kinds
@pytest.mark.parametrize("target", [0, 1, 2])
def test_bounds_of_single_neurons_and_sides_are_those_of_unit_rows(kind: str, target: int) -> None:
    network = random_network(8, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(8, "l2", inputs=3)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    asked = network, domain, target
    lines, rounding = bounds.lines(), Rounding(network, domain, bounds)
    unit = torch.eye(WIDTHS[target], dtype=torch.float64)
    rows = torch.cat([unit, -unit]).unsqueeze(0)
    exact = backward(*asked, rows, lines, rounding=rounding).least
    neurons = torch.tensor([[2, 0]])
    lower, upper = backward_neurons(*asked, neurons, lines, rounding=rounding)
    both = torch.cat([neurons, neurons + len(unit)], -1)
    torch.testing.assert_close(torch.cat([lower, -upper], 1), exact.gather(-1, both))
    sides = torch.arange(2 * len(unit)).flip(0).unsqueeze(0)
    least = backward_sides(*asked, sides, lines, rounding=rounding)
    torch.testing.assert_close(least, exact.flip(-1))


def test_the_rounding_error_of_a_side_is_subtracted() -> None:
    class Rough(Rounding):
        def of_neurons(self, target: int, neurons: Tensor) -> Tensor:
            return super().of_neurons(target, neurons) + 1

    network = random_network(8, "chain", inputs=3, widths=WIDTHS)
    domain = random_domain(8, "l2", inputs=3)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    sides, least = torch.arange(2 * WIDTHS[1]).unsqueeze(0), list[Tensor]()
    for kind in (Rounding, Rough):
        rounding = kind(network, domain, bounds)
        least.append(backward_sides(network, domain, 1, sides, bounds.lines(), rounding=rounding))
    assert bool((least[1] <= least[0] - 1).all()) and bool(least[1].isfinite().all())


def test_prior_bounds_are_never_loosened() -> None:
    for seed in range(8):
        network = random_network(seed, KINDS[seed % 3], inputs=3, widths=WIDTHS)
        domain = random_domain(seed, "box", inputs=3)
        part = Box(domain.center - 0.3 * domain.box().radius, domain.box().upper)
        prior = root_bounds(network, domain, budget=UNLIMITED)
        both = root_bounds(network, part, prior=prior, budget=UNLIMITED)
        z = network.preactivations(sample(part, 200, seed))[:-1]
        for k, v in enumerate(z):
            assert bool((v >= both.lower[k] - 1e-12).all() and (v <= both.upper[k] + 1e-12).all())
            assert bool((both.lower[k] >= prior.lower[k]).all())
            assert bool((both.upper[k] <= prior.upper[k]).all())


def test_intervals_of_a_map_that_reads_several_layers_hold() -> None:
    network = random_network(1, "residual", inputs=3, widths=WIDTHS)
    domain = random_domain(1, "l1", inputs=3)
    bounds = root_bounds(network, domain, budget=UNLIMITED)
    lower, upper = interval_step(network, domain, bounds, 3)
    y = network(sample(domain))
    assert bool((y >= lower).all()) and bool((y <= upper).all())
