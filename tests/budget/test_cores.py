"""Cores that there are, and memory that several processes share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fgp_vnn.budget.host import cores, group_cores
from tests.helpers.command_line import ENVIRONMENT

SHARE = """
import resource
from fgp_vnn.budget.host import free_memory, share_limits
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, resource.RLIM_INFINITY))
before = free_memory()
share_limits(4)
after = free_memory()
assert 0.2 * before < after < 0.3 * before, (before, after)
"""


def limited(folder: Path, process: str, **files: str) -> list[int]:
    """The cores of control groups; in names of files __ is a folder and -- a dot."""
    (folder / "process").write_text(process)
    for name, text in files.items():
        path = folder / "mount" / name.replace("__", "/").replace("--", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(group_cores(folder / "process", folder / "mount"))


def test_control_groups_of_both_versions_limit_cores(tmp_path: Path) -> None:
    files = {"a__cpu--max": "250000 100000\n", "a__b__cpu--max": "max 100000\n"}
    assert limited(make(tmp_path / "x"), "0::/a/b\n", **files) == [2]
    files = {"cpu__a__cpu--cfs_quota_us": "50000\n", "cpu__a__cpu--cfs_period_us": "100000\n"}
    assert limited(make(tmp_path / "y"), "3:cpu,cpuacct:/a\n", **files) == [1]
    files = {"cpu__cpu--cfs_quota_us": "-1\n", "cpu__cpu--cfs_period_us": "100000\n"}
    assert limited(make(tmp_path / "z"), "3:cpu:/\n", **files) == []


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(("said", "most"), [("1", 1), ("1,2", 1), ("0", 1), ("many", 1 << 20)])
def test_what_is_said_to_openmp_limits_cores(
    said: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert 1 <= cores() <= most
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's limits of data")
def test_a_process_can_be_left_a_part_of_what_its_limit_leaves() -> None:
    subprocess.run([sys.executable, "-c", SHARE], env=ENVIRONMENT, check=True, timeout=60)
