"""What the tests of reading share."""

from __future__ import annotations

from tests.api.conftest import operators_listed_once

__all__ = ["operators_listed_once"]
