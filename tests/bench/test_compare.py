from __future__ import annotations

import csv
import gzip
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench import tools
from fgp_vnn.bench.journal import read_records
from fgp_vnn.bench.tools import find_tool
from fgp_vnn.cli.main import main
from tests.bench.commands import ends, environment, written_pid
from tests.helpers.bench_folders import make_folder

SAT = r"printf 'sat\n((X_0 1.0)\n(X_1 0.0)\n(Y_0 1.0)\n(Y_1 0.0))\n' > $5"
LIE = r"printf 'sat\n((X_0 0.0)\n(X_1 1.0)\n(Y_0 0.0)\n(Y_1 1.0))\n' > $5"


def make_tool(folder: Path, run: str, prepare: str = "exit 0") -> Path:
    """A verifier that is two shell scripts."""
    folder.mkdir(parents=True)
    (folder / "prepare_instance.sh").write_text(f"{prepare}\n")
    (folder / "run_instance.sh").write_text(f"{run}\n")
    return folder


def compare(tmp_path: Path, benchmark: Path, *arguments: str) -> int:
    """Run the command; start-up is measured only where a test asks for it."""
    common = ["compare", str(benchmark), "--out", str(tmp_path / "out"), "--startup", "0"]
    return main([*common, *arguments])


def result(tmp_path: Path, tool: str) -> tuple[str, str]:
    (record,) = read_records(tmp_path / "out" / tool)
    return record.result, record.reason


def test_a_conflict_is_a_wrong_verdict_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    honest = make_tool(tmp_path / "honest", SAT)
    wrong = make_tool(tmp_path / "wrong", "echo unsat > $5")
    code = compare(tmp_path, folder, "--tool", f"a={honest}", "--tool", f"b={wrong}")
    assert code == 1
    text = capsys.readouterr().out
    assert (
        "WRONG VERDICT by b: cat onnx/0-x.onnx vnnlib/prop.vnnlib: a says sat, b says unsat" in text
    )
    with (tmp_path / "out" / "summary.csv").open(newline="") as file:
        rows = {row["tool"]: row for row in csv.DictReader(file)}
    assert (rows["a"]["solved"], rows["a"]["points"]) == ("1", "10")
    assert (rows["b"]["wrong"], rows["b"]["points"]) == ("1", "-150")


def test_a_counterexample_is_checked_by_us(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    assert compare(tmp_path, folder, "--tool", f"liar={make_tool(tmp_path / 'liar', LIE)}") == 1
    assert "WRONG VERDICT by liar" in capsys.readouterr().out
    assert result(tmp_path, "liar") == ("sat", "the output [0, 1] is not unsafe")


@pytest.mark.parametrize(
    ("run", "prepare", "expected"),
    [
        ("echo unsat > $5", "exit 0", ("unsat", "")),
        ("echo unknown > $5", "exit 0", ("unknown", "")),
        (
            "echo unsat > $5",
            "exit 1",
            ("unknown", "prepare_instance.sh ended with exit code 1"),
        ),
        (
            "echo unsat > $5",
            "echo before >&2; printf 'no such operator\\n\\n' >&2; exit 2",
            ("unknown", "declined: prepare_instance.sh ended with exit code 2: no such operator"),
        ),
        ("echo 'a [bold] end' >&2; exit 3", "", ("error", "ended with exit code 3: a [bold] end")),
        ("exit 3", "echo supported", ("error", "run_instance.sh ended with exit code 3")),
        ("exit 0", "exit 0", ("error", "no results file was written")),
        ("echo maybe > $5", "exit 0", ("error", "the results file begins with 'maybe'")),
        ("echo sat > $5", "exit 0", ("sat", "sat, but there is no counterexample")),
        (r"printf 'sat\n((X_0' > $5", "exit 0", ("sat", "the parentheses do not match")),
        ("sleep 0.6; echo unsat > $5", "", ("timeout", "the answer came after the time limit")),
        ("sleep 3600", "exit 0", ("timeout", "killed 0.1 s after its limit")),
        ("echo unsat > $5", "sleep 3600", ("unknown", "prepare_instance.sh took too long")),
    ],
)
def test_whatever_a_tool_does_is_a_result(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: str,
    prepare: str,
    expected: tuple[str, str],
) -> None:
    """Time is short only for the script that is to run out of it."""
    monkeypatch.setattr(tools, "EXTRA_SECONDS", 0.1 if "3600" in run else 60.0)
    monkeypatch.setattr(tools, "PREPARE_SECONDS", 0.1 if "3600" in prepare else 60.0)
    folder = make_folder(tmp_path / "cat", ["x"], timeout=0.5 if "sleep" in run else 60.0)
    compare(
        tmp_path, folder, "--tool", f"t={make_tool(tmp_path / 'tool', run, prepare)}", "--quiet"
    )
    word, reason = result(tmp_path, "t")
    assert word == expected[0]
    assert reason.endswith(expected[1])


@pytest.mark.parametrize(
    ("run", "prepare", "reason"),
    [
        ("exit 127", "exit 0", "run_instance.sh ended with exit code 127"),
        ("exit 0", "exit 1", "declined: prepare_instance.sh ended with exit code 1"),
    ],
)
def test_a_tool_that_never_runs_is_named_and_no_tool_that_runs_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: str, prepare: str, reason: str
) -> None:
    folder = make_folder(tmp_path / "cat", ["x", "y"])
    broken = f"broken={make_tool(tmp_path / 'broken', run, prepare)}"
    said = f"fgp-vnn: broken did not run on any instance: {reason} (delete "
    assert compare(tmp_path, folder, "--tool", broken) == 2
    err = capsys.readouterr().err
    assert err.startswith(said) and err.count("\n") == 1
    good = f"good={make_tool(tmp_path / 'good', 'echo unsat > $5')}"
    assert compare(tmp_path, folder, "--tool", broken, "--tool", good) == 0
    err = capsys.readouterr().err
    assert err.startswith(said) and err.count("\n") == 1


def test_what_we_cannot_read_is_not_held_against_a_tool(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    (folder / "vnnlib" / "prop.vnnlib").write_text("(assert (>= (* X_0 X_0) 1.0))")
    tool = make_tool(tmp_path / "tool", SAT)
    assert compare(tmp_path, folder, "--tool", f"t={tool}") == 0
    (record,) = read_records(tmp_path / "out" / "t")
    assert record.confirmed is None
    assert "cannot be checked" in record.reason


def test_scripts_get_the_arguments_of_the_competition_and_unpacked_files(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x"], timeout=7.5)
    for path in [*folder.glob("*/*.onnx"), *folder.glob("*/*.vnnlib")]:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    seen = tmp_path / "seen"
    script = f'echo "$1 $2 $6" > {seen}; grep -q declare "$4" && test -s "$3" && echo unsat > $5'
    assert compare(tmp_path, folder, "--tool", f"t={make_tool(tmp_path / 'tool', script)}") == 0
    assert seen.read_text() == "v1 cat 7.5\n"
    assert result(tmp_path, "t") == ("unsat", "")
    assert not (tmp_path / "out" / "unpacked").exists()


def test_tools_take_turns_in_going_first(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x", "y", "z"])
    log = tmp_path / "log"
    arguments = []
    for name in ("a", "b"):
        script = f"echo {name} >> {log}; echo unsat > $5"
        arguments += ["--tool", f"{name}={make_tool(tmp_path / name, script)}"]
    compare(tmp_path, folder, *arguments)
    assert log.read_text().split() == ["a", "b", "b", "a", "a", "b"]
    compare(tmp_path, folder, *arguments)
    assert len(log.read_text().split()) == 6  # what is done is not repeated


def test_published_results_stand_beside_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x", "y"])
    table = tmp_path / "published.csv"
    table.write_text(
        "cat,./onnx/0-x.onnx,vnnlib/prop.vnnlib,1.0,unsat,2.5\n"
        "cat,onnx/1-y.onnx.gz,vnnlib/prop.vnnlib,1.0,run_instance_timeout,9\n"
        "other,onnx/1-y.onnx,vnnlib/prop.vnnlib,1.0,sat,9\n"
    )
    tool = make_tool(tmp_path / "tool", "echo unsat > $5")
    assert compare(tmp_path, folder, "--tool", f"t={tool}", "--results", f"old={table}") == 0
    old = read_records(tmp_path / "out" / "old")
    assert [(record.result, record.run_time) for record in old] == [("unsat", 2.5), ("timeout", 9)]
    assert "old" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name at least one --tool"),
        (["--tool", "nonsense"], "expected NAME=PATH"),
        (["--tool", "a/b=x"], "expected NAME=PATH"),
        (["--tool", "unpacked=x"], "is taken"),
        (["--tool", "a=x", "--tool", "a=y"], "is taken"),
        (["--tool", "a=x", "--results", "a=y"], "named twice"),
        (["--tool", "a=absent"], "no prepare_instance.sh and run_instance.sh"),
        (["--results", "a=absent.csv"], "cannot be read"),
        (["--results", "a=OTHER"], "none of its rows is about one of the instances"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    (tmp_path / "other.csv").write_text("other,a,b,0,sat,1\n")
    chosen = [text.replace("OTHER", str(tmp_path / "other.csv")) for text in arguments]
    assert compare(tmp_path, folder, *chosen) == 2
    assert message in capsys.readouterr().err


def test_published_results_do_not_overwrite_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    tool = make_tool(tmp_path / "tool", "echo unsat > $5")
    compare(tmp_path, folder, "--tool", f"t={tool}")
    table = tmp_path / "published.csv"
    table.write_text("cat,onnx/0-x.onnx,vnnlib/prop.vnnlib,1.0,sat,2.5\n")
    assert compare(tmp_path, folder, "--results", f"t={table}") == 2
    assert "holds a run" in capsys.readouterr().err
    assert result(tmp_path, "t") == ("unsat", "")


@pytest.mark.parametrize("place", ["", "vnncomp", "vnncomp_scripts"])
def test_scripts_are_found_where_tools_keep_them(tmp_path: Path, place: str) -> None:
    make_tool(tmp_path / "tool" / place, "exit 0")
    assert find_tool("t", tmp_path / "tool").scripts == (tmp_path / "tool" / place).resolve()


def test_scripts_beside_the_verifier_are_found(tmp_path: Path) -> None:
    make_tool(tmp_path / "vnncomp_scripts", "exit 0")
    (tmp_path / "complete_verifier").mkdir()
    assert find_tool("t", tmp_path / "complete_verifier").scripts.name == "vnncomp_scripts"
    with pytest.raises(InputError, match="no prepare_instance"):
        find_tool("t", tmp_path / "absent")


def test_published_tables_agree_with_the_ground_truth_as_known(
    shared_data: Path, tmp_path: Path
) -> None:
    """No published verdict on mnist_fc of 2022 is wrong, and alpha-beta-CROWN leads."""
    arguments = []
    for tool in ("alpha_beta_crown", "nnenum", "verinet"):
        arguments += ["--results", f"{tool}={shared_data / 'published' / f'2022_{tool}.csv'}"]
    assert compare(tmp_path, shared_data / "vnncomp" / "mnist_fc", *arguments) == 0
    with (tmp_path / "out" / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert max(rows, key=lambda row: int(row["points"]))["tool"] == "alpha_beta_crown"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_comparison_that_ends_takes_its_tool_along_and_is_resumed(
    tmp_path: Path, number: signal.Signals
) -> None:
    folder = make_folder(tmp_path / "cat", ["x", "y"], timeout=3600)
    name = tmp_path / "pid"
    waits = f'case "$3" in *y.onnx) echo $$ > {name}; sleep 3600;; esac; echo unsat > $5'
    tool = make_tool(tmp_path / "tool", waits)
    arguments = ["--tool", f"t={tool}", "--out", str(tmp_path / "out"), "--quiet"]
    arguments += ["--startup", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "fgp_vnn", "compare", str(folder), *arguments],
        env=environment(),
        stderr=subprocess.PIPE,
    )
    child = written_pid(name)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    assert b"Traceback" not in errors
    assert ends(child)
    (tool / "run_instance.sh").write_text("echo unsat > $5\n")
    assert main(["compare", str(folder), *arguments]) == 0
    assert [record.onnx for record in read_records(tmp_path / "out" / "t")] == [
        "onnx/0-x.onnx",
        "onnx/1-y.onnx",
    ]


def test_a_published_answer_after_our_limit_is_a_timeout(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x"], timeout=100)
    table = tmp_path / "published.csv"
    table.write_text("cat,onnx/0-x.onnx,vnnlib/prop.vnnlib,1.0,unsat,50\n")
    assert compare(tmp_path, folder, "--results", f"old={table}", "--timeout", "20") == 0
    (record,) = read_records(tmp_path / "out" / "old")
    assert (record.result, record.late) == ("timeout", "unsat")
