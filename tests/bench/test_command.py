from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fgp_vnn.bench.journal import read_records
from fgp_vnn.cli.main import main
from tests.bench.commands import command, environment
from tests.helpers.bench_folders import VERIFIER, make_folder
from tests.helpers.places import ROOT

Bench = Callable[..., int]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: str) -> Bench:
    """Runs the command into tmp_path/out, with the stand-ins in place of the verifier."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.setattr("sys.executable", warm_python)  # that of workers

    def bench(folder: Path, *arguments: str) -> int:
        fixed = ["--verifier", VERIFIER, "--out", str(tmp_path / "out"), "--grace", "0.2"]
        return main(["bench", str(folder), *fixed, *arguments])

    return bench


def results(out: Path) -> list[str]:
    return [record.result for record in read_records(out)]


def test_a_folder_is_run_and_written_in_both_forms(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat", "sat", "unknown", "raise"])
    assert bench(folder) == 0
    assert results(tmp_path / "out") == ["unsat", "sat", "unknown", "error"]
    rows = (tmp_path / "out" / "results.csv").read_text().splitlines()
    assert rows[0].startswith("cat,onnx/0-unsat.onnx,vnnlib/prop.vnnlib,0.000000,unsat,0.0")
    output = capsys.readouterr().out
    assert "[2/4] sat" in output
    assert "2 of 4 solved (1 error, 1 sat, 1 unknown, 1 unsat)" in output


def test_a_run_that_is_done_is_not_repeated(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat"] * 4)
    bench(folder, "--limit", "3")
    before = read_records(tmp_path / "out")
    capsys.readouterr()
    assert bench(folder) == 0
    assert read_records(tmp_path / "out")[:3] == before
    assert len(read_records(tmp_path / "out")) == 4
    assert "3 of 4 done before, 1 to go" in capsys.readouterr().out


def test_errors_are_run_again_only_when_asked(bench: Bench, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["raise"])
    log = tmp_path / "out" / "logs" / "worker-0.log"
    for arguments, times in (([], 1), ([], 1), (["--retry-errors"], 2)):
        assert bench(folder, *arguments) == 0
        assert log.read_text().count("RuntimeError: two") == times
        assert results(tmp_path / "out") == ["error"]


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_contradiction_to_the_ground_truth_is_shouted(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: list[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat", "sat"])
    (folder / "ground_truth.csv").write_text(
        "onnx,vnnlib,result\nonnx/0-unsat.onnx,vnnlib/prop.vnnlib,sat\n"
        "onnx/1-sat.onnx,vnnlib/prop.vnnlib,sat\n"
    )
    assert bench(folder, *quiet) == 1
    captured = capsys.readouterr()
    assert "WRONG VERDICT" in captured.out
    assert "unsat, expected sat" in captured.out
    assert "1 wrong verdict\n" in captured.err
    assert bench(folder, *quiet) == 1  # and it stays wrong when there is nothing left to run


def test_a_late_wrong_answer_is_a_timeout_and_still_a_contradiction(
    bench: Bench, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path / "cat", ["late"], timeout=0.1)
    expected = tmp_path / "expected.csv"
    expected.write_text("cat,onnx/0-late.onnx,vnnlib/prop.vnnlib,0,sat,1\n")
    assert bench(folder, "--expect", str(expected), "--grace", "60") == 1
    (record,) = read_records(tmp_path / "out")
    assert (record.result, record.late) == ("timeout", "unsat")


def test_a_counterexample_that_is_none_is_shouted(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(make_folder(tmp_path / "cat", ["liar"])) == 1
    assert "its counterexample is not valid" in capsys.readouterr().out


def test_everything_bad_is_listed_in_one_message_before_anything_runs(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat"])
    with (folder / "instances.csv").open("a") as file:
        file.write(
            "onnx/no.onnx,vnnlib/prop.vnnlib,1\nx,y\nonnx/0-unsat.onnx,vnnlib/prop.vnnlib,9\n"
        )
    assert bench(folder) == 2
    message = capsys.readouterr().err
    assert "3 problems" in message
    for line in (2, 3, 4):
        assert f"instances.csv:{line}: " in message
    assert "--keep-going runs the 1 other instance\n" in message
    assert not (tmp_path / "out").exists()
    assert bench(folder, "--keep-going") == 0
    assert results(tmp_path / "out") == ["unsat"]


def test_a_folder_with_nothing_that_runs_stops_in_one_line_even_with_keep_going(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cat").mkdir()
    table = tmp_path / "cat" / "instances.csv"
    table.write_text("")
    assert bench(tmp_path / "cat", "--keep-going") == 2
    assert capsys.readouterr().err == f"fgp-vnn: {table}: no instances\n"


def test_a_dry_run_lists_and_writes_nothing(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat", "sat"])
    assert bench(folder, "--dry-run", "--filter", "1-sat") == 0
    assert capsys.readouterr().out == "cat onnx/1-sat.onnx vnnlib/prop.vnnlib 5\n"
    assert not (tmp_path / "out").exists()


def test_quiet_says_nothing_where_nothing_is_wrong(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(make_folder(tmp_path / "cat", ["unsat"]), "--quiet") == 0
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--filter", "nothing"], "no instance matches"),
        (["--filter", "("], "not a regular expression"),
        (["--expect", "no.csv"], "cannot be read"),
        (["--verifier", "no:no"], "cannot be loaded"),
        (["--engine", "walk", "--float32-semantics"], "float32 semantics need another engine"),
        (["--seed", "-1"], "'-1' is not a seed"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(
    bench: Bench,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: Sequence[str],
    message: str,
) -> None:
    assert bench(make_folder(tmp_path / "cat", ["unsat"]), *arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", ["--jobs 0", "--timeout -1", "--timeout nan", "--memory 0", "--limit x"]
)
def test_numbers_out_of_range_are_refused(bench: Bench, tmp_path: Path, arguments: str) -> None:
    assert bench(tmp_path, *arguments.split()) == 2


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ("", {"device": "auto"}),
        ("--engine auto --device cpu", {"device": "cpu"}),
        ("--lp --float32-semantics", {"device": "auto", "lp": True, "float32_semantics": True}),
        (
            "--engine walk --variant first-boundary --no-attack --no-alternate --precision float32",
            {
                "device": "auto",
                "engine": "walk",
                "variant": "first-boundary",
                "attack": False,
                "alternate": False,
                "precision": "float32",
            },
        ),
    ],
)
def test_the_verifier_is_called_with_what_was_asked_for(
    bench: Bench, tmp_path: Path, arguments: str, settings: dict[str, object]
) -> None:
    folder = make_folder(tmp_path / "cat", ["any"])
    assert (
        bench(folder, "--verifier", "tests.bench.verifiers:settings_given", *arguments.split()) == 0
    )
    (record,) = read_records(tmp_path / "out")
    assert json.loads(record.reason) == settings


def test_a_run_is_not_resumed_with_another_search(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat", "unsat"])
    assert bench(folder, "--limit", "1", "--engine", "split") == 0
    for arguments, words in (
        (["--engine", "walk"], "begun with engine split, now walk"),
        ([], "begun with engine split, now not given"),
        (["--engine", "split", "--lp"], "begun with lp not given, now True"),
    ):
        assert bench(folder, *arguments) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and words in error
    assert len(read_records(tmp_path / "out")) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_done_and_the_same_command_resumes(
    tmp_path: Path, number: signal.Signals
) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat", "hang", "sat"], timeout=3600)
    process = subprocess.Popen(
        command(folder, tmp_path / "out"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline().startswith("[1/3] unsat")
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command resumes" in errors
    assert "Traceback" not in errors
    assert results(tmp_path / "out") == ["unsat"]
    again = command(folder, tmp_path / "out", "--filter", "sat.onnx")
    subprocess.run(again, env=environment(), check=True, capture_output=True)
    assert results(tmp_path / "out") == ["unsat", "sat"]


def test_the_coordinator_does_not_import_torch(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat", "sat"])
    code = (
        "import sys; from fgp_vnn.cli.main import main;"
        f"code = main({command(folder, tmp_path / 'out')[3:]!r});"
        "print(code, sorted({'torch', 'onnxruntime', 'ray'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "0 []"


def test_every_result_says_what_it_depends_on(bench: Bench, tmp_path: Path) -> None:
    bench(make_folder(tmp_path / "cat", ["sat"]), "--device", "cpu")
    (line,) = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    values = json.loads(line)
    assert values["machine"]["device"] == "cpu"
    assert values["versions"]["python"]
    assert (tmp_path / "out" / values["counterexample"]).is_file()


def test_what_an_instance_printed_is_kept_under_its_name(bench: Bench, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["chatty", "unsat", "exit"])
    bench(folder, "--quiet")
    chatty, quiet, ended = read_records(tmp_path / "out")
    assert "libraries print" in (tmp_path / "out" / chatty.log).read_text()
    assert chatty.log.startswith("logs/cat-0-chatty-prop-")
    assert quiet.log == ""
    assert (tmp_path / "out" / ended.log).read_text() == "the library gave up\n"
