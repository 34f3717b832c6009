"""Regions at the leaves of the split search against the exact oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import Query, ask
from fgp_vnn.regions.forms import affine_forms
from fgp_vnn.regions.refute import Refuter
from fgp_vnn.regions.settle import Effort
from fgp_vnn.search.leaves import Leaves, leaf_effort
from fgp_vnn.strategy import Projections
from tests.helpers.exact import TOLERANCE, least, polytope
from tests.helpers.met import is_met
from tests.helpers.random_cases import exact_confirm
from tests.helpers.random_networks import KINDS, random_domain, random_network, random_rows, sample

WIDTHS = (4, 3)
ONLY_LP = Effort(0, lp=True)


def make_query(seed: int, domain_kind: str = "box") -> Query:
    network = random_network(seed, KINDS[seed % 3], widths=WIDTHS)
    return ask(network, random_domain(seed, domain_kind), random_rows(seed, 2, 1, 2))


def signs_of(query: Query, points: Tensor) -> Tensor:
    """The regions [points, neurons] that the points lie in."""
    z = torch.cat(query.network.preactivations(points)[:-1], -1)
    return torch.where(z >= 0, 1, -1).to(torch.int8)


def leaves_of(query: Query, effort: Effort | None = None) -> Leaves:
    """The leaves of a search that no counterexample ends."""
    refuter, effort = Refuter(query, UNLIMITED), effort or leaf_effort(Projections(), False)
    return Leaves(query, lambda points: None, UNLIMITED, effort, refuter)


def decide(
    query: Query,
    signs: Tensor,
    disjunct: int,
    deadline: Budget | None = None,
    effort: Effort | None = None,
) -> tuple[Counterexample | None, int]:
    which = torch.full((len(signs),), disjunct)
    time, effort = deadline or UNLIMITED, effort or leaf_effort(Projections(), False)
    leaves = Leaves(query, exact_confirm(query), time, effort, Refuter(query, time))
    decided = leaves.decide(signs, which)
    return decided.found, decided.unsettled


@pytest.mark.parametrize("domain_kind", ["box", "thin box", "l1"])
def test_a_region_is_settled_only_as_the_oracle_has_it(domain_kind: str) -> None:
    settled = found_some = vacant = 0
    for seed in range(3):
        query = make_query(seed, domain_kind)
        regions = signs_of(query, sample(query.domain, 8, seed)[:3])
        regions = torch.cat([regions, -regions[:1]])  # the last of them is likely to be empty
        for disjunct in range(2):
            for region in regions:
                found, unsettled = decide(query, region.unsqueeze(0), disjunct)
                exact = least(
                    query.network,
                    polytope(query.domain),
                    rows=query.rows_of(disjunct),
                    signs=[s.double() for s in torch.split(region, list(WIDTHS))],
                )
                closed = found is None and not unsettled
                assert not (closed and exact < -TOLERANCE)
                settled += closed
                found_some += found is not None
                vacant += closed and exact == float("inf")
    assert settled > 5 and found_some > 5 and vacant > 2


@pytest.mark.parametrize("domain_kind", ["box", "thin box", "l1"])
def test_with_an_lp_every_region_is_decided_as_the_oracle_has_it(domain_kind: str) -> None:
    closed = found_some = 0
    for seed in range(3):
        query = make_query(seed, domain_kind)
        regions = signs_of(query, sample(query.domain, 8, seed)[:3])
        for disjunct in range(2):
            for region in regions:
                exact = least(
                    query.network,
                    polytope(query.domain),
                    rows=query.rows_of(disjunct),
                    signs=[s.double() for s in torch.split(region, list(WIDTHS))],
                )
                if abs(exact) <= TOLERANCE:
                    continue
                found, unsettled = decide(query, region.unsqueeze(0), disjunct, effort=ONLY_LP)
                assert not unsettled
                assert (found is not None) == (exact < 0)
                closed += exact > 0
                found_some += exact < 0
    assert closed > 5 and found_some > 5


@pytest.mark.parametrize("domain_kind", ["box", "l1", "l2", "clipped l2", "clipped l1"])
@pytest.mark.parametrize("effort", [Effort(200), ONLY_LP], ids=["projections", "lp"])
def test_the_multipliers_of_a_closed_region_are_kept_and_prove_it(
    domain_kind: str, effort: Effort
) -> None:
    """The weighted sum of a region's constraints is positive on the whole domain."""
    kept = 0
    for seed in range(16):
        query = make_query(seed, domain_kind)
        points = sample(query.domain, 60, seed)
        regions = signs_of(query, points[:6])
        which = torch.ones(len(regions), dtype=torch.long)
        settled = leaves_of(query, effort).settle(regions, which)
        for region, weights in zip(regions, settled.multipliers, strict=True):
            if not bool(weights.any()):
                continue
            pattern = torch.split((region > 0).unsqueeze(0), list(WIDTHS), -1)
            forms = affine_forms(query.network, query.domain, pattern)
            offsets = points - query.domain.center
            z = torch.cat([offsets @ form.columns[0] + form.values for form in forms], -1)
            sides = torch.cat([-region.double(), (query.disjunct == 1).double()])
            assert bool((weights >= 0).all())
            assert bool(((z * sides) @ weights > 0).all())
            kept += 1
    assert kept > 1


@pytest.mark.parametrize("domain_kind", ["l2", "clipped l2", "clipped l1"])
def test_no_region_is_settled_in_which_a_sample_meets_the_disjunct(domain_kind: str) -> None:
    seen = 0
    for seed in range(5):
        query = make_query(seed, domain_kind)
        points = sample(query.domain, 60, seed)
        met = is_met(query, query.network(points))
        for disjunct in range(2):
            bad = points[met[:, disjunct]][:3]
            for region in signs_of(query, bad):
                found, unsettled = decide(query, region.unsqueeze(0), disjunct)
                assert found is not None or unsettled
                seen += 1
    assert seen > 5


def test_regions_in_a_batch_are_decided_as_one_by_one() -> None:
    for seed in range(3):
        query = make_query(seed)
        regions = signs_of(query, sample(query.domain, 20, seed))
        for disjunct in range(2):
            found, unsettled = decide(query, regions, disjunct)
            alone = [decide(query, region.unsqueeze(0), disjunct) for region in regions]
            assert (found is not None) == any(one is not None for one, _ in alone)
            if found is None:
                assert unsettled == sum(count for _, count in alone)


def test_each_region_is_asked_about_its_own_disjunct() -> None:
    for seed in range(8):
        query = make_query(seed)
        regions = signs_of(query, query.domain.center.unsqueeze(0)).expand(2, -1)
        leaves = replace(leaves_of(query), confirm=exact_confirm(query))
        both = leaves.decide(regions, torch.tensor([0, 1]))
        each = [decide(query, regions[:1], d) for d in range(2)]
        assert (both[0] is not None) == any(found is not None for found, _ in each)


def test_a_region_is_not_closed_by_another_disjunct() -> None:
    """Of two disjuncts one cannot be met, and the other is met everywhere."""
    row, free = np.array([[1.0, 0.0]]), np.zeros(1, bool)
    unsafe = [Conjunction(row, np.array([limit]), free) for limit in (-1e6, 1e6)]
    query = ask(random_network(0, widths=WIDTHS), random_domain(0), unsafe)
    regions = signs_of(query, query.domain.center.unsqueeze(0)).expand(2, -1)
    settled = leaves_of(query).settle(regions, torch.tensor([0, 1]))
    assert settled.closed.tolist() == [True, False]


def test_without_time_nothing_that_projections_would_have_to_settle_is_closed() -> None:
    left = 0
    for seed in range(8):
        query = make_query(seed)
        points = sample(query.domain, 60, seed)
        met = is_met(query, query.network(points))[:, 0]
        regions = signs_of(query, points[met])
        if len(regions):
            found, unsettled = decide(query, regions, 0, Budget.of(0.0, None))
            assert found is None and unsettled == len(regions)
            left += 1
    assert left > 3


def test_a_counterexample_that_is_refused_leaves_its_region_unsettled() -> None:
    left = 0
    for seed in range(4):
        query = make_query(seed)
        points = sample(query.domain, 60, seed)
        regions = signs_of(query, points[is_met(query, query.network(points))[:, 0]][:2])
        which = torch.zeros(len(regions), dtype=torch.long)
        decided = leaves_of(query).decide(regions, which)
        assert decided.found is None and decided.unsettled == len(regions)
        left += decided.unsettled
    assert left
