"""verify --jobs: processes that come when they pay, and go with the first one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from fgp_vnn.cli.main import main
from tests.helpers.command_line import COMMAND, ENVIRONMENT, copy_of, hard_instance

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


def verify_hard(folder: Path, *options: str) -> list[str]:
    model, prop, *_ = hard_instance(folder)
    return ["verify", str(model), str(prop), "--no-attack", *options]


Start = Callable[[list[str]], subprocess.Popen[str]]


@pytest.fixture
def start(warm_command: list[str]) -> Start:
    """What starts a command and pipes its output."""

    def start(command: list[str]) -> subprocess.Popen[str]:
        words, pipe = [*warm_command, *command], subprocess.PIPE
        return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT)

    return start


def workers(number: int, count: int) -> list[psutil.Process]:
    """The processes of a search by the process of this number, once there are so many."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = psutil.Process(number).children()
        if len(found) >= count:
            return list(found)
        time.sleep(0.02)
    raise AssertionError(f"there are no {count} processes")


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_signal_to_the_first_process_ends_all(
    number: signal.Signals, code: int, tmp_path: Path, start: Start
) -> None:
    with start(verify_hard(tmp_path, "--jobs", "3", "--timeout", "100")) as process:
        found = workers(copy_of(process), 3)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        gone, alive = psutil.wait_procs(found, timeout=20)
    assert process.returncode == code
    assert not alive and len(gone) == 3
    assert err == ("fgp-vnn: interrupted\n" if number == signal.SIGINT else "")


def test_ctrl_c_on_a_terminal_reaches_all_and_is_told_once(tmp_path: Path) -> None:
    command = verify_hard(tmp_path, "--jobs", "2", "--timeout", "100")
    with subprocess.Popen(
        [*COMMAND, *command],
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
    ) as process:
        found = workers(process.pid, 2)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        _, alive = psutil.wait_procs(found, timeout=20)
    assert (process.returncode, err, alive) == (130, "fgp-vnn: interrupted\n", [])


def test_a_killed_worker_is_replaced(tmp_path: Path, start: Start) -> None:
    with start(verify_hard(tmp_path, "--jobs", "2", "--timeout", "100", "-v")) as process:
        number = copy_of(process)
        first = workers(number, 2)
        first[0].kill()
        psutil.wait_procs(first[:1], timeout=20)
        assert len({child.pid for child in workers(number, 2)} - {first[0].pid}) == 2
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert "a process of the search has died" in err


def test_one_job_is_one_process(tmp_path: Path, start: Start) -> None:
    with start(verify_hard(tmp_path, "--jobs", "1", "--timeout", "2")) as process:
        number = copy_of(process)
        with suppress(psutil.NoSuchProcess):
            while True:
                assert not psutil.Process(number).children()
                time.sleep(0.05)
    assert process.returncode == 0


@pytest.mark.parametrize("value", ["0", "-1", "many", "1e9"])
def test_no_number_of_processes_is_refused(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verify_hard(tmp_path), "--jobs", value]) == 2
    assert "a whole number from 1 to" in capsys.readouterr().err


def test_engines_that_do_not_share_refuse_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verify_hard(tmp_path), "--jobs", "2", "--engine", "walk"]) == 2
    assert "--jobs is used only by --engine auto or split" in capsys.readouterr().err
