"""The share of memory that each part gets, and that it keeps to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fgp_vnn.budget import capacity as memory
from fgp_vnn.strategy import COMMON
from tests.budget.memory_peaks import LARGE, PARTS, SMALL
from tests.helpers.places import ROOT
from tests.helpers.small_networks import random_network

OVERHEAD = 24 << 20  # bytes: weights, caches of kernels, what the allocator keeps


@given(st.integers(0, 50), st.integers(0, 60))
def test_parts_are_all_numbers_in_order(count: int, some: int) -> None:
    runs = list(memory.parts(count, some))
    assert [i for run in runs for i in range(count)[run]] == list(range(count))
    assert all(len(range(count)[run]) <= max(some, 1) for run in runs)
    assert runs


def test_more_memory_fits_more_and_none_fits_one() -> None:
    network = random_network([5, 8, 8, 3], 0)
    for fit in (memory.boxes_at_once, memory.regions_at_once, memory.points_at_once):
        counts = [fit(network, limit) for limit in (0, 1 << 14, 1 << 20)]
        assert counts[0] == 1 < counts[1] < counts[2]
    ascents = [memory.ascents_at_once(network, 2, limit) for limit in (0, 1 << 14, 1 << 20)]
    assert ascents[0] == 1 < ascents[1] < ascents[2]


def test_on_a_cpu_rows_and_ascents_are_no_more_with_all_the_memory_there_is() -> None:
    network = random_network([5, 8, 8, 3], 0)
    rows = [memory.rows_at_once(network, 2, 1, limit) for limit in (COMMON.cached, 1 << 60)]
    ascents = [memory.ascents_at_once(network, 2, limit) for limit in (COMMON.ascents, 1 << 60)]
    assert rows[0] == rows[1] < ascents[0] == ascents[1]


CHUNKED = {"condense"}  # takes little at a time, whatever the limit


@pytest.fixture
def peaks() -> dict[str, list[int]]:
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the peak of a process's memory cannot be reset here")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        # What is freed goes back at once: peaks differ by 1 MB from run to run, by 10 with 2 MB.
        "MALLOC_MMAP_THRESHOLD_": str(1 << 17),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.budget.memory_peaks"],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    measured: dict[str, list[int]] = json.loads(done.stdout)
    return measured


@pytest.mark.slow
def test_each_part_keeps_to_a_small_limit(peaks: dict[str, list[int]]) -> None:
    """All parts in one test: they are measured by one process, which takes a while."""
    assert peaks.keys() == PARTS.keys()
    for part, (small, large) in peaks.items():
        assert small <= SMALL.memory + OVERHEAD, part
        assert large <= LARGE.memory, part
        if part not in CHUNKED:  # the limit is what kept it small
            assert small + OVERHEAD < large, part
