"""Evidence: multipliers that prove a conjunction of half-spaces empty, and those that do not."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fgp_vnn.domain.sets import Box, Domain, L1Ball
from fgp_vnn.regions.halfspaces import HalfSpaces, contradiction, without_implied
from tests.helpers.half_spaces import met_nowhere, met_somewhere
from tests.helpers.random_networks import DOMAINS, rationals

ANY = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 10)


@pytest.mark.parametrize("kind", DOMAINS)
@given(seed=st.integers(0, 400), multipliers=st.lists(ANY, min_size=8, max_size=8))
def test_no_multipliers_close_what_a_point_meets(
    kind: str, seed: int, multipliers: list[float]
) -> None:
    domain, spaces, _ = met_somewhere(seed, kind)
    weights = torch.tensor([multipliers], dtype=torch.float64)
    assert not contradiction(domain, spaces, weights)


@pytest.mark.parametrize("kind", DOMAINS)
@given(seed=st.integers(0, 400), tampered=st.floats(0.5, 1.5), at=st.integers(0, 7))
def test_multipliers_of_an_empty_region_do_not_close_a_met_one(
    kind: str, seed: int, tampered: float, at: int
) -> None:
    """The same rows, moved so that a point of the domain meets them all with equality."""
    domain, empty, multipliers = met_nowhere(seed, kind)
    _, _, point = met_somewhere(seed, kind)
    values = -(empty.rows @ (point - domain.center))
    met = empty._replace(values=values)
    multipliers = multipliers.clone()
    multipliers[at] *= tampered
    assert not contradiction(domain, met, multipliers.unsqueeze(0))


@pytest.mark.parametrize("kind", DOMAINS)
def test_planted_multipliers_are_accepted_and_their_negatives_are_not(kind: str) -> None:
    for seed in range(40):
        domain, spaces, multipliers = met_nowhere(seed, kind)
        assert contradiction(domain, spaces, multipliers.unsqueeze(0))
        assert not contradiction(domain, spaces, -multipliers.unsqueeze(0))


def test_errors_of_the_constraints_count() -> None:
    for seed in range(20):
        domain, spaces, multipliers = met_nowhere(seed, "box", margin=1e-3)
        wide = spaces._replace(errors=spaces.errors + 1e-3 / multipliers.sum())
        assert not contradiction(domain, wide, multipliers.unsqueeze(0))


@pytest.mark.parametrize("margin", [1e-12, 1e-14, 1e-16, 1e-18])
@pytest.mark.parametrize("kind", ["box", "l1"])
def test_what_is_accepted_holds_in_rational_arithmetic(kind: str, margin: float) -> None:
    """Where the margin drowns in rounding, and where it does not."""
    accepted = 0
    for seed in range(60):
        domain, spaces, multipliers = met_nowhere(seed, kind, margin=margin)
        spaces = spaces._replace(errors=torch.zeros_like(spaces.errors))
        if contradiction(domain, spaces, multipliers.unsqueeze(0)):
            assert exact_least(domain, spaces, multipliers) > 0
            accepted += 1
    assert accepted == 60 or margin < 1e-12


def exact_least(domain: Domain, spaces: HalfSpaces, multipliers: Tensor) -> Fraction:
    """The least value of the weighted sum over the domain, around its rounded centre."""
    weights = rationals(multipliers)
    rows = [rationals(row) for row in spaces.rows[0]]
    total = [
        sum((m * row[i] for m, row in zip(weights, rows, strict=True)), Fraction(0))
        for i in range(spaces.rows.shape[2])
    ]
    level = sum((m * b for m, b in zip(weights, rationals(spaces.values[0]), strict=True)), 0)
    if isinstance(domain, Box):
        radius = rationals(domain.radius)
        return level - sum((abs(t) * r for t, r in zip(total, radius, strict=True)), Fraction(0))
    assert isinstance(domain, L1Ball)
    return level - Fraction(domain.radius) * max(abs(t) for t in total)


def test_constraints_that_always_hold_are_left_out_and_others_stay() -> None:
    box = Box(-torch.ones(2).double(), torch.ones(2).double())
    rows = torch.tensor([[[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]]).double()
    values = torch.tensor([[-2.5, -0.5, 0.25]]).double()
    left = without_implied(box, HalfSpaces(rows, values, torch.zeros_like(values)))
    assert left.rows.tolist() == [[[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]]
    assert left.values.tolist() == [[0.0, -0.5, 0.25]]


def test_a_margin_of_nothing_is_no_evidence() -> None:
    """x <= 0 and x >= 0: met by 0 alone."""
    box = Box(-torch.ones(1).double(), torch.ones(1).double())
    rows, values = torch.tensor([[[1.0], [-1.0]]]).double(), torch.zeros(1, 2).double()
    for scale in (1.0, 1e-300, 1e300, math.inf):
        weights = torch.full((1, 2), scale, dtype=torch.float64)
        assert not contradiction(box, HalfSpaces(rows, values, values), weights)


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_negative_multiplier_of_a_constraint_with_room_is_no_evidence(kind: str) -> None:
    """-(a . (x - c) + b) is positive on the whole domain where the constraint always holds."""
    for seed in range(5):
        domain, spaces, _ = met_somewhere(seed, kind)
        reach = domain.outer_support(spaces.rows)
        loose = spaces._replace(values=-2 * reach)
        assert not contradiction(domain, loose, -torch.ones_like(reach) / reach)
