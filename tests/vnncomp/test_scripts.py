"""The competition scripts as subprocesses, with stand-ins for the verifier."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

SCRIPTS = ROOT / "vnncomp"
STATUSES = {"sat", "unsat", "unknown", "timeout", "error"}

# Where the stand-in finds its arguments: verify ONNX VNNLIB --timeout SECONDS --results FILE.
WRITE_UNSAT = 'echo unsat > "$7"'

Tool = Callable[[str], Mapping[str, str]]


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    """Makes a stand-in with the given shell lines, and the environment that names it."""

    def make(body: str) -> Mapping[str, str]:
        path = tmp_path / "fgp-vnn"
        path.write_text(f'#!/usr/bin/env bash\necho "$@" > "{tmp_path}/called"\n{body}\n')
        path.chmod(0o755)
        return os.environ | {"FGP_VNN": str(path), "TMPDIR": str(tmp_path)}

    return make


def call(
    script: str, *arguments: str | Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(SCRIPTS / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)


def run_instance(
    results: str | Path, timeout: str, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return call("run_instance.sh", "v1", "digits", "a.onnx", "b.vnnlib", results, timeout, env=env)


@pytest.mark.parametrize("status", ["sat", "unsat", "unknown", "timeout", "error"])
def test_every_verdict_reaches_the_results_file(tool: Tool, tmp_path: Path, status: str) -> None:
    results = tmp_path / "out.txt"
    done = run_instance(results, "120", tool(f'echo {status} > "$7"'))
    assert (done.returncode, done.stderr) == (0, "")
    assert results.read_text() == f"{status}\n"


def test_a_counterexample_is_left_as_it_was_written(tool: Tool, tmp_path: Path) -> None:
    results = tmp_path / "out.txt"
    done = run_instance(results, "5", tool('printf "sat\\n((X_0 0.5)\\n(Y_0 1.5))\\n" > "$7"'))
    assert done.returncode == 0
    assert results.read_text() == "sat\n((X_0 0.5)\n(Y_0 1.5))\n"


@pytest.mark.parametrize("timeout", ["210.0", "120", "5", "1.5", ".5"])
def test_the_verifier_gets_less_than_the_timeout(tool: Tool, tmp_path: Path, timeout: str) -> None:
    done = run_instance(tmp_path / "out.txt", timeout, tool(WRITE_UNSAT))
    assert done.returncode == 0
    words = (tmp_path / "called").read_text().split()
    assert words[:4] == ["verify", "a.onnx", "b.vnnlib", "--timeout"]
    assert 0 < float(words[4]) < float(timeout)


def test_the_results_file_says_timeout_before_the_work_starts(tool: Tool, tmp_path: Path) -> None:
    results = tmp_path / "out.txt"
    results.write_text("unsat\n")  # of an earlier run
    done = run_instance(results, "60", tool(f'cp "$7" "{tmp_path}/seen"; {WRITE_UNSAT}'))
    assert done.returncode == 0
    assert (tmp_path / "seen").read_text() == "timeout\n"


def test_a_relative_results_path_is_where_the_caller_is(tool: Tool, tmp_path: Path) -> None:
    arguments = ["v1", "c", "a.onnx", "b.vnnlib", "out.txt", "9"]
    command = ["bash", str(SCRIPTS / "run_instance.sh"), *arguments]
    subprocess.run(command, cwd=tmp_path, env=tool(WRITE_UNSAT), check=True, timeout=60)
    assert (tmp_path / "out.txt").read_text() == "unsat\n"


@pytest.mark.parametrize(
    "body",
    [
        "exit 1",
        "echo 'fgp-vnn: no such file' >&2; exit 2",
        "kill -KILL $$",
        "kill -SEGV $$",
    ],
)
def test_a_verifier_that_fails_leaves_error(tool: Tool, tmp_path: Path, body: str) -> None:
    results = tmp_path / "out.txt"
    done = run_instance(results, "60", tool(body))
    assert done.returncode == 0
    assert results.read_text() == "error\n"


def test_what_a_failing_verifier_says_is_shown(tool: Tool, tmp_path: Path) -> None:
    done = run_instance(tmp_path / "out.txt", "60", tool("echo 'fgp-vnn: bad' >&2; exit 2"))
    assert done.stderr == "fgp-vnn: bad\n"


def test_a_verdict_written_before_a_crash_is_kept(tool: Tool, tmp_path: Path) -> None:
    results = tmp_path / "out.txt"
    assert run_instance(results, "60", tool(f"{WRITE_UNSAT}; kill -SEGV $$")).returncode == 0
    assert results.read_text() == "unsat\n"


@pytest.mark.parametrize("text", ["holds", "", "Sat", "unsat maybe"])
def test_a_word_that_is_no_status_becomes_error(tool: Tool, tmp_path: Path, text: str) -> None:
    results = tmp_path / "out.txt"
    assert run_instance(results, "60", tool(f'echo "{text}" > "$7"')).returncode == 0
    assert results.read_text() == "error\n"


@pytest.mark.parametrize("ignore", ["", "trap '' TERM"])
def test_a_verifier_that_runs_on_is_stopped_in_time(
    tool: Tool, tmp_path: Path, ignore: str
) -> None:
    results = tmp_path / "out.txt"
    body = f"{ignore}\nwhile :; do sleep 0.1; done"
    done = run_instance(results, "2", tool(body))
    assert done.returncode == 0
    assert results.read_text() == "timeout\n"


def test_no_other_files_are_left_beside_the_results(tool: Tool, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    run_instance(folder / "out.txt", "60", tool("exit 1"))
    assert [path.name for path in folder.iterdir()] == ["out.txt"]


@pytest.mark.parametrize("timeout", ["", "abc", "-5", "0", "0.0", "1e3", "1,5", "inf", "5 s"])
def test_a_bad_timeout_is_refused_in_one_line(tool: Tool, tmp_path: Path, timeout: str) -> None:
    results = tmp_path / "out.txt"
    done = run_instance(results, timeout, tool(WRITE_UNSAT))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "TIMEOUT" in done.stderr
    assert not results.exists() and not (tmp_path / "called").exists()


@pytest.mark.parametrize("name", ["missing/out.txt", "", "."])
def test_an_unwritable_results_file_is_refused_in_one_line(
    tool: Tool, tmp_path: Path, name: str
) -> None:
    results = tmp_path / name if name else ""
    done = run_instance(results, "60", tool(WRITE_UNSAT))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "RESULTS_FILE" in done.stderr
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("install_tool.sh", []),
        ("install_tool.sh", ["v1", "more"]),
        ("install_tool.sh", ["v2"]),
        ("prepare_instance.sh", ["v1", "c", "a.onnx"]),
        ("prepare_instance.sh", ["v0", "c", "a.onnx", "b.vnnlib"]),
        ("run_instance.sh", ["v1", "c", "a.onnx", "b.vnnlib", "out.txt"]),
        ("run_instance.sh", ["1", "c", "a.onnx", "b.vnnlib", "out.txt", "60"]),
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    tool: Tool, script: str, arguments: list[str], tmp_path: Path
) -> None:
    done = call(script, *arguments, env=tool(WRITE_UNSAT))
    assert done.returncode == 2
    assert done.stderr.startswith(f"{script}: ") and done.stderr.count("\n") == 1
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("script", ["prepare_instance.sh", "run_instance.sh"])
def test_a_missing_verifier_is_named(tmp_path: Path, script: str) -> None:
    arguments = ["v1", "c", "a.onnx", "b.vnnlib", str(tmp_path / "out.txt"), "60"]
    if script == "prepare_instance.sh":
        arguments = arguments[:4]
    done = call(script, *arguments, env=os.environ | {"FGP_VNN": str(tmp_path / "nothing")})
    assert done.returncode == 2 and str(tmp_path / "nothing") in done.stderr


def prepare(env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return call("prepare_instance.sh", "v1", "digits", "a.onnx", "b.vnnlib", env=env)


def test_prepare_accepts_what_can_be_read(tool: Tool, tmp_path: Path) -> None:
    assert prepare(tool("exit 0")).returncode == 0
    assert (tmp_path / "called").read_text() == "supports a.onnx b.vnnlib\n"


def test_prepare_declines_what_cannot_be_read(tool: Tool) -> None:
    done = prepare(tool("echo 'fgp-vnn: Sigmoid is not piecewise linear' >&2; exit 2"))
    assert done.returncode == 1
    assert done.stderr == "fgp-vnn: Sigmoid is not piecewise linear\n"


def start(env: Mapping[str, str], results: Path) -> subprocess.Popen[bytes]:
    """A run whose verifier writes its process number to `pid` and then goes on for long."""
    arguments = ["v1", "c", "a.onnx", "b.vnnlib", str(results), "60"]
    command = ["bash", str(SCRIPTS / "run_instance.sh"), *arguments]
    return subprocess.Popen(command, env=env)


def wait_for(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.02)


def running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


LONG = 'echo $$ > "$0.tmp"; mv "$0.tmp" "$0.pid"; for i in $(seq 500); do sleep 0.1; done'


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_stops_its_verifier(
    tool: Tool, tmp_path: Path, number: signal.Signals
) -> None:
    env, pid_file = tool(LONG), tmp_path / "fgp-vnn.pid"
    with start(env, tmp_path / "out.txt") as process:
        wait_for(pid_file.exists)
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert not running(int(pid_file.read_text()))
    assert (tmp_path / "out.txt").read_text() == "timeout\n"


def test_prepare_ends_what_a_killed_run_left_behind(tool: Tool, tmp_path: Path) -> None:
    env, pid_file = tool(LONG), tmp_path / "fgp-vnn.pid"
    with start(env, tmp_path / "out.txt") as process:
        wait_for(pid_file.exists)
        wait_for(lambda: bool(list(tmp_path.glob("fgp_vnn-*/[0-9]*"))))
        process.kill()
    pid = int(pid_file.read_text())
    assert running(pid)
    assert prepare(tool("exit 0")).returncode == 0
    wait_for(lambda: not running(pid))
    assert not list(tmp_path.glob("fgp_vnn-*/*"))
    assert (tmp_path / "out.txt").read_text().strip() in STATUSES


def test_prepare_leaves_a_run_under_way_alone(tool: Tool, tmp_path: Path) -> None:
    env, pid_file = tool(LONG), tmp_path / "fgp-vnn.pid"
    with start(env, tmp_path / "out.txt") as process:
        wait_for(pid_file.exists)
        wait_for(lambda: bool(list(tmp_path.glob("fgp_vnn-*/[0-9]*"))))
        assert prepare(tool("exit 0")).returncode == 0
        assert running(int(pid_file.read_text())) and process.poll() is None
        process.terminate()
        process.wait(20)


def test_the_shell_scripts_parse() -> None:
    scripts = [*SCRIPTS.glob("*.sh"), *(ROOT / "scripts").glob("*.sh"), ROOT / ".ci" / "run"]
    assert len(scripts) == 8
    for script in scripts:
        subprocess.run(["bash", "-n", str(script)], check=True)
