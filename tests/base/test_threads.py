"""Threads that a copy of the process can do without."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.command_line import ENVIRONMENT

WATCHED = """
import threading
from fgp_vnn.base.threads import only_watched, start_watching
end = threading.Event()
assert only_watched()
start_watching("something", end.wait)
assert only_watched()
other = threading.Thread(target=end.wait, daemon=True)
other.start()
assert not only_watched()
end.set()
other.join()
assert only_watched()
"""
CAREFUL = """
import os, threading
from fgp_vnn.engine.parallel.processes import can_fork
assert can_fork() or not os.path.exists("/proc/self/stat")
threading.Thread(target=threading.Event().wait, daemon=True).start()
assert not can_fork()
"""


def test_threads_of_others_are_told_from_those_that_only_watch() -> None:
    subprocess.run([sys.executable, "-c", WATCHED], env=ENVIRONMENT, check=True, timeout=60)


@pytest.mark.slow
def test_a_process_with_threads_of_others_is_not_copied(warm_python: str) -> None:
    subprocess.run([warm_python, "-c", CAREFUL], env=ENVIRONMENT, check=True, timeout=60)
