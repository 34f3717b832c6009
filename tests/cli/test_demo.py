"""The demo's table and exit code, with verdicts given by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import fgp_vnn
from fgp_vnn.base.verdict import Status, Verdict
from fgp_vnn.cli.demo import BENCHMARK, read_instances
from fgp_vnn.cli.main import main
from tests.helpers.places import PACKAGE


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    rows = ["onnx,vnnlib,timeout,result", "a.onnx,p.vnnlib,30,sat", "a.onnx,q.vnnlib,30,unsat"]
    (tmp_path / "ground_truth.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def answers(**statuses: Status) -> Callable[..., Verdict]:
    def verify(onnx: Path, vnnlib: Path, *, timeout: float) -> Verdict:
        assert timeout == 30 and onnx.name == "a.onnx"
        return Verdict(statuses[vnnlib.stem], decided_by="walk")

    return verify


@pytest.mark.parametrize(
    ("p", "q", "code", "said"),
    [
        ("sat", "unsat", 0, "1 sat, 1 unsat; 0 wrong"),
        ("unknown", "timeout", 0, "1 timeout, 1 unknown; 0 wrong"),
        ("unsat", "unsat", 1, "2 unsat; 1 wrong"),
        ("sat", "sat", 1, "2 sat; 1 wrong"),
    ],
)
def test_only_a_contradiction_fails(
    benchmark: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    p: Status,
    q: Status,
    code: int,
    said: str,
) -> None:
    monkeypatch.setitem(vars(fgp_vnn), "verify", answers(p=p, q=q))
    assert main(["demo", "--benchmark", str(benchmark)]) == code
    output = capsys.readouterr().out
    assert said in output
    assert ("WRONG" in output) == bool(code)


def test_an_answer_that_is_not_known_contradicts_nothing(
    benchmark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = benchmark / "ground_truth.csv"
    table.write_text(table.read_text().replace("30,sat", "30,unknown"))
    monkeypatch.setitem(vars(fgp_vnn), "verify", answers(p="unsat", q="unsat"))
    assert main(["demo", "--benchmark", str(benchmark)]) == 0


def test_one_instance_is_counted_in_the_singular(
    benchmark: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = benchmark / "ground_truth.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:2]))
    monkeypatch.setitem(vars(fgp_vnn), "verify", answers(p="sat"))
    assert main(["demo", "--benchmark", str(benchmark)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 instance in ")


@pytest.mark.parametrize("limit", ["soon", ""])
def test_a_row_without_a_time_limit_is_named(
    benchmark: Path, limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = benchmark / "ground_truth.csv"
    table.write_text(table.read_text().replace("q.vnnlib,30", f"q.vnnlib,{limit}"))
    assert main(["demo", "--benchmark", str(benchmark)]) == 2
    assert capsys.readouterr().err == f"fgp-vnn: {table}:3: no timeout in seconds\n"


def test_a_folder_without_ground_truth_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--benchmark", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_bundled_benchmark_is_part_of_the_package() -> None:
    assert PACKAGE in BENCHMARK.parents
    instances = read_instances(BENCHMARK)
    assert len(instances) >= 40
    files = [name for instance in instances for name in (instance.onnx, instance.vnnlib)]
    assert all((BENCHMARK / name).is_file() for name in files)


def test_files_to_try_the_commands_with_are_written_and_nothing_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "example"
    assert main(["demo", "--files", str(folder)]) == 0
    for network, prop in (("model", "property"), ("controller", "pushes_back")):
        files = [str(folder / f"{network}.onnx"), str(folder / f"{prop}.vnnlib")]
        assert main(["supports", *files]) == 0
    answers = {instance.expected for instance in read_instances(folder / "benchmark")}
    assert answers == {"sat", "unsat"}
    (folder / "mine.txt").touch()
    assert main(["demo", "--files", str(folder)]) == 0  # again, beside what a user has made
    (folder / "model.onnx").write_text("my own")
    capsys.readouterr()
    assert main(["demo", "--files", str(folder)]) == 2
    assert "model.onnx exists already with other content" in capsys.readouterr().err
