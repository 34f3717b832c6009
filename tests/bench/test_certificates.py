"""bench --certificates: every unsat with its proof, checked apart from the verifier."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fgp_vnn.bench.journal import read_records
from fgp_vnn.cli.main import main
from fgp_vnn.report.run_page import write_report
from tests.helpers.bench_folders import make_folder
from tests.helpers.places import BENCHMARK, ROOT

# Three unsats, one of them by a search, and a sat.
FEW = "dense_16x2_standard_untargeted_0.0|conv_6-12-32_pgd_untargeted_0.08"
BY_NAME = "tests.bench.verifiers:with_certificate"


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> tuple[Path, int]:
    """The folder of a run of bundled instances with two workers, and its exit code."""
    out = tmp_path_factory.mktemp("runs") / "proved"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.executable", warm_python)
        return out, main(bundled(out, "--jobs", "2"))


def bundled(out: Path, *arguments: str) -> list[str]:
    fixed = ["--filter", FEW, "--certificates", "--quiet", "--out", str(out)]
    return ["bench", str(BENCHMARK), *fixed, *arguments]


def stand_in(tmp_path: Path, words: list[str], *arguments: str) -> int:
    folder = tmp_path / "cat"
    if not folder.exists():
        make_folder(folder, words)
    fixed = ["--verifier", BY_NAME, "--out", str(tmp_path / "out"), "--certificates"]
    return main(["bench", str(folder), *fixed, *arguments])


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch, warm_python: str) -> None:
    """The stand-ins can be imported by workers."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.setattr("sys.executable", warm_python)  # that of workers


def test_every_unsat_has_a_proof_that_the_checker_accepts_by_itself(
    proved: tuple[Path, int],
) -> None:
    out, code = proved
    records = read_records(out)
    assert code == 0 and {record.result for record in records} == {"sat", "unsat"}
    for record in records:
        assert bool(record.certificate) == bool(record.certified) == (record.result == "unsat")
        if not record.certificate:
            continue
        assert Path(record.onnx).stem in record.certificate
        assert Path(record.vnnlib).stem in record.certificate
        assert record.statistics["certificate_bytes"] == (out / record.certificate).stat().st_size
        assert record.statistics["certificate_leaves"] > 0
        assert min(record.seconds["certificate"], record.seconds["check_certificate"]) > 0
        files = [str(BENCHMARK / name) for name in (record.onnx, record.vnnlib)]
        assert main(["check-certificate", str(out / record.certificate), *files]) == 0


def test_totals_are_those_of_all_results_also_when_a_run_is_resumed(
    proved: tuple[Path, int], capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = proved
    before = (out / "results.jsonl").read_bytes()
    assert main([word for word in bundled(out) if word != "--quiet"]) == 0
    assert (out / "results.jsonl").read_bytes() == before
    unsat = [record for record in read_records(out) if record.result == "unsat"]
    size = sum(record.statistics["certificate_bytes"] for record in unsat)
    said = f"{len(unsat)} of {len(unsat)} unsat with an accepted certificate; {size:,} bytes"
    assert said in capsys.readouterr().out


def test_the_report_has_sizes_times_links_and_totals(proved: tuple[Path, int]) -> None:
    pytest.importorskip("jinja2")
    out, _ = proved
    page = write_report(out).read_text()
    assert "unsat with an accepted certificate" in page
    assert "fgp-vnn certificate" in page
    for record in read_records(out):
        if record.certificate:
            size = record.statistics["certificate_bytes"]
            assert f'href="./{record.certificate}">certificate</a>' in page
            assert f'accepted <span class="measure">{size:,} bytes</span>' in page


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_proof_that_is_refused_is_shouted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: list[str]
) -> None:
    assert stand_in(tmp_path, ["forged", "sat"], *quiet) == 1
    captured = capsys.readouterr()
    assert "CERTIFICATE REFUSED" in captured.out and "0-forged.onnx" in captured.out
    assert "1 certificate refused" in captured.err
    assert stand_in(tmp_path, [], *quiet) == 1  # also when nothing is left to run
    assert read_records(tmp_path / "out")[0].certified is False
    pytest.importorskip("jinja2")
    assert "1 certificate refused" in write_report(tmp_path / "out").read_text()


def test_an_unsat_without_a_proof_is_counted_and_gives_the_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stand_in(tmp_path, ["bare", "sat"]) == 1
    captured = capsys.readouterr()
    assert "0 of 1 unsat with an accepted certificate" in captured.out
    assert "1 unsat without a certificate" in captured.err


def test_a_checker_that_dies_costs_the_check_and_not_the_verdict(tmp_path: Path) -> None:
    assert stand_in(tmp_path, ["deadly", "sat"]) == 1
    deadly, other = read_records(tmp_path / "out")
    assert (deadly.result, deadly.certified, other.result) == ("unsat", None, "sat")
    assert deadly.reason.startswith("certificate not checked: the worker ended by SIGKILL")


def test_a_run_without_certificates_is_not_resumed_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    fixed = ["bench", str(make_folder(tmp_path / "cat", ["sat"])), "--verifier", BY_NAME]
    assert main([*fixed, "--out", str(out)]) == 0
    assert main([*fixed, "--out", str(out), "--certificates"]) == 2
    assert "certificates" in capsys.readouterr().err
    assert "certificates" not in json.loads((out / "run.json").read_text())
