"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tests.helpers.places import SHARED_DATA, TESTS

# No test depends on how fast the machine is, and a failure is there again on the next run.
settings.register_profile("suite", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("suite")


@pytest.fixture
def shared_data() -> Path:
    """The folder of benchmark data beside the repository; a checkout may be without it."""
    if not (SHARED_DATA / "vnncomp").is_dir():
        pytest.skip("the benchmark data folder ../shared/data is not there")
    return SHARED_DATA


# What `--quick` leaves out: all that is marked slow, the rooms whose tests start processes, and of
# each parametrised test all but the first case. No choice depends on how long anything took.
_PROCESSES = ("bench", "cli", "docs", "report", "scripts", "vnncomp")
settings.register_profile("quick", settings.get_profile("suite"), max_examples=10)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only a part of the tests")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.load_profile("quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--quick"):
        return
    seen: set[str] = set()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        room = item.path.relative_to(TESTS).parts[0]
        slow = item.get_closest_marker("slow") is not None
        (left if slow or room in _PROCESSES or name in seen else kept).append(item)
        seen.add(name)
    config.hook.pytest_deselected(items=left)
    items[:] = kept
