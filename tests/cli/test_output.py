"""An output that is full, closed or read by nobody: one clear line at most, and its exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fgp_vnn.cli.main import COMMANDS, main
from tests.helpers.command_line import COMMAND, ENVIRONMENT, MODEL, SAFE, UNSAFE


def redirected(command: list[str], output: int) -> tuple[int, str]:
    """The exit code and the errors of a process that prints to this file descriptor."""
    done = subprocess.run(
        command,
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


Print = Callable[[str, list[str], int], tuple[int, str]]


@pytest.fixture
def print_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], warm_python: str
) -> Iterator[Print]:
    """The same as `redirected` in this process, which has loaded all that a command needs."""

    def run(command: str, arguments: list[str], output: int) -> tuple[int, str]:
        with monkeypatch.context() as patch, os.fdopen(os.dup(output), "w") as stream:
            patch.setattr("sys.stdout", stream)
            patch.setattr("sys.executable", warm_python)  # that of workers
            return main([command, *arguments]), capsys.readouterr().err

    yield run


@pytest.fixture
def full() -> Iterator[int]:
    """A device that is always full."""
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    output = os.open("/dev/full", os.O_WRONLY)
    yield output
    os.close(output)


@pytest.fixture
def unread() -> Iterator[int]:
    """A pipe that nobody reads any longer."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "report"])
def test_a_full_disk_behind_the_output_is_a_line_and_exit_code_2(
    command: str, usual: dict[str, list[str]], tmp_path: Path, full: int, print_to: Print
) -> None:
    """Also where 1 has a meaning of its own, such as a contradiction."""
    code, err = print_to(command, usual[command], full)
    assert code == 2
    *before, last = err.splitlines()
    assert last.startswith("fgp-vnn: ") and last.endswith("No space left on device")
    assert all(line.startswith("fgp-vnn: the results so far are in") for line in before)
    if command == "bench":  # and what was done is not lost
        assert (tmp_path / "out" / "results.jsonl").read_text().count("\n") >= 1


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "report"])
def test_a_reader_that_goes_away_is_exit_code_141(
    command: str, usual: dict[str, list[str]], unread: int, print_to: Print
) -> None:
    code, err = print_to(command, usual[command], unread)
    assert code == 141
    assert all(line.startswith("fgp-vnn: the results so far are in") for line in err.splitlines())


def test_a_process_whose_output_goes_nowhere_ends_without_a_traceback(
    usual: dict[str, list[str]], full: int, unread: int, warm_command: list[str]
) -> None:
    command = ["verify", *usual["verify"]]
    code, err = redirected([*warm_command, *command], full)
    assert (code, err.count("\n")) == (2, 1)
    assert redirected([*warm_command, *command], unread) == (141, "")


def test_help_on_a_full_disk_and_a_closed_output_are_no_tracebacks(full: int) -> None:
    code, err = redirected([*COMMAND, "verify", "--help"], full)
    assert (code, err.count("\n")) == (2, 1)
    shell = '"$@" >&-; test $? = 0'
    words = ["sh", "-c", shell, "-", *COMMAND, "completion", "bash"]
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_is_no_text_can_be_printed(tmp_path: Path, warm_command: list[str]) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.onnx")
    code, err = redirected([*warm_command, "networks", name], subprocess.DEVNULL)
    assert (code, err) == (2, "")


def test_a_person_at_a_terminal_is_told_where_the_counterexample_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "out.txt"
    for terminal in (False, True):
        monkeypatch.setattr(sys.stdout, "isatty", lambda told=terminal: told)
        assert main(["verify", str(MODEL), str(UNSAFE)]) == 0
        assert ("--results FILE" in capsys.readouterr().out) == terminal
    assert main(["verify", str(MODEL), str(UNSAFE), "--results", str(results)]) == 0
    assert f"is in {results}" in capsys.readouterr().out
    assert main(["verify", str(MODEL), str(SAFE)]) == 0
    assert "counterexample" not in capsys.readouterr().out
