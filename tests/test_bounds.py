"""Linear bounds against sampled points, exact minima and rational arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
import torch
from exact import TOLERANCE, least, polytope
from hypothesis import given, settings
from hypothesis import strategies as st
from random_networks import (
    DOMAINS,
    KINDS,
    exact_preactivations,
    generator,
    normal,
    random_domain,
    random_network,
    random_rows,
    rationals,
    sample,
)
from torch import Tensor

from fgp_vnn.bounds import (
    LayerBounds,
    Lines,
    Rounding,
    backward,
    backward_neurons,
    interval_step,
    root_bounds,
)
from fgp_vnn.domain import Box, Domain
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import ask

kinds = pytest.mark.parametrize("kind", KINDS)
domain_kinds = pytest.mark.parametrize("domain_kind", DOMAINS)
seeds = st.integers(0, 10_000)
WIDTHS = (5, 4, 3)


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


def output_rows(network: Network) -> Tensor:
    eye = torch.eye(network.outputs, dtype=network.dtype)
    return torch.cat([eye, -eye]).unsqueeze(0)


@domain_kinds
@kinds
@pytest.mark.parametrize("backward_pass", [False, True])
@settings(max_examples=20)
@given(seed=seeds)
def test_root_bounds_hold_at_every_point(
    kind: str, domain_kind: str, backward_pass: bool, seed: int
) -> None:
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, domain_kind, inputs=3)
    bounds = root_bounds(network, domain, backward_pass=backward_pass)
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
        bounds = root_bounds(network, domain)
        for j in range(3):
            lowest = least(network, polytope(domain), rows=[j], target=1)
            assert float(bounds.lower[1][0, j]) <= lowest + TOLERANCE


def test_first_layer_bounds_are_exact_for_a_box() -> None:
    network, domain = random_network(4), random_domain(4)
    bounds = root_bounds(network, domain)
    for j in range(4):
        exact = least(network, polytope(domain), rows=[j], target=0)
        assert float(bounds.lower[0][0, j]) == pytest.approx(exact, abs=TOLERANCE)


@kinds
def test_a_backward_pass_never_loosens_the_intervals(kind: str) -> None:
    network = random_network(5, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(5, "box", inputs=3)
    loose, tight = root_bounds(network, domain, backward_pass=False), root_bounds(network, domain)
    for a, b in zip(loose.lower, tight.lower, strict=True):
        assert bool((b >= a).all())
    for a, b in zip(loose.upper, tight.upper, strict=True):
        assert bool((b <= a).all())
    assert sum(int(m.sum()) for m in tight.unstable()) <= sum(
        int(m.sum()) for m in loose.unstable()
    )


@domain_kinds
@kinds
@settings(max_examples=20)
@given(seed=seeds)
def test_a_plain_bound_holds_at_every_point(kind: str, domain_kind: str, seed: int) -> None:
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, domain_kind, inputs=3)
    bounds = root_bounds(network, domain)
    rows = output_rows(network)
    passed = backward(network, domain, len(WIDTHS), rows, bounds.lines())
    points = sample(domain, 60, seed)
    values = network(points) @ rows[0].T  # [points, rows]
    assert bool((values.amin(0) >= passed.least[0] - 1e-9).all())
    below = (points - domain.center) @ passed.weight[0].T + passed.constant[0]
    assert bool((values >= below - 1e-9).all())


@domain_kinds
@kinds
@settings(max_examples=20)
@given(seed=seeds)
def test_any_slopes_and_multipliers_give_a_bound_of_the_bundle(
    kind: str, domain_kind: str, seed: int
) -> None:
    """Soundness for every alpha in [0, 1] and beta >= 0: the bound may be bad, never false."""
    network = random_network(seed, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(seed, domain_kind, inputs=3)
    points = sample(domain, 120, seed)
    signs = signs_at(network, points[seed % len(points)], seed)
    bounds = root_bounds(network, domain).within(signs)
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
    bounds = root_bounds(network, domain).within(off)
    rows = one.unsqueeze(0)

    def bound(signed: float) -> float:
        beta = [torch.full((1, 1, 1), signed, dtype=torch.float64)]
        return float(backward(network, domain, 1, rows, bounds.lines(), beta=beta).least)

    assert bound(-1.0) <= 0  # s = -1 times beta = 1: z <= 0 is used as it is meant
    assert bound(0.0) == 0


@kinds
@pytest.mark.parametrize("domain_kind", ["box", "l1"])
def test_bounds_of_a_bundle_are_below_its_exact_minimum(kind: str, domain_kind: str) -> None:
    for seed in range(3):
        network = random_network(seed, kind)
        domain = random_domain(seed, domain_kind)
        signs = signs_at(network, sample(domain, 20, seed)[7], seed)
        bounds = root_bounds(network, domain).within(signs)
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
    bounds = root_bounds(network, domain).within(signs)
    assert not any(bool(mask.any()) for mask in bounds.unstable())
    rows = output_rows(network)
    passed = backward(network, domain, 2, rows, bounds.lines())
    inside = points[in_bundle(network, points, signs)]
    below = (inside - domain.center) @ passed.weight[0].T + passed.constant[0]
    torch.testing.assert_close(network(inside) @ rows[0].T, below)


def test_lines_enclose_the_relu() -> None:
    lower = torch.tensor([[-2.0, -1.0, 0.0, 1.0, -3.0, -1e-9]]).double()
    upper = torch.tensor([[1.0, 3.0, 2.0, 4.0, 0.0, 1e9]]).double()
    ((low, chord, intercept),) = LayerBounds((lower,), (upper,)).lines()
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


def test_closing_neurons_cuts_off_one_side_of_their_bounds() -> None:
    lower, upper = torch.tensor([[-1.0, -1.0, -1.0]]), torch.tensor([[2.0, 2.0, 2.0]])
    cut = LayerBounds((lower,), (upper,)).within([torch.tensor([[1, -1, 0]])])
    assert cut.lower[0].tolist() == [[0.0, -1.0, -1.0]]
    assert cut.upper[0].tolist() == [[2.0, 0.0, 2.0]]
    assert cut.unstable()[0].tolist() == [[False, False, True]]
    assert cut.sizes()[0].tolist() == [[2.0, 1.0, 2.0]]


@kinds
def test_batches_of_boxes_agree_with_one_at_a_time(kind: str) -> None:
    network = random_network(2, kind, inputs=3, widths=WIDTHS)
    boxes = [random_domain(seed, "box", inputs=3, size=0.3 * seed).box() for seed in range(1, 6)]
    batch = Box(torch.stack([b.lower for b in boxes]), torch.stack([b.upper for b in boxes]))
    bounds = root_bounds(network, batch)
    rows = output_rows(network).expand(len(boxes), -1, -1)
    rounding = Rounding(network, batch, bounds)
    passed = backward(network, batch, 3, rows, bounds.lines(), rounding=rounding)
    for i, box in enumerate(boxes):
        alone = root_bounds(network, box)
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
def test_batches_of_bundles_agree_with_one_at_a_time(kind: str) -> None:
    network = random_network(6, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(6, "l2", inputs=3)
    root = root_bounds(network, domain)
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


@kinds
def test_hidden_layers_can_be_targets(kind: str) -> None:
    network = random_network(8, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(8, "box", inputs=3)
    bounds = root_bounds(network, domain)
    z = network.preactivations(sample(domain))[1]
    eye = torch.eye(4, dtype=torch.float64)
    rows = torch.cat([eye, -eye]).unsqueeze(0)
    below = backward(network, domain, 1, rows, bounds.lines()).least[0]
    assert bool((z.amin(0) >= below[:4] - 1e-12).all())
    assert bool((z.amax(0) <= -below[4:] + 1e-12).all())


@kinds
@pytest.mark.parametrize("target", [0, 1, 2])
def test_bounds_of_single_neurons_are_those_of_unit_rows(kind: str, target: int) -> None:
    network = random_network(8, kind, inputs=3, widths=WIDTHS)
    domain = random_domain(8, "l2", inputs=3)
    bounds = root_bounds(network, domain)
    rounding = Rounding(network, domain, bounds)
    neurons = torch.tensor([[2, 0]])
    lower, upper = backward_neurons(
        network, domain, target, neurons, bounds.lines(), rounding=rounding
    )
    rows = torch.eye(WIDTHS[target], dtype=torch.float64)[neurons]
    rows = torch.cat([rows, -rows], 1)
    least_ = backward(network, domain, target, rows, bounds.lines(), rounding=rounding).least
    torch.testing.assert_close(torch.cat([lower, -upper], 1), least_)


def test_prior_bounds_are_never_loosened() -> None:
    for seed in range(8):
        network = random_network(seed, KINDS[seed % 3], inputs=3, widths=WIDTHS)
        domain = random_domain(seed, "box", inputs=3)
        part = Box(domain.center - 0.3 * domain.box().radius, domain.box().upper)
        prior = root_bounds(network, domain)
        both = root_bounds(network, part, prior=prior)
        z = network.preactivations(sample(part, 200, seed))[:-1]
        for k, v in enumerate(z):
            assert bool((v >= both.lower[k] - 1e-12).all() and (v <= both.upper[k] + 1e-12).all())
            assert bool((both.lower[k] >= prior.lower[k]).all())
            assert bool((both.upper[k] <= prior.upper[k]).all())


def test_intervals_of_a_map_that_reads_several_layers_hold() -> None:
    network = random_network(1, "residual", inputs=3, widths=WIDTHS)
    domain = random_domain(1, "l1", inputs=3)
    bounds = root_bounds(network, domain)
    lower, upper = interval_step(network, domain, bounds, 3)
    y = network(sample(domain))
    assert bool((y >= lower).all()) and bool((y <= upper).all())


# Rounding. Scales are mixed by powers of two and ten, so that terms cancel and drown each other.


def mixed_network(seed: int, widths: Sequence[int], dtype: torch.dtype, spread: int) -> Network:
    """Weights between 10^-spread and 10^spread."""
    source = generator(seed)
    network = random_network(seed, "residual" if seed % 2 else "chain", widths=widths)

    def scaled(affine: object) -> Dense:
        assert isinstance(affine, Dense)
        weights = tuple(w * 10.0 ** (spread * normal(source, *w.shape)) for w in affine.weights)
        bias = affine.bias * 10.0 ** (spread * normal(source, *affine.bias.shape))
        return Dense(affine.sources, weights, bias).to("cpu", dtype)

    layers = tuple(scaled(layer) for layer in network.layers)
    return Network(layers, scaled(network.output), network.inputs)


def lowest_exact(network: Network, domain: Domain, rows: Tensor, points: Tensor) -> list[Fraction]:
    """The lowest value of each row [rows, outputs] among the points, as real numbers."""
    lowest: list[Fraction] = []
    exact = [exact_preactivations(network, rationals(p))[-1] for p in points]
    for row in rows.tolist():
        values = [
            sum((Fraction(c) * v for c, v in zip(row, y, strict=True)), Fraction(0)) for y in exact
        ]
        lowest.append(min(values))
    return lowest


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [0, 1, 3])
def test_proved_bounds_are_below_the_real_network_at_its_corners(
    dtype: torch.dtype, spread: int
) -> None:
    """Where the bound is attained, rounding alone decides: stable networks over a box."""
    for seed in range(12):
        network = mixed_network(seed, (3, 3), dtype, spread)
        domain = random_domain(seed, "box", size=1e-3).to("cpu", dtype)
        query = ask(network, domain, random_rows(seed, 2, 2))
        bounds = root_bounds(query.network, domain)
        rows = torch.eye(2, dtype=dtype).unsqueeze(0)
        rounding = Rounding(query.network, domain, bounds)
        passed = backward(query.network, domain, 2, rows, bounds.lines(), rounding=rounding)
        corners = domain.maximiser(torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]]).to(dtype))
        lowest = lowest_exact(query.network, domain, rows[0], corners)
        for bound, value in zip(passed.least[0].tolist(), lowest, strict=True):
            assert Fraction(bound) <= value


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_proved_layer_bounds_are_below_the_real_network(dtype: torch.dtype) -> None:
    for seed in range(12):
        network = mixed_network(seed, (3, 3, 3), dtype, 2)
        domain = random_domain(seed, "box", size=1e-4).to("cpu", dtype)
        bounds = root_bounds(network, domain)
        corners = domain.maximiser(torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]]).to(dtype))
        for point in corners:
            exact = exact_preactivations(network, rationals(point))
            for z, lo, up in zip(exact[:-1], bounds.lower, bounds.upper, strict=True):
                for value, below, above in zip(z, lo[0].tolist(), up[0].tolist(), strict=True):
                    assert Fraction(below) <= value <= Fraction(above)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("depth", [1, 10, 60])
def test_the_rounding_of_deep_and_narrow_networks_is_covered(
    dtype: torch.dtype, depth: int
) -> None:
    """One neuron per layer, all on: the bound is the value itself, and every layer adds to it."""
    for seed in range(10):
        source = generator(seed)
        layers = []
        for k in range(depth):
            weight = torch.rand(1, 1, generator=source).to(dtype) * 0.2 + 0.9
            layers.append(Dense((k,), (weight,), torch.rand(1, generator=source).to(dtype)))
        weight = torch.rand(1, 1, generator=source).to(dtype) + 0.5
        output = Dense((depth,), (weight,), torch.rand(1, generator=source).to(dtype))
        network = Network(tuple(layers), output, 1)
        x = torch.rand(1, generator=source).to(dtype)
        domain = Box(x, x)
        bounds = root_bounds(network, domain)
        rows = torch.ones(1, 1, 1, dtype=dtype)
        rounding = Rounding(network, domain, bounds)
        passed = backward(network, domain, depth, rows, bounds.lines(), rounding=rounding)
        exact = exact_preactivations(network, rationals(x))[-1][0]
        assert Fraction(passed.least.item()) <= exact
        spare = (exact - Fraction(passed.least.item())) / exact
        assert spare < 100 * (depth + 10) * torch.finfo(dtype).eps


def test_the_defect_of_a_map_lowers_the_proved_bound() -> None:
    network, domain = random_network(1), random_domain(1)
    bounds = root_bounds(network, domain)
    rows = torch.eye(2, dtype=torch.float64).unsqueeze(0)

    def bound(net: Network) -> Tensor:
        rounding = Rounding(net, domain, bounds)
        return backward(net, domain, 2, rows, bounds.lines(), rounding=rounding).least

    output = network.output
    assert isinstance(output, Dense)
    worse = Dense(output.sources, output.weights, output.bias, torch.tensor([0.5, 0.0]).double())
    drop = bound(network) - bound(Network(network.layers, worse, 2))
    assert float(drop[0, 0]) >= 0.5
    assert float(drop[0, 1]) == pytest.approx(0, abs=1e-12)
    layer = network.layers[1]
    assert isinstance(layer, Dense)
    hidden = Dense(layer.sources, layer.weights, layer.bias, torch.full((3,), 0.5).double())
    lower = bound(Network((network.layers[0], hidden), output, 2))
    needed = 0.5 * output.weights[0].abs().sum(1)
    assert bool((bound(network) - lower >= needed - 1e-12).all())


@pytest.mark.parametrize("radius", [1.5, 8.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_overflow_proves_nothing(dtype: torch.dtype, radius: float) -> None:
    """At 1.5 only the width of a neuron's range overflows, at 8 the range itself does."""
    big = torch.finfo(dtype).max / 4
    ones = torch.ones(2, dtype=dtype)
    first = Dense((0,), (big * torch.stack([ones, -ones]),), 0 * ones)
    second = Dense((1,), (torch.full((2, 2), 0.25, dtype=dtype),), 0 * ones)
    output = Dense((2,), (-ones.unsqueeze(0),), ones[:1])
    network = Network((first, second), output, 2)
    domain = Box(-radius * ones, radius * ones)
    bounds = root_bounds(network, domain)
    assert bool(bounds.unstable()[0].all())
    assert not any(bool(b.isnan().any()) for b in (*bounds.lower, *bounds.upper))
    assert bool((bounds.upper[1] >= 0.75 * big * radius / 2).all())
    rounding = Rounding(network, domain, bounds)
    rows = torch.ones(1, 1, 1, dtype=dtype)
    passed = backward(network, domain, 2, rows, bounds.lines(), rounding=rounding)
    assert not bool((passed.least >= -big).any())
