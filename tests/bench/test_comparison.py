"""What a comparison says of itself: rules, times, origin, and how to repeat it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fgp_vnn.bench.comparison import read_comparison
from fgp_vnn.bench.journal import read_records
from fgp_vnn.cli.main import main
from tests.bench.commands import environment
from tests.bench.test_compare import SAT, compare, make_tool
from tests.helpers.bench_folders import VERIFIER, make_folder

NEAR = r"printf 'sat\n((X_0 1.000001)\n(X_1 0.0)\n(Y_0 1.000001)\n(Y_1 0.0))\n' > $5"
MISSED = r"printf 'sat\n((X_0 0.5)\n(X_1 0.50001)\n(Y_0 0.5)\n(Y_1 0.50001))\n' > $5"
FACTS = {"command", "folder", "date", "host", "processor", "cores", "memory", "versions"}


def settings(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def test_an_input_just_outside_of_its_box_is_right_and_not_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    arguments = ["--tool", f"near={make_tool(tmp_path / 'near', NEAR)}"]
    arguments += ["--tool", f"other={make_tool(tmp_path / 'other', 'echo unsat > $5')}"]
    assert compare(tmp_path, folder, *arguments) == 0
    output = capsys.readouterr().out
    assert "counterexample outside the box by 9.5e-07" in output
    assert "WRONG" not in output
    assert "VNN-COMP 2026: inputs to 0.0001, outputs exact" in output
    assert compare(tmp_path, folder, *arguments, "--rules", "2023") == 1
    assert "WRONG VERDICT by other" in capsys.readouterr().out


def test_a_year_is_chosen_by_an_option_and_kept(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    arguments = ["--tool", f"t={make_tool(tmp_path / 'tool', MISSED)}", "--quiet"]
    assert compare(tmp_path, folder, *arguments) == 1
    assert compare(tmp_path, folder, *arguments, "--rules", "2025") == 0
    assert compare(tmp_path, folder, *arguments) == 0
    assert settings(tmp_path / "out" / "compare.json")["rules"] == 2025
    assert compare(tmp_path, folder, *arguments, "--rules", "1999") == 2


def test_a_right_answer_after_the_limit_is_late_and_not_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x"], timeout=0.2)
    (folder / "ground_truth.csv").write_text(
        "onnx,vnnlib,timeout,result\nonnx/0-x.onnx,vnnlib/prop.vnnlib,1,sat\n"
    )
    tool = make_tool(tmp_path / "tool", f"sleep 0.4; {SAT}")
    assert compare(tmp_path, folder, "--tool", f"t={tool}") == 0
    (record,) = read_records(tmp_path / "out" / "t")
    assert (record.result, record.late) == ("timeout", "sat")
    assert "WRONG" not in capsys.readouterr().out


def test_both_files_say_where_when_and_how(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    tool = make_tool(tmp_path / "tool", "echo unsat > $5")
    assert compare(tmp_path, folder, "--tool", f"t={tool}", "--quiet") == 0
    for path in (tmp_path / "out" / "compare.json", tmp_path / "out" / "t" / "run.json"):
        (made,) = settings(path)["runs"]
        assert made.keys() > FACTS
        assert made["command"][:2] == ["fgp-vnn", "compare"]
        assert (made["timing"], made["versions"].keys() > {"fgp-vnn", "python"}) == ("cold", True)
        assert "revision" in made


def test_the_revision_is_that_of_the_tools_own_repository(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    tool = make_tool(tmp_path / "tool", "echo unsat > $5")
    identity = ["-c", "user.name=n", "-c", "user.email=e"]
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "m"]):
        subprocess.run(["git", "-C", str(tool), *arguments], check=True)
    compare(tmp_path, folder, "--tool", f"t={tool}", "--quiet")
    first = settings(tmp_path / "out" / "compare.json")["revisions"]["t"]
    assert len(first) == 12
    (tool / "run_instance.sh").write_text("echo unknown > $5\n")
    compare(tmp_path, folder, "--tool", f"t={tool}", "--quiet")
    assert settings(tmp_path / "out" / "compare.json")["revisions"]["t"] == f"{first}+"


def test_results_that_are_there_are_not_claimed_by_a_later_command(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    tool = make_tool(tmp_path / "tool", "echo unsat > $5")
    for _ in range(2):
        compare(tmp_path, folder, "--tool", f"t={tool}", "--quiet")
    assert len(settings(tmp_path / "out" / "t" / "run.json")["runs"]) == 1


def test_a_comparison_is_repeated_by_one_command_from_its_folder(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    tool = make_tool(tmp_path / "a tool", "echo unsat > $5")
    compare(tmp_path, folder, "--tool", f"t={tool}", "--quiet")
    command = ["bash", str(tmp_path / "out" / "repeat.sh"), "again"]
    subprocess.run(command, env=environment(), cwd=tmp_path, check=True, capture_output=True)
    assert [r.result for r in read_records(tmp_path / "again" / "t")] == ["unsat"]
    assert subprocess.run(command[:-1], capture_output=True).returncode


def test_start_up_is_measured_on_the_smallest_instance_in_turn_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    log = tmp_path / "log"
    arguments = ["--startup", "2"]
    for name in ("a", "b"):
        script = f'echo "{name} $2" >> {log}; echo unsat > $5'
        arguments += ["--tool", f"{name}={make_tool(tmp_path / name, script)}"]
    compare(tmp_path, folder, *arguments)
    rounds = ["a test", "b test", "b test", "a test", "a test", "b test", "a cat", "b cat"]
    assert log.read_text().splitlines() == rounds
    timings = read_comparison(tmp_path / "out").timings
    assert {name: len(timing.startup) for name, timing in timings.items()} == {"a": 2, "b": 2}
    assert "start-up 0." in capsys.readouterr().out
    compare(tmp_path, folder, *arguments)
    assert len(log.read_text().splitlines()) == len(rounds)  # what is measured is kept


def test_a_tool_that_declines_the_smallest_instance_has_no_start_up(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x"])
    tool = make_tool(tmp_path / "tool", "echo unsat > $5", '[ "$2" = cat ]')
    compare(tmp_path, folder, "--tool", f"t={tool}", "--startup", "1", "--quiet")
    assert read_comparison(tmp_path / "out").timings["t"].startup == ()


def test_warm_times_of_a_run_are_not_set_beside_cold_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["unsat"] * 7)
    run = tmp_path / "run"
    assert main(["bench", str(folder), "--out", str(run), "--verifier", VERIFIER, "--quiet"]) == 0
    tool = make_tool(tmp_path / "tool", "sleep 0.3; echo unsat > $5")
    arguments = ["--results", f"ours={run / 'results.csv'}", "--tool", f"theirs={tool}"]
    assert compare(tmp_path, folder, *arguments) == 0
    output = capsys.readouterr().out
    assert "theirs and ours: cold times beside warm times, so neither is called faster" in output
    assert "ours: one process for many instances, start-up left out" in output


def test_a_published_table_says_its_machine_and_what_our_limit_cuts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x", "y"], timeout=100)
    table = tmp_path / "published.csv"
    table.write_text(
        "cat,onnx/0-x.onnx,vnnlib/prop.vnnlib,1.0,unsat,50\n"
        "cat,onnx/1-y.onnx,vnnlib/prop.vnnlib,1.0,unsat,5\n"
    )
    arguments = ["--results", f"old={table}", "--timeout", "20"]
    assert compare(tmp_path, folder, *arguments, "--about", "old=a GPU; 300 s") == 0
    output = capsys.readouterr().out
    assert "old: a published table; a GPU; 300 s; 2 rows; 1 published answer came after" in output
    assert compare(tmp_path, folder, *arguments, "--about", "new=a GPU") == 2


def test_one_tool_under_two_names_is_not_faster_than_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x"] * 8)
    tool = make_tool(tmp_path / "tool", "sleep 0.2; echo unsat > $5")
    arguments = ["--tool", f"ours={tool}", "--tool", f"again={tool}", "--startup", "3"]
    assert compare(tmp_path, folder, *arguments) == 0
    assert "no difference beyond the noise" in capsys.readouterr().out


def test_files_about_an_instance_are_named_after_it(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "cat", ["x", "y"])
    script = f'case "$3" in *x.onnx) echo a line; {SAT};; *) echo unsat > $5;; esac'
    compare(tmp_path, folder, "--tool", f"t={make_tool(tmp_path / 'tool', script)}", "--quiet")
    first, second = read_records(tmp_path / "out" / "t")
    assert first.counterexample.startswith("counterexamples/cat-0-x-prop-")
    assert first.log.startswith("logs/cat-0-x-prop-")
    assert (tmp_path / "out" / "t" / first.log).read_text() == "a line\n"
    assert second.log == ""  # it has printed nothing


def test_no_number_of_the_summary_is_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_folder(tmp_path / "cat", ["x"] * 12, timeout=1000)
    arguments = []
    for name in ("a_long_name_one", "a_long_name_two", "a_long_name_three", "a_long_name_four"):
        table = tmp_path / f"{name}.csv"
        rows = [f"cat,onnx/{n}-x.onnx,vnnlib/prop.vnnlib,1.0,unsat,123.45\n" for n in range(12)]
        table.write_text("".join(rows))
        arguments += ["--results", f"{name}={table}"]
    compare(tmp_path, folder, *arguments)
    output = capsys.readouterr().out
    assert "…" not in output
    row = next(line for line in output.splitlines() if line.startswith("a_long_name_three"))
    assert " ".join(row.split()[1:]) == "12 / 12 0 12 0 0 0 0 123.45 123.45 120"
