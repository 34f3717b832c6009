"""What the tests of the engines share."""

from __future__ import annotations

import pytest

from tests.helpers import children


@pytest.fixture(autouse=True)
def own_children() -> None:
    """The processes that a test counts are its own."""
    children.begin()
