"""The kernels on a device that is not the CPU: no tensor of theirs stays behind on it.

Fake tensors have a device and a shape, and no values; an operation on two devices raises. What
depends on values (masks, searches) cannot run so, and is left out.
"""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from fgp_vnn.bounds.backward import backward, backward_neurons
from fgp_vnn.bounds.intervals import interval_step
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.bounds.slopes import Rows, ascend
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Domain, L1Ball, L2Ball
from fgp_vnn.network.model import Network
from fgp_vnn.query import ask
from fgp_vnn.regions.forms import affine_forms, empty, gradient
from fgp_vnn.regions.projections import project_onto_half_spaces
from fgp_vnn.search.walk.seen_regions import flip_words, pack, unpack
from fgp_vnn.strategy import Ascent
from tests.helpers.met import is_met
from tests.helpers.random_networks import KINDS, random_domain, random_network, random_rows

GPU = torch.device("meta")  # any device but the CPU; this one every build of torch has
DOMAINS = ("box", "l2", "l1", "clipped l2")


def fake_mode() -> FakeTensorMode:
    return FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=False)


def on_gpu(kind: str, domain_kind: str) -> tuple[Network, Domain]:
    """Made under the fake mode: nothing of it exists."""
    network = random_network(0, kind, inputs=3, widths=(4, 3)).to(GPU, torch.float32)
    query = ask(network, random_domain(0, "box", inputs=3), random_rows(0, 2, 2, 1))
    center = query.domain.center
    ball = L2Ball(center, 1.0)
    domains: dict[str, Domain] = {
        "box": query.domain,
        "l2": ball,
        "l1": L1Ball(center, 1.0),
        "clipped l2": Clipped(ball, query.domain.box()),
    }
    return query.network, domains[domain_kind]


def bounds_of(network: Network) -> LayerBounds:
    ones = [torch.ones(1, n, device=GPU) for n in network.widths]
    return LayerBounds(tuple(-one for one in ones), tuple(ones))


def is_there(*tensors: torch.Tensor) -> None:
    for tensor in tensors:
        assert tensor.device.type == GPU.type


each = pytest.mark.parametrize(
    ("kind", "domain_kind"), [(KINDS[k % 2], domain) for k, domain in enumerate(DOMAINS)]
)


@pytest.mark.parametrize("domain_kind", DOMAINS)
def test_domains_stay_on_their_device(domain_kind: str) -> None:
    with fake_mode():
        _, domain = on_gpu("chain", domain_kind)
        rows = torch.ones(5, 3, device=GPU)
        is_there(domain.center, domain.box().lower, domain.support(rows), domain.reach(rows))
        is_there(domain.maximiser(rows), domain.project(rows), domain.contains(rows))
        is_there(project_onto_half_spaces(domain, rows, rows[:, 0]), domain.support(rows))


@each
def test_forms_of_regions_stay_on_their_device(kind: str, domain_kind: str) -> None:
    with fake_mode():
        network, domain = on_gpu(kind, domain_kind)
        pattern = [torch.ones(6, n, dtype=torch.bool, device=GPU) for n in network.widths]
        forms = affine_forms(network, domain, pattern)
        is_there(*(part for form in forms for part in form), empty(forms[:-1], pattern))
        x = torch.ones(4, 3, device=GPU)
        is_there(*gradient(network, x, torch.ones(4, 3, device=GPU)))


@each
def test_linear_bounds_stay_on_their_device(kind: str, domain_kind: str) -> None:
    with fake_mode():
        network, domain = on_gpu(kind, domain_kind)
        signs = [torch.ones(2, n, dtype=torch.int8, device=GPU) for n in network.widths]
        bounds = bounds_of(network).within(signs)
        rows = torch.ones(2, 3, 3, device=GPU)
        beta = [s.unsqueeze(-2).float() for s in signs]
        rounding = Rounding(network, domain, bounds)
        passed = backward(network, domain, 2, rows, bounds.lines(), beta=beta, rounding=rounding)
        is_there(passed.weight, passed.constant, passed.least, *passed.coefficients.values())
        is_there(
            *interval_step(network, domain, bounds, 2), *interval_step(network, domain, bounds, 0)
        )
        neurons = torch.zeros(2, 2, dtype=torch.long, device=GPU)
        lines = bounds.lines()
        is_there(*backward_neurons(network, domain, 1, neurons, lines, rounding=rounding))


@each
def test_the_ascent_stays_on_its_device(kind: str, domain_kind: str) -> None:
    with fake_mode():
        network, domain = on_gpu(kind, domain_kind)
        signs = [torch.ones(2, n, dtype=torch.int8, device=GPU) for n in network.widths]
        bounds, ones = bounds_of(network).within(signs), torch.ones(2, 3, 3, device=GPU)
        rows = Rows(network, domain, 2, ones, bounds, signs)
        raised = ascend(rows, ascent=Ascent(steps=2), done=lambda least: False)
        is_there(raised.least, raised.points, *raised.multipliers.alpha, *raised.multipliers.beta)


def test_queries_stay_on_their_device() -> None:
    with fake_mode():
        network = random_network(0).to(GPU, torch.float32)
        query = ask(network, random_domain(0), random_rows(0, 2, 2, 1))
        g = torch.ones(4, 3, device=GPU)
        is_there(query.disjunct, query.strict, query.domain.center)
        is_there(is_met(query, g), query.closed(g), query.worst(g))


def test_packed_patterns_stay_on_their_device() -> None:
    with fake_mode():
        bits = torch.ones(5, 130, dtype=torch.bool, device=GPU)
        words = pack(bits)
        is_there(words, unpack(words, 130), flip_words(130, GPU))
