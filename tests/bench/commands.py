"""The command line as a process of its own, with stand-ins for the verifier, and its children."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil

from tests.helpers.bench_folders import VERIFIER
from tests.helpers.places import ROOT


def command(folder: Path, out: Path, *arguments: str) -> list[str]:
    """The words of `fgp-vnn bench FOLDER --out OUT`, to be run with `environment()`."""
    fixed = ["--verifier", VERIFIER, "--out", str(out)]
    return [sys.executable, "-m", "fgp_vnn", "bench", str(folder), *fixed, *arguments]


def environment() -> dict[str, str]:
    """This process's environment, in which the package and the stand-ins can be imported."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but is not yet waited for does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def ends(pid: int) -> bool:
    """Whether a process ends within a minute: one that was killed may still run for a moment."""
    last = time.monotonic() + 60
    while is_alive(pid) and time.monotonic() < last:
        time.sleep(0.01)
    return not is_alive(pid)


def written_pid(path: Path) -> int:
    """The process id in a file, once it is there."""
    while not (path.exists() and path.read_text().strip()):
        time.sleep(0.01)
    return int(path.read_text())
