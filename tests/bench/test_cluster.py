"""A real Ray on this machine: the same results, limits and resume, and nothing open to others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fgp_vnn.bench.journal import read_records
from fgp_vnn.cli.main import main
from tests.bench.commands import command, environment
from tests.helpers.bench_folders import identity, make_folder
from tests.helpers.places import ROOT


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_instance_and_the_rest_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray", reason="needs pip install 'fgp-vnn[cluster]'")
    words = ["unsat", "sat", "orphan", "ports", "raise", "hang", "liar", "proved", "unsat"]
    folder = make_folder(tmp_path / "cat", words, timeout=3.0)
    (folder / "onnx" / "7-proved.onnx").write_bytes(identity(offset=(-2.0, 0.0)))
    table = folder / "instances.csv"  # the one that is really verified may take its time
    table.write_text(re.sub("(7-proved.*),3.0", r"\1,120", table.read_text()))
    limits = ["--jobs", "2", "--grace", "0.5", "--memory", "4"]
    run = command(folder, tmp_path / "out", "--cluster", "--certificates", *limits)
    temporary = Path(tempfile.mkdtemp(dir="/tmp"))  # names of sockets must be short
    first = subprocess.run(
        [*run, "--limit", "8"],
        env={**environment(), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    left = [path for path in temporary.iterdir() if path.is_dir()]
    shutil.rmtree(temporary)
    assert not left  # not even by what was killed
    assert first.returncode == 1, first.stderr  # one has a counterexample that is none
    results = {
        record.onnx.rpartition("-")[2].removesuffix(".onnx"): record
        for record in read_records(tmp_path / "out")
    }
    assert len(read_records(tmp_path / "out")) == 8
    assert {word: record.result for word, record in results.items()} == {
        "unsat": "unsat",
        "sat": "sat",
        "orphan": "error",
        "ports": "unsat",
        "raise": "error",
        "hang": "error",
        "liar": "sat",
        "proved": "unsat",
    }
    assert "the node's worker was lost" in results["orphan"].reason
    assert results["hang"].reason == "no answer 0.5 s after its limit: killed"
    assert results["sat"].confirmed and not results["liar"].confirmed
    assert (tmp_path / "out" / results["sat"].counterexample).is_file()
    proof = tmp_path / "out" / results["proved"].certificate  # back from the node, and checked
    assert results["proved"].certified
    assert proof.stat().st_size == results["proved"].statistics["certificate_bytes"]
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    alone = [word for word in run[3:] if word != "--cluster"]  # resumed on this machine
    assert main(alone) == 1
    assert "8 of 9 done before, 1 to go" in capsys.readouterr().out


def test_without_ray_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    folder = make_folder(tmp_path / "cat", ["unsat"])
    assert main(["bench", str(folder), "--cluster", "--out", str(tmp_path / "out")]) == 2
    assert "pip install 'fgp-vnn[cluster]'" in capsys.readouterr().err
