"""The end from outside: SIGTERM, a missed deadline, a full disk."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.cli.main import main
from tests.helpers.command_line import COMMAND, ENVIRONMENT, MODEL, SAFE, hard_instance, loaded, run

NO_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from fgp_vnn.cli.main import main
sys.exit(main())
"""

# A search that has forgotten the time, in Python and in one long kernel.
ASLEEP = "time.sleep(600)"
KERNEL = "print(flush=True); torch.linalg.eigvals(torch.rand(4000, 4000, dtype=torch.float64))"
STUCK = """
import sys, time, torch
import fgp_vnn.api.verify
def stuck(*files, **settings):
    {body}
fgp_vnn.api.verify.verify = stuck
from fgp_vnn.cli.main import main
sys.exit(main())
"""


def stuck(python: str, body: str, *arguments: str | Path) -> list[str]:
    code = STUCK.format(body=body)
    return [python, "-c", code, "verify", str(MODEL), str(SAFE), *map(str, arguments)]


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


def clean(folder: Path) -> bool:
    return not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("library", ["libtorch", "onnxruntime_pybind"])
def test_a_stopped_run_says_timeout(tmp_path: Path, library: str) -> None:
    """While torch is being imported, and during the work."""
    results = tmp_path / "out.txt"
    command = [*COMMAND, "verify", *map(str, hard_instance(tmp_path)), "--results", str(results)]
    with start(command) as process:
        while not loaded(process, library):
            time.sleep(0.01)
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (143, "")
    assert out.startswith("timeout in ") and out.endswith("(stopped by SIGTERM)\n")
    assert results.read_text() == "timeout\n"
    assert clean(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("command", ["certify", "radius", "bounds"])
def test_a_stopped_command_says_so_and_where_its_points_are(tmp_path: Path, command: str) -> None:
    model, prop, *_ = hard_instance(tmp_path)
    points, output = tmp_path / "points.npy", tmp_path / "out.csv"
    np.save(points, np.zeros((3, 20)))
    rest: dict[str, list[str | Path]] = {
        "certify": [points, "--epsilon", "1", "--engine", "walk", "--output", output],
        "radius": [points, "--max", "9", "--gap", "1e-9", "--engine", "walk", "--output", output],
        "bounds": [prop, "--gap", "1e-9"],
    }
    kept = "" if command == "bounds" else f"; {output} has these points; resume with --resume"
    with start([*COMMAND, command, str(model), *map(str, rest[command])]) as process:
        while not (output.exists() if kept else loaded(process, "libtorch")):
            time.sleep(0.01)
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (143, "")
    assert err == f"fgp-vnn: stopped by SIGTERM{kept}\n"


def test_a_run_is_stopped_inside_a_kernel(tmp_path: Path, warm_python: str) -> None:
    results = tmp_path / "out.txt"
    with start(stuck(warm_python, KERNEL, "--results", results)) as process:
        assert process.stdout is not None and process.stdout.readline() == "\n"
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 143
    assert results.read_text() == "timeout\n"


def test_a_search_that_forgets_the_time_ends_all_the_same(tmp_path: Path, warm_python: str) -> None:
    results = tmp_path / "out.txt"
    command = stuck(warm_python, ASLEEP, "--results", results, "--timeout", "1", "--json")
    with start(command) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert '"status": "timeout"' in out and '"reason": "time is up"' in out
    assert results.read_text() == "timeout\n"


def test_a_process_that_is_not_ours_is_left_as_it_was() -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert main(["verify", str(MODEL), str(SAFE), "--timeout", "60"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_a_disk_that_takes_nothing_keeps_the_old_file_and_loses_no_verdict(
    tmp_path: Path, warm_python: str
) -> None:
    results = tmp_path / "out.txt"
    results.write_text("unknown\n")
    done = run([warm_python, "-c", NO_FILES], "verify", MODEL, SAFE, "--results", results)
    assert (done.returncode, done.stdout.split()[0]) == (2, "unsat")
    assert done.stderr == f"fgp-vnn: results file {results} cannot be written: File too large\n"
    assert results.read_text() == "unknown\n"
    assert clean(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_one_line_and_the_file_is_there(
    tmp_path: Path, warm_command: list[str]
) -> None:
    results = tmp_path / "out.txt"
    command = [*warm_command, "verify", str(MODEL), str(SAFE), "--results", str(results)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "fgp-vnn: the verdict cannot be printed: No space left on device\n"
    assert results.read_text() == "unsat\n"


def test_the_time_of_loading_counts() -> None:
    done = run(COMMAND, "verify", MODEL, SAFE, "--timeout", "0.001")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("timeout ")


def test_the_seconds_of_a_verdict_are_those_that_the_limit_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the start of the command: however much went into starting is among them."""
    monkeypatch.setattr("fgp_vnn.cli.verify.set_threads", lambda threads: time.sleep(0.5))
    assert main(["verify", str(MODEL), str(SAFE), "--json"]) == 0
    seconds = json.loads(capsys.readouterr().out)["seconds"]
    assert seconds["start"] >= 0.5
    assert seconds["total"] >= seconds["start"] + seconds["load"]
