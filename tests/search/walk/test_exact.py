"""The walk in exact arithmetic: ties, kinks and boundaries with answers known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import Dense, Network
from fgp_vnn.property.model import Conjunction
from fgp_vnn.query import ask
from fgp_vnn.search.walk.walk import WalkOptions
from fgp_vnn.strategy import Projections
from tests.helpers.exact import TOLERANCE, least_worst, polytope
from tests.helpers.random_networks import KINDS, grid_weights, random_domain, random_network
from tests.search.walk.test_walk import walk


def exact_unit_network() -> Network:
    """y = relu(x_0) + relu(-x_0) = |x_0|, and y_1 = x_1, all in exact arithmetic."""
    first = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]], dtype=torch.float64)
    last = torch.tensor([[1.0, 1, 0, 0], [0, 0, 1, -1]], dtype=torch.float64)
    zero = torch.zeros(4, dtype=torch.float64)
    return Network((Dense((0,), (first,), zero),), Dense((1,), (last,), zero[:2]), 2)


def unit_box(low: float, high: float) -> Domain:
    return Box(torch.full((2,), low).double(), torch.full((2,), high).double())


def test_a_counterexample_beyond_a_boundary_is_not_lost_to_rounding_on_it() -> None:
    """The projection onto g = 0 itself may be at g = 1e-16 > 0; behind it g is clearly below."""
    output = Dense((0,), (torch.tensor([[1.0, 0.3]]).double(),), torch.zeros(1).double())
    for limit in np.linspace(0.01, 0.9, 60):
        row = Conjunction(np.ones((1, 1)), np.array([-limit]), np.array([False]))
        assert walk(ask(Network((), output, 2), unit_box(-1.0, 1.0), [row])).status == "sat"
        strict = Conjunction(np.ones((1, 1)), np.array([-limit]), np.array([True]))
        assert walk(ask(Network((), output, 2), unit_box(-1.0, 1.0), [strict])).status == "sat"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("low", [-1.0, 0.0, -0.25])
def test_a_tie_on_the_boundary_is_told_from_a_strict_one(strict: bool, low: float) -> None:
    """|x_0| <= 0 is met at x_0 = 0, which lies on region boundaries; |x_0| < 0 is not."""
    row = Conjunction(np.array([[1.0, 0.0]]), np.zeros(1), np.array([strict]))
    few = WalkOptions(projections=Projections(long=200))
    outcome = walk(ask(exact_unit_network(), unit_box(low, 1.0), [row]), few)
    if strict:
        assert outcome.status != "sat" and outcome.statistics["regions"] > 1
    else:
        assert outcome.status == "sat"


def test_a_tie_at_a_corner_of_the_box_is_found() -> None:
    """|x_0| >= 1 on [-1, 1] is met at the faces alone."""
    row = Conjunction(np.array([[-1.0, 0.0]]), np.array([-1.0]), np.array([False]))
    assert walk(ask(exact_unit_network(), unit_box(-1.0, 1.0), [row])).status == "sat"


def test_equalities_are_two_rows_that_meet_in_a_tie() -> None:
    """y_0 = 1/2 and y_1 = 1/4, met in two points of the box."""
    rows = np.vstack([np.eye(2), -np.eye(2)])
    equal = Conjunction(rows, np.array([0.5, 0.25, -0.5, -0.25]), np.zeros(4, bool))
    assert walk(ask(exact_unit_network(), unit_box(-1.0, 1.0), [equal])).status == "sat"


@pytest.mark.slow
@pytest.mark.parametrize("domain_kind", ["box", "l1"])
def test_weights_on_a_grid_with_ties_everywhere_are_never_proved_wrongly(domain_kind: str) -> None:
    """Quarters as weights and whole numbers as bounds: minima at exactly 0 are common."""
    ties = 0
    for seed in range(8):
        network = grid_weights(random_network(seed, KINDS[seed % 3]))
        domain: Domain = unit_box(-1.0, 1.0)
        if domain_kind == "l1":
            domain = type(random_domain(0, "l1"))(torch.zeros(2).double(), 1.0)  # type: ignore[call-arg]
        rows = np.random.default_rng(seed).integers(-2, 3, size=(2, 2)).astype(float)
        probe = ask(network, domain, [Conjunction(rows, np.zeros(2), np.zeros(2, bool))])
        limit = round(4 * least_worst(probe, polytope(domain))) / 4
        query = ask(network, domain, [Conjunction(rows, np.full(2, limit), np.zeros(2, bool))])
        exact = least_worst(query, polytope(domain))
        outcome = walk(query)
        if exact < 1e-9:
            ties += exact > -1e-9
            assert outcome.status != "unsat"
        elif exact > TOLERANCE:
            assert outcome.status != "sat"
    assert ties > 1


def test_a_start_on_a_region_boundary_reaches_both_sides() -> None:
    """The centre is 0, where all four neurons are at their kinks."""
    for rows in ([[0.0, 1.0]], [[0.0, -1.0]]):
        row = Conjunction(np.array(rows), np.array([-0.9]), np.array([False]))
        assert walk(ask(exact_unit_network(), unit_box(-1.0, 1.0), [row])).status == "sat"


def test_without_alternation_an_inconclusive_boundary_stays_unknown() -> None:
    """Two constraints that are met one by one in the region, and nowhere together."""
    both = Conjunction(
        np.array([[1.0, 1.0], [-1.0, 1.0]]), np.array([-0.6, -0.6]), np.zeros(2, bool)
    )
    query = ask(exact_unit_network(), unit_box(-0.5, 0.5), [both])
    assert walk(query, WalkOptions(alternate=False)).status == "unknown"
    assert walk(query, WalkOptions(alternate=False, variant="first-boundary")).status == "unknown"
    assert walk(query).status == "unsat"


def test_a_network_without_relus_is_decided_by_its_only_region() -> None:
    output = Dense((0,), (torch.tensor([[1.0, 2.0]]).double(),), torch.zeros(1).double())
    network = Network((), output, 2)
    for limit, status in ((-2.9, "sat"), (-3.1, "unsat")):
        row = Conjunction(np.ones((1, 1)), np.array([limit]), np.array([False]))
        assert walk(ask(network, unit_box(-1.0, 1.0), [row])).status == status


def test_every_strip_between_lines_through_a_box_is_seen_and_not_every_pattern() -> None:
    """Three parallel lines cut the box into four strips."""
    first = torch.tensor([[1.0, 0.0]] * 3, dtype=torch.float64)
    layer = Dense((0,), (first,), torch.tensor([0.5, 0.0, -0.5]).double())
    network = Network(
        (layer,), Dense((1,), (torch.ones(1, 3).double(),), torch.zeros(1).double()), 2
    )
    row = Conjunction(np.ones((1, 1)), np.array([-1.0]), np.array([False]))
    outcome = walk(ask(network, unit_box(-1.0, 1.0), [row]))
    assert outcome.status == "unsat"
    assert 4 <= outcome.statistics["regions_seen"] < 2**3  # not every pattern
