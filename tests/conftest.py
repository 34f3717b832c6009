"""Fixtures for all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

from tests.helpers.places import ROOT, SHARED_DATA, TESTS

# No test depends on how fast the machine is, and a failure is there again on the next run.
settings.register_profile("suite", deadline=None, max_examples=18, derandomize=True)
settings.load_profile("suite")


@pytest.fixture
def shared_data() -> Path:
    """The folder of benchmark data beside the repository; a checkout may be without it."""
    if not (SHARED_DATA / "vnncomp").is_dir():
        pytest.skip("the benchmark data folder ../shared/data is not there")
    return SHARED_DATA


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What can be called for python by tests that are not about the start of a process."""
    if not hasattr(os, "fork"):
        yield sys.executable
        return
    from tests.helpers import warm_shared

    own = tmp_path_factory.getbasetemp()
    run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with warm_shared.python(run / "warm") as called:
        yield called


@pytest.fixture
def warm_command(warm_python: str) -> list[str]:
    """The words that begin a command line of the tool, where its start is not in question."""
    return [warm_python, "-m", "fgp_vnn"]


# What `--quick` leaves out: all that is marked slow, the rooms whose tests start processes, and of
# each parametrised test all but the first case. No choice depends on how long anything took.
_PROCESSES = ("bench", "cli", "docs", "report", "scripts", "vnncomp")
settings.register_profile("quick", settings.get_profile("suite"), max_examples=10)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only a part of the tests")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    left_out = config.getoption("--quick") and collection_path.parent == TESTS
    return True if left_out and collection_path.name in _PROCESSES else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each worker begins to import at another place. Where the tests were never run before, pytest
    compiles them, which takes most of this time: what one worker has done the others find."""
    worker = getattr(session.config, "workerinput", None)
    whole = [Path(argument).resolve() for argument in session.config.args] == [TESTS]
    if worker is None or not whole or session.config.getoption("--quick"):
        return
    paths = sorted(TESTS.rglob("test_*.py"))
    first = len(paths) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in (*paths[first:], *paths[:first]):
        with suppress(Exception, pytest.skip.Exception):  # told when it is collected
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking through it again and again took 6 % of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests are first: what is left at the end, for one process or the other, is short."""
    if not config.getoption("--quick"):
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)
        return
    seen: set[str] = set()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        slow = item.get_closest_marker("slow") is not None
        (left if slow or name in seen else kept).append(item)
        seen.add(name)
    config.hook.pytest_deselected(items=left)
    items[:] = kept
