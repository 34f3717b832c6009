"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tests.helpers.places import SHARED_DATA

# No test depends on how fast the machine is, and a failure is there again on the next run.
settings.register_profile("suite", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("suite")


@pytest.fixture
def shared_data() -> Path:
    """The folder of benchmark data beside the repository; a checkout may be without it."""
    if not (SHARED_DATA / "vnncomp").is_dir():
        pytest.skip("the benchmark data folder ../shared/data is not there")
    return SHARED_DATA
