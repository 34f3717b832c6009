"""The reason of an open region: a tie only where the gap is within the proved rounding error."""

from __future__ import annotations

import math

import pytest

from fgp_vnn.regions.gaps import FAILED, Gap, describe_gaps
from fgp_vnn.regions.lp import solve_region
from tests.helpers.half_spaces import met_nowhere, met_somewhere
from tests.helpers.random_networks import DOMAINS


@pytest.mark.parametrize(
    ("gap", "kind"),
    [
        (Gap(-3e-17, 2e-17, 5e-17), "tie"),
        (Gap(3e-17, 3e-17, 5e-17), "tie"),
        (Gap(-6e-17, 2e-17, 5e-17), "wide"),  # the region may be deeper than rounding explains
        (Gap(-3e-17, 1e-9, 5e-17), "wide"),  # and may be empty by more than that
        (Gap(-0.1, -0.069, 5e-17), "refused"),
        (Gap(-0.1, 0.0, math.inf), "overflow"),
        (Gap(math.nan, 0.0, 5e-17), "failed"),
        (FAILED, "failed"),
    ],
)
def test_a_gap_is_a_tie_only_within_rounding(gap: Gap, kind: str) -> None:
    assert gap.kind == kind
    assert ("a tie" in describe_gaps([gap])) == (kind == "tie")


def test_a_reason_has_the_widest_gap_of_each_kind() -> None:
    said = describe_gaps([Gap(0.0, 0.0, 5e-17), Gap(-3e-17, 0.0, 5e-17), FAILED])
    assert said == (
        "2 times a tie: the region and the unsafe set are within 3.0e-17 of touching, "
        "the rounding error is 5.0e-17; 1 times the solver failed"
    )


@pytest.mark.parametrize("kind", DOMAINS)
def test_the_gap_of_a_region_holds_what_was_planted(kind: str) -> None:
    """A region that is met by a margin has a candidate that is as deep; one whose margin drowns in
    the errors of its constraints is a tie, by what they are."""
    for seed in range(6):
        domain, spaces, _ = met_somewhere(seed, kind, margin=1e-3)
        gap = solve_region(domain, spaces, 1).gap
        assert gap.kind == "refused" and gap.least <= gap.most + gap.rounding
        domain, spaces, _ = met_nowhere(seed, kind, margin=1e-3)
        reach = domain.outer_support(spaces.rows) + spaces.values.abs()
        drowned = spaces._replace(errors=1.1 * reach)
        left = solve_region(domain, drowned, 1)
        assert left.multipliers is None and left.gap.kind == "tie"
        assert 0 < left.gap.width <= left.gap.rounding
