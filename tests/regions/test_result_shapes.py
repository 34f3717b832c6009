"""What the kernels of regions return has the shapes that they say, at odd sizes too."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.query import Query, ask
from fgp_vnn.regions.combined import combine_constraints, excluded, misses
from fgp_vnn.regions.forms import affine_forms, empty
from fgp_vnn.regions.halfspaces import HalfSpaces, contradiction
from fgp_vnn.regions.nearest_points import nearest, nearest_in_norm
from fgp_vnn.regions.projections import alternate
from fgp_vnn.regions.region_halfspaces import region_spaces
from fgp_vnn.regions.triangular import triangular
from fgp_vnn.strategy import Projections
from tests.helpers.random_networks import (
    DOMAINS,
    KINDS,
    normal,
    random_domain,
    random_network,
    random_rows,
)

WIDTHS = (4, 1)
kinds = pytest.mark.parametrize("kind", KINDS)
domains = pytest.mark.parametrize("domain_kind", DOMAINS)
some_inputs = pytest.mark.parametrize("inputs", [1, 3])
some_cases = pytest.mark.parametrize("cases", [1, 3])  # nobody asks about no region


def made(kind: str, inputs: int, cases: int) -> tuple[Query, torch.Tensor]:
    """A question with three rows, and the signs [cases, neurons] of some regions."""
    network = random_network(1, kind, inputs=inputs, widths=WIDTHS)
    query = ask(network, random_domain(1, inputs=inputs), random_rows(1, 2, 1, 2))
    signs = normal(torch.Generator().manual_seed(2), cases, sum(WIDTHS)).sign().to(torch.int8)
    return query, signs


@kinds
@some_cases
@some_inputs
def test_of_forms_of_layers(kind: str, inputs: int, cases: int) -> None:
    query, signs = made(kind, inputs, cases)
    pattern = torch.split(signs > 0, list(WIDTHS), -1)
    forms = affine_forms(query.network, query.domain, pattern)
    assert len(forms) == 3
    for form, width in zip(forms, (*WIDTHS, 3), strict=True):
        regions = len(form.columns)
        assert regions in (1, cases)
        assert form.columns.shape == (regions, inputs, width)
        for part in (form.values, form.reach, form.error, form.terms):
            assert part.shape == (regions, width)
    assert empty(forms[:-1], pattern).shape == (cases,)
    spaces = region_spaces(query, signs, torch.zeros(cases, dtype=torch.int64))
    assert spaces.rows.shape == (cases, sum(WIDTHS) + 3, inputs)
    assert spaces.values.shape == spaces.errors.shape == (cases, sum(WIDTHS) + 3)


@kinds
@some_cases
@some_inputs
def test_of_a_system_and_its_joint_constraints(kind: str, inputs: int, cases: int) -> None:
    query, signs = made(kind, inputs, cases)
    system, rows = triangular(query), sum(WIDTHS) + 3
    forms = system.forms((signs.T > 0).double())
    assert forms.rows.shape == (rows, cases, inputs)
    assert forms.values.shape == forms.reach.shape == (rows, cases)
    combined = combine_constraints(system, forms, signs.T.double())
    assert combined.p.shape == (cases, inputs) and combined.q.shape == combined.slack.shape == (
        cases,
    )
    assert misses(query.domain, combined).shape == (cases,)
    assert excluded(system, forms, combined).shape == (rows, cases)


@domains
@some_cases
@some_inputs
@pytest.mark.parametrize("constraints", [1, 4])
def test_of_projections(domain_kind: str, constraints: int, inputs: int, cases: int) -> None:
    source = torch.Generator().manual_seed(3)
    domain = random_domain(1, domain_kind, inputs=inputs)
    values = normal(source, cases, constraints)
    rows = normal(source, cases, constraints, inputs)
    spaces = HalfSpaces(rows, values, torch.zeros_like(values))
    settled = alternate(domain, spaces, lambda points: None, UNLIMITED, 3, Projections())
    assert settled.closed.shape == (cases,) and settled.multipliers.shape == (cases, constraints)
    assert contradiction(domain, spaces, settled.multipliers).shape == (cases,)
    finds = {"l2": (nearest, nearest_in_norm), "l1": (nearest_in_norm,), "box": (nearest_in_norm,)}
    for find in finds.get(domain_kind, ()):
        part, points = find(domain, spaces, UNLIMITED, steps=3, look=1)
        assert part.shape == (cases,) and points.shape == (cases, inputs)
