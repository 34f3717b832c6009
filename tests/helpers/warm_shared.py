"""One process of `warm` for all workers of a run: it lasts as long as one of them needs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers import warm
from tests.helpers.command_line import ENVIRONMENT
from tests.helpers.places import ROOT


@contextmanager
def python(folder: Path) -> Iterator[str]:
    """What can be called for python; those who name the same folder share a process."""
    with _state(folder) as state:
        end = _join(folder / str(state["started"])) if state["using"] else None
        if end is None:
            state["started"] += 1
            state["using"] = 0
            end = _start(folder / str(state["started"]))
        state["using"] += 1
        mine = state["started"]
    try:
        yield str(folder / str(mine) / warm.PYTHON)
    finally:
        with _state(folder) as state:
            state["using"] -= state["started"] == mine
            os.close(end)


@contextmanager
def _state(folder: Path) -> Iterator[dict[str, int]]:
    """How many processes were started, and how many workers use the last: one reads at a time."""
    import fcntl

    folder.mkdir(exist_ok=True)
    with (folder / "state").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        state = json.loads(file.read() or '{"started": 0, "using": 0}')
        yield state
        file.truncate(0)
        file.write(json.dumps(state))


def _join(folder: Path) -> int | None:
    """The end of a line that keeps a process going; none where its worker was killed with it."""
    try:
        return os.open(folder / "line", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def _start(folder: Path) -> int:
    """A process that goes on as long as anybody has the end of its line."""
    folder.mkdir()
    os.mkfifo(folder / "line")
    ear = os.open(folder / "line", os.O_RDONLY | os.O_NONBLOCK)
    end = os.open(folder / "line", os.O_WRONLY)
    words = [sys.executable, "-m", warm.__name__, str(folder)]
    with subprocess.Popen(
        words, stdin=ear, stdout=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT
    ) as process:
        os.close(ear)
        assert process.stdout is not None and process.stdout.readline()
        process.wait()
    return end
