"""The forms of many regions at once, and what several constraints say together."""

from __future__ import annotations

import pytest
import torch

from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.domain.sets import L2Ball
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.query import Query
from fgp_vnn.regions.combined import combine_constraints, excluded, misses
from fgp_vnn.regions.triangular import triangular
from fgp_vnn.transform.stable import collapse
from tests.helpers.small_networks import (
    balls,
    bounds_of,
    random_network,
    random_point,
    robustness_query,
    sample,
)

KINDS = ("l2", "l1", "linf", "clipped")


def queries(kind: str, seed: int) -> list[Query]:
    """A query, plain and collapsed."""
    network = random_network((6, 8, 7, 6, 3), seed)
    query = robustness_query(network, balls(random_point(6, seed), 0.4)[kind])
    return [query, collapse(query, bounds_of(query), budget=UNLIMITED)[0]]


def switched_on(values: list[torch.Tensor]) -> torch.Tensor:
    """The patterns [neurons, points] of what the maps give."""
    return (torch.cat(values[:-1], 1) > 0).double().T.contiguous()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_forms_give_the_values_of_the_network_in_its_regions(kind: str, seed: int) -> None:
    for query in queries(kind, seed):
        points = sample(query.domain, 60, seed)
        values = query.network.preactivations(points)
        on = switched_on(values)
        system = triangular(query)
        forms = system.forms(on)
        offset = points - query.domain.center
        computed = (forms.rows * offset).sum(-1) + forms.values
        difference = (computed - torch.cat(values, 1).T).abs()
        assert bool((difference <= system.error.unsqueeze(1)).all())
        assert float(system.error.max()) < 1e-9


@pytest.mark.parametrize("cache", [False, True])
def test_supports_bound_how_far_a_form_moves(cache: bool) -> None:
    for kind in KINDS:
        for query in queries(kind, 5):
            points = sample(query.domain, 60, 1)
            values = query.network.preactivations(points)
            on = switched_on(values)
            system = triangular(query, cache_first=cache)
            forms = system.forms(on)
            moved = (forms.rows * (points - query.domain.center)).sum(-1)
            count = system.neurons
            assert bool((moved[:count].abs() <= forms.reach[:count] + 1e-9).all())
            assert bool((-moved[count:] <= forms.reach[count:] + 1e-9).all())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_a_region_with_a_point_of_the_domain_is_never_missed(kind: str, seed: int) -> None:
    for query in queries(kind, seed):
        points = sample(query.domain, 300, seed)
        values = query.network.preactivations(points)
        on = switched_on(values)
        system = triangular(query)
        forms = system.forms(on)
        combined = combine_constraints(system, forms, on * 2 - 1)
        assert not bool(misses(query.domain, combined).any())
        along = (combined.p * (points - query.domain.center)).sum(-1)
        assert bool((along >= combined.q - combined.slack).all())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_row_that_is_met_in_its_region_is_never_excluded(kind: str, seed: int) -> None:
    """Between two points of the domain, zeros of neurons and of outputs lie on the segment."""
    for query in queries(kind, seed):
        ends = sample(query.domain, 200, seed)
        starts = query.domain.center.expand_as(ends)
        low, high = torch.zeros(len(ends), 1).double(), torch.ones(len(ends), 1).double()
        first = torch.cat(query.network.preactivations(starts), 1)
        last = torch.cat(query.network.preactivations(ends), 1)
        changes = torch.nonzero((first > 0) != (last > 0))
        assert len(changes)
        at, row = changes[:200].unbind(1)
        low, high = low[at], high[at]
        sign = (first[at, row] > 0).double().unsqueeze(1)
        for _ in range(60):
            middle = (low + high) / 2
            points = starts[at] + middle * (ends[at] - starts[at])
            value = torch.cat(query.network.preactivations(points), 1)
            same = (value[range(len(at)), row] > 0).double().unsqueeze(1) == sign
            low, high = torch.where(same, middle, low), torch.where(same, high, middle)
        values = query.network.preactivations(points)
        on = switched_on(values)
        system = triangular(query)
        forms = system.forms(on)
        out = excluded(system, forms, combine_constraints(system, forms, on * 2 - 1))
        assert not bool(out[row, torch.arange(len(at))].any())


def test_constraints_exclude_together_what_none_excludes_alone() -> None:
    """Two orthogonal half-planes at 0.8 of the radius: each is met, both at once are not."""
    first = Dense((0,), (torch.eye(2).double(),), torch.tensor([-0.8, -0.8]).double())
    network = Network(
        (first,), Dense((1,), (torch.ones(2, 2).double(),), torch.ones(2).double()), 2
    )
    query = robustness_query(network, L2Ball(torch.zeros(2).double(), 1.0))
    system = triangular(query)
    on = torch.tensor([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]).double()
    forms = system.forms(on)
    combined = combine_constraints(system, forms, on * 2 - 1)
    assert misses(query.domain, combined).tolist() == [False, False, True]
    crossed = ~excluded(system, forms, combined)
    assert crossed[:2, 0].tolist() == [True, True]
    assert crossed[:2, 1].tolist() == [True, False]
