"""Which search goes on is decided by what is expected to be left of it."""

from __future__ import annotations

import logging

import pytest

from fgp_vnn.budget.budget import UNLIMITED
from fgp_vnn.engine.settings import Settings
from fgp_vnn.strategy import Hidden, Inputs, Neurons, Sharing, Strategy
from tests.engine.test_crew import nearly
from tests.helpers.solving import solve

SPLIT = Settings(attack=False, engine="split")


def status(soon: float, most: int | None) -> str:
    """What a short search of so many bundles comes to, with none after it."""
    strategy = Strategy(
        short=Neurons(batch=8, most=most),
        neurons=Neurons(most=0),
        hidden=Hidden(share=0.0, trial_share=0.0),
        inputs=Inputs(few=0, some=0),
        crew=Sharing(soon=soon),
    )
    return solve(nearly(0.05), lambda points: None, SPLIT, UNLIMITED, strategy).status


@pytest.mark.slow
def test_a_search_that_is_about_to_end_goes_on_when_its_turn_is_over() -> None:
    assert status(0.0, None) == "unsat"
    assert status(0.0, 140) == "unknown"
    assert status(0.3, 140) == "unsat"


def test_what_is_expected_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "fgp_vnn"):
        status(0.0, 140)
    told = [str(getattr(record, "stage", "")) for record in caplog.records]
    assert any("more to bound" in line and "its turn is over" in line for line in told)
