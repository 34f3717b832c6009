"""The command line: verdicts, results files, interrupts, the competition scripts."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from fgp_vnn.cli.main import main
from fgp_vnn.property.results import read_results
from tests.helpers.command_line import (
    COMMAND,
    ENVIRONMENT,
    MODEL,
    SAFE,
    UNSAFE,
    confirm_results,
    hard_instance,
    loaded,
    no_network,
    one_clear_line,
    run,
    small_model,
)
from tests.helpers.network_models import Builder
from tests.helpers.places import BENCHMARK, ROOT


def test_supports_accepts_what_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["supports", str(MODEL), str(SAFE)]) == 0
    assert capsys.readouterr().out == "supported\n"


def test_supports_and_networks_name_each_other_in_their_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command, other in (("supports", "'networks'"), ("networks", "'supports'")):
        with pytest.raises(SystemExit):
            main([command, "-h"])
        assert other in capsys.readouterr().out


def test_networks_lists_sizes_and_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = Builder([1, 3])
    relu = builder.op("Relu", builder.op("Gemm", "x", builder.random(3, 2), builder.random(2)))
    builder.save(tmp_path / "a.onnx", relu)
    builder.save(tmp_path / "b.onnx", builder.op("Det", relu))
    assert main(["networks", str(tmp_path / "a.onnx")]) == 0
    capsys.readouterr()
    assert main(["networks", str(tmp_path)]) == 2
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.endswith("a.onnx: 3 inputs, 2 outputs, 2 neurons in 1 layer; 1 Gemm, 1 Relu")
    assert second.startswith(f"{tmp_path / 'b.onnx'}: refused: operator Det")
    assert last == "2 networks: 1 can be read, 1 refused"


def test_networks_refuses_a_folder_without_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["networks", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_unsat_from_outside(tmp_path: Path) -> None:
    results = tmp_path / "out.txt"
    done = run(COMMAND, "verify", MODEL, SAFE, "--timeout", "60", "--results", results)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("unsat by ")
    assert results.read_text() == "unsat\n"


def test_sat_from_outside_is_confirmed_by_the_written_digits(
    tmp_path: Path, warm_command: list[str]
) -> None:
    results = tmp_path / "out.txt"
    options = ["--timeout", "60", "--results", str(results), "--json"]
    done = run(warm_command, "verify", MODEL, UNSAFE, *options)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["status"] == "sat"
    confirm_results(results, MODEL, UNSAFE)
    written = read_results(results)
    assert written.x is not None and written.y is not None
    assert said["counterexample"]["x"] == written.x.tolist()
    assert said["counterexample"]["y"] == written.y.tolist()


def test_json_tells_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(MODEL), str(SAFE), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "unsat"
    assert said["decided_by"] in ("bounds", "walk", "split")
    assert said["seconds"]["total"] >= said["seconds"]["load"] + said["seconds"]["start"]
    assert said["seconds"]["load"] > 0
    assert isinstance(said["statistics"], dict)


def test_with_an_lp_the_programs_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = ["--engine", "walk", "--no-attack", "--no-alternate", "--lp"]
    prop = BENCHMARK / "vnnlib" / "dense_32x2_mmr_conjunction_0.2.vnnlib"
    model = BENCHMARK / "onnx" / "dense_32x2_mmr.onnx"
    assert main(["verify", str(model), str(prop), "--json", *search[:-1]]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "unknown"
    assert main(["verify", str(model), str(prop), "--json", *search]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["status"] == "sat" and said["statistics"]["lps"] > 0
    points = tmp_path / "points.npy"
    np.save(points, np.full((2, 4), 0.5, np.float32))
    small = small_model(tmp_path)
    search.remove("--no-attack")  # the walk of certify has none
    command = ["certify", str(small), str(points), "--epsilon", "0.1", "--json", *search]
    assert main(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["robust"] + said["not_robust"] == 2 and said["lps"] >= 0


def test_a_verdict_without_a_decision_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "out.txt"
    arguments = [str(MODEL), str(SAFE), "--engine", "attack", "--results", str(results)]
    assert main(["verify", *arguments]) == 0
    assert capsys.readouterr().out.startswith("unknown in ")
    assert results.read_text() == "unknown\n"


def test_help_needs_no_torch() -> None:
    program = (
        "import sys\nfrom fgp_vnn.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "slow = {'torch', 'onnx', 'onnxruntime', 'numpy', 'onnx2torch'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    for arguments in (["--help"], ["--version"], ["verify", "--help"], ["supports", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "fgp-vnn" in done.stdout


def test_files_that_are_none_are_refused_before_torch_is_loaded(
    tmp_path: Path, usual: dict[str, list[str]]
) -> None:
    """A folder in place of each file that is read, and a file in place of a folder."""
    program = (
        "import json, sys\nfrom fgp_vnn.cli.main import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    assert main(words) == 2, words\n"
        "    assert 'torch' not in sys.modules, words\n"
    )
    calls = list[list[str]]()
    for command in ("verify", "supports", "certify", "radius", "bounds", "property"):
        for place in (0, 1):
            words = [command, *usual[command]]
            words[1 + place] = str(tmp_path)
            calls.append(words)
    for option in ("--results", "--certificate"):
        calls.append(["verify", *usual["verify"], option, str(tmp_path / "none" / "out")])
    calls.append([*("property", *usual["property"])[:-1], str(MODEL)])
    calls.append(["report", str(tmp_path)])
    done = run([sys.executable, "-c", program], json.dumps(calls))
    assert (done.returncode, done.stdout) == (0, "")
    assert len(done.stderr.splitlines()) == len(calls)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("library", ["libtorch", "onnxruntime_pybind"])
def test_an_interrupt_ends_it_with_130_and_one_line(tmp_path: Path, library: str) -> None:
    """While torch is being imported, where exceptions get lost, and during the work."""
    results = tmp_path / "out.txt"
    results.write_text("timeout\n")
    arguments = [*COMMAND, "verify", *map(str, hard_instance(tmp_path)), "--results", str(results)]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        while not loaded(process, library):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "fgp-vnn: interrupted\n")
    assert results.read_text() == "timeout\n"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_an_interrupt_between_commands_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fgp_vnn.api.verify.verify", interrupted)
    assert main(["verify", str(MODEL), str(SAFE)]) == 130
    assert capsys.readouterr().err == "fgp-vnn: interrupted\n"


def test_a_timeout_is_a_verdict(tmp_path: Path) -> None:
    results = tmp_path / "out.txt"
    arguments = ["verify", *map(str, hard_instance(tmp_path)), "--results", str(results)]
    assert main([*arguments, "--timeout", "0.5"]) == 0
    assert results.read_text() == "timeout\n"


@pytest.fixture
def real_tool(tmp_path: Path, warm_command: list[str]) -> Mapping[str, str]:
    """The environment in which the competition scripts find this checkout."""
    path = tmp_path / "fgp-vnn"
    path.write_text(f'#!/usr/bin/env bash\nexec {shlex.join(warm_command)} "$@"\n')
    path.chmod(0o755)
    return {**ENVIRONMENT, "FGP_VNN": str(path), "TMPDIR": str(tmp_path)}


@pytest.mark.parametrize(("prop", "status"), [(SAFE, "unsat"), (UNSAFE, "sat")])
def test_the_competition_scripts_run_the_real_tool(
    real_tool: Mapping[str, str], tmp_path: Path, prop: Path, status: str
) -> None:
    results = tmp_path / "out.txt"
    instance = ["v1", "digits", str(MODEL), str(prop)]
    scripts = ROOT / "vnncomp"
    for arguments in (
        ["prepare_instance.sh", *instance],
        ["run_instance.sh", *instance, str(results), "60"],
    ):
        done = run(["bash"], scripts / arguments[0], *arguments[1:], env=real_tool)
        assert (done.returncode, done.stderr) == (0, "")
    assert read_results(results).status == status
    if status == "sat":
        confirm_results(results, MODEL, prop)


def test_prepare_declines_what_the_real_tool_cannot_read(
    real_tool: Mapping[str, str], tmp_path: Path
) -> None:
    script = ROOT / "vnncomp" / "prepare_instance.sh"
    done = run(["bash"], script, "v1", "digits", *no_network(tmp_path), env=real_tool)
    assert done.returncode == 1
    one_clear_line(done.stderr, ("text.onnx",))
