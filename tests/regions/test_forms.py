"""Affine forms of regions against autograd, sampled points and rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import ask
from fgp_vnn.regions.forms import MapForms, affine_forms, empty, gradient, input_columns
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    exact_preactivations,
    random_domain,
    random_network,
    random_rows,
    rationals,
    sample,
)

kinds = pytest.mark.parametrize("kind", KINDS)
seeds = st.integers(0, 10_000)


def patterns_at(network: Network, points: Tensor) -> list[Tensor]:
    return [z >= 0 for z in network.preactivations(points)[:-1]]


def values_at(forms: MapForms, domain: Domain, points: Tensor) -> Tensor:
    """Each point [points, inputs] in the forms of its own region; [points, n_k]."""
    moved = ((points - domain.center).unsqueeze(1) @ forms.columns).squeeze(1)
    return moved + forms.values


@kinds
@given(seed=seeds)
def test_the_forms_of_a_points_region_give_the_network_at_the_point(kind: str, seed: int) -> None:
    network = random_network(seed, kind, inputs=3, widths=(5, 4, 3))
    domain = random_domain(seed, "box", inputs=3)
    points = sample(domain, 20, seed)
    forms = affine_forms(network, domain, patterns_at(network, points))
    for form, expected in zip(forms, network.preactivations(points), strict=True):
        torch.testing.assert_close(values_at(form, domain, points), expected)


@kinds
def test_the_columns_are_the_jacobian(kind: str) -> None:
    network = random_network(7, kind, inputs=3, widths=(5, 4))
    domain = random_domain(7, "box", inputs=3)
    points = sample(domain, 8, 1)[1:7]
    forms = affine_forms(network, domain, patterns_at(network, points))
    smooth = 0
    for i, point in enumerate(points):
        for k, form in enumerate(forms):
            x = point.clone().requires_grad_()
            z = network.preactivations(x.unsqueeze(0))[k][0]
            slopes = [torch.autograd.grad(v, x, retain_graph=True)[0] for v in z]
            jacobian = torch.stack(slopes)
            columns = form.columns[i if len(form.columns) > 1 else 0]
            # At a kink autograd takes 0 for relu's slope where the pattern z >= 0 takes 1.
            kink = any(bool((z[i] == 0).any()) for z in network.preactivations(points)[:k])
            if not kink:
                torch.testing.assert_close(columns.T, jacobian)
                smooth += 1
    assert smooth >= (1 if kind == "degenerate" else 2) * len(points)


@pytest.mark.parametrize("domain_kind", DOMAINS)
@kinds
@given(seed=seeds)
def test_the_region_of_a_point_of_the_domain_is_never_empty(
    kind: str, domain_kind: str, seed: int
) -> None:
    network = random_network(seed, kind, inputs=3, widths=(6, 5, 4))
    domain = random_domain(seed, domain_kind, inputs=3)
    points = sample(domain, 60, seed)
    pattern = patterns_at(network, points)
    forms = affine_forms(network, domain, pattern)
    assert not bool(empty(forms[:-1], pattern).any())


def test_a_region_whose_constraint_the_domain_misses_is_empty() -> None:
    layer = Dense((0,), (torch.tensor([[1.0]]).double(),), torch.tensor([2.0]).double())
    output = Dense((1,), (torch.tensor([[1.0]]).double(),), torch.zeros(1).double())
    network = Network((layer,), output, 1)
    domain = Box(torch.tensor([-1.0]).double(), torch.tensor([1.0]).double())
    pattern = [torch.tensor([[True], [False]])]  # x + 2 is never negative here
    forms = affine_forms(network, domain, pattern)
    assert empty(forms[:-1], pattern).expand(2).tolist() == [False, True]


def test_a_region_that_the_domain_only_touches_is_not_empty() -> None:
    layer = Dense((0,), (torch.tensor([[1.0]]).double(),), torch.tensor([1.0]).double())
    network = Network((layer,), Dense((1,), (torch.eye(1).double(),), torch.zeros(1).double()), 1)
    domain = Box(torch.tensor([-1.0]).double(), torch.tensor([1.0]).double())
    pattern = [torch.tensor([[False]])]  # x + 1 <= 0 at x = -1 alone
    assert not bool(empty(affine_forms(network, domain, pattern)[:-1], pattern).any())


@pytest.mark.parametrize("domain_kind", DOMAINS)
@given(seed=seeds)
def test_no_point_of_the_domain_moves_a_form_by_more_than_its_reach(
    domain_kind: str, seed: int
) -> None:
    network = random_network(seed, "residual", inputs=3, widths=(4, 3))
    domain = random_domain(seed, domain_kind, inputs=3)
    points = sample(domain, 60, seed)
    for form in affine_forms(network, domain, patterns_at(network, domain.center[None])):
        moved = (points - domain.center) @ form.columns[0]
        assert bool((moved.abs().amax(0) <= form.reach[0] + 1e-12).all())


@kinds
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_error_term_covers_all_rounding(kind: str, scale: float, dtype: torch.dtype) -> None:
    """Against the real-valued network: |form(x) - z(x)| <= error in the region of x."""
    for seed in range(3):
        network = random_network(seed, kind, inputs=3, widths=(5, 4, 3), scale=scale)
        network = ask(
            network, random_domain(seed, "box", inputs=3), random_rows(seed, 2, 2)
        ).network
        network = network.to("cpu", dtype)
        domain = random_domain(seed, "box", inputs=3).to("cpu", dtype)
        points = sample(domain, 10, seed).to(dtype)
        points = domain.project(points)
        for point in points[:6]:
            _check_error(network, domain, point)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_error_term_covers_cancellation(dtype: torch.dtype) -> None:
    """Large terms that cancel in a small domain: |v| and h say nothing of the rounding."""
    for seed in range(10):
        network = random_network(seed, inputs=3, widths=(5, 4), scale=100.0).to("cpu", dtype)
        center = 10 * torch.randn(3, generator=torch.Generator().manual_seed(seed)).to(dtype)
        domain = Box(center - 1e-3, center + 1e-3)
        balanced: list[Dense] = []
        for k, affine in enumerate(network.maps):
            assert isinstance(affine, Dense)
            partial = Network(tuple(balanced), affine, 3)
            shift = partial(center.unsqueeze(0))[0] if k != 1 else 0 * affine.bias
            balanced.append(Dense(affine.sources, affine.weights, affine.bias - shift))
        network = Network(tuple(balanced[:-1]), balanced[-1], 3)
        for point in domain.project(sample(domain.to("cpu", torch.float64), 8, seed).to(dtype)):
            _check_error(network, domain, point)


def _check_error(network: Network, domain: Domain, point: Tensor) -> None:
    exact = exact_preactivations(network, rationals(point))
    pattern = [torch.tensor([[v >= 0 for v in z]]) for z in exact[:-1]]
    center = rationals(domain.center)
    x = rationals(point)
    for form, z in zip(affine_forms(network, domain, pattern), exact, strict=True):
        for j, expected in enumerate(z):
            value = Fraction(form.values[0, j].item())
            for i, column in enumerate(form.columns[0, :, j].tolist()):
                value += Fraction(column) * (x[i] - center[i])
            assert abs(value - expected) <= Fraction(form.error[0, j].item())


def test_the_error_term_is_small_enough_to_be_of_use() -> None:
    network = random_network(0, inputs=10, widths=(20, 20, 20))
    domain = random_domain(0, "box", inputs=10)
    for form in affine_forms(network, domain, patterns_at(network, domain.center[None])):
        assert float((form.error / (form.values.abs() + form.reach).clamp(min=1)).max()) < 1e-10


def test_the_defect_of_a_map_is_part_of_the_error() -> None:
    network = random_network(1)
    domain = random_domain(1)
    layer = network.layers[0]
    assert isinstance(layer, Dense)
    defect = torch.full((4,), 0.25, dtype=torch.float64)
    worse = Network(
        (Dense(layer.sources, layer.weights, layer.bias, defect), *network.layers[1:]),
        network.output,
        network.inputs,
    )
    pattern = [torch.ones(1, n, dtype=torch.bool) for n in network.widths]
    before = affine_forms(network, domain, pattern)
    after = affine_forms(worse, domain, pattern)
    assert bool((after[0].error >= before[0].error + 0.25).all())
    second = network.layers[1]
    assert isinstance(second, Dense)
    grown = second.weights[0].abs() @ defect  # |W| carries it on
    assert bool((after[1].error[0] >= before[1].error[0] + grown).all())


@kinds
def test_a_batch_of_regions_agrees_with_one_at_a_time(kind: str) -> None:
    network = random_network(3, kind, inputs=3, widths=(5, 4))
    domain = random_domain(3, "box", inputs=3)
    points = sample(domain, 12, 3)
    pattern = patterns_at(network, points)
    batch = affine_forms(network, domain, pattern)
    gone = empty(batch[:-1], pattern).expand(len(points))
    for i in range(len(points)):
        alone = affine_forms(network, domain, [p[i : i + 1] for p in pattern])
        assert bool(empty(alone[:-1], [p[i : i + 1] for p in pattern])[0]) == bool(gone[i])
        for whole, one in zip(batch, alone, strict=True):
            for part, single in zip(whole, one, strict=True):
                torch.testing.assert_close(part[i if len(part) > 1 else 0], single[0])


@kinds
@given(seed=seeds)
def test_the_gradient_is_that_of_autograd(kind: str, seed: int) -> None:
    network = random_network(seed, kind, inputs=3, widths=(5, 4))
    points = sample(random_domain(seed, "box", inputs=3), 10, seed).requires_grad_()
    rows = torch.randn(len(points), 2, generator=torch.Generator().manual_seed(seed)).double()
    outputs, found = gradient(network, points.detach(), rows)
    expected = network(points)
    torch.testing.assert_close(outputs, expected.detach())
    (slope,) = torch.autograd.grad((expected * rows).sum(), points)
    smooth = torch.stack([(z != 0).all(-1) for z in network.preactivations(points)]).all(0)
    if kind != "degenerate":  # there, neurons that are 0 everywhere have no say
        assert bool(smooth.all())
    torch.testing.assert_close(found, slope)


def test_the_gradient_of_a_constant_network_is_zero() -> None:
    layer = Dense((0,), (torch.eye(2).double(),), torch.zeros(2).double())
    output = Dense((1,), (torch.zeros(1, 2).double(),), torch.ones(1).double())
    x = torch.ones(3, 2).double()
    outputs, slope = gradient(Network((layer,), output, 2), x, torch.ones(3, 1).double())
    assert outputs.tolist() == [[1.0]] * 3
    assert torch.equal(slope, torch.zeros_like(x))


def test_the_forms_of_the_input_are_the_input() -> None:
    domain = random_domain(0, "l2", inputs=3)
    columns = input_columns(domain)
    assert torch.equal(columns[0, :3], torch.eye(3, dtype=torch.float64))
    assert torch.equal(columns[0, 3], domain.center)


def test_a_network_without_relus_is_one_region() -> None:
    output = Dense((0,), (torch.tensor([[2.0, -1.0]]).double(),), torch.tensor([0.5]).double())
    domain = random_domain(0)
    (form,) = affine_forms(Network((), output, 2), domain, [])
    torch.testing.assert_close(
        values_at(form, domain, domain.center[None])[0], output([domain.center])
    )
    assert not bool(empty([], []).any())


def test_the_error_of_a_matrix_acts_on_the_error_of_what_it_reads() -> None:
    """Weights that are sums whose large terms cancel: the first map's result is about 0, and the
    second multiplies its error by that of its own weight."""
    one, none = torch.ones(1, 1).double(), torch.zeros(1, 1).double()
    terms = 2.0**60 * one, none[0]
    maps = [Dense((k,), (none,), none[0], terms=terms, rounded=3) for k in (0, 1)]
    box = Box(-one[0], one[0])
    first, second = affine_forms(Network((maps[0],), maps[1], 1), box, [one.bool()])
    lost = unit(torch.float64).share(3) * 2.0**60
    assert float(first.error) >= lost
    assert float(second.error) >= lost * lost
