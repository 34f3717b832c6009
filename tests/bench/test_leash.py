from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fgp_vnn.bench import leash
from tests.bench.commands import ends, is_alive, written_pid


def start(limit: float, script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", leash.__file__, str(limit), "bash", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def answer(limit: float, script: str) -> dict[str, float | None]:
    with start(limit, script) as process:
        assert process.stdin and process.stdout
        result: dict[str, float | None] = json.loads(process.stdout.read())
        process.stdin.close()
    return result


def test_the_exit_code_and_the_time_come_back() -> None:
    assert answer(60, "exit 3")["code"] == 3
    seconds = answer(60, "sleep 0.2")["seconds"]
    assert seconds is not None and seconds >= 0.2


def test_a_command_whose_time_is_up_is_killed_with_its_children(tmp_path: Path) -> None:
    name = tmp_path / "pid"
    assert answer(0.3, f"sleep 3600 & echo $! > {name}; wait")["code"] is None
    assert ends(written_pid(name))


def test_children_that_outlive_a_command_are_killed(tmp_path: Path) -> None:
    name = tmp_path / "pid"
    assert answer(60, f"sleep 3600 & echo $! > {name}")["code"] == 0
    assert ends(written_pid(name))


def test_the_command_ends_when_the_leash_does(tmp_path: Path) -> None:
    """As when the process that holds it is killed."""
    name = tmp_path / "pid"
    with start(3600, f"sleep 3600 & echo $! > {name}; wait") as process:
        child = written_pid(name)
        assert is_alive(child)
        assert process.stdin
        process.stdin.close()
        assert process.wait(60) == 1
    assert ends(child)
