"""What every command can be called with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.bench_folders import make_folder
from tests.helpers.command_line import MODEL, SAFE


@pytest.fixture
def usual(tmp_path: Path) -> dict[str, list[str]]:
    """Arguments of each command that are in order, and of a run that is short."""
    points = tmp_path / "points.npy"
    np.save(points, np.full((2, 64), 0.5, np.float32))
    folder = make_folder(tmp_path / "cat", ["unsat", "unsat"])
    table = tmp_path / "published.csv"
    table.write_text("cat,onnx/0-unsat.onnx,vnnlib/prop.vnnlib,0.0,unsat,0.1\n")
    results = tmp_path / "sat.txt"
    results.write_text("sat\n")
    known = tmp_path / "known"
    known.mkdir()
    row = "../cat/onnx/0-unsat.onnx,../cat/vnnlib/prop.vnnlib,60,sat"
    (known / "ground_truth.csv").write_text(f"onnx,vnnlib,timeout,result\n{row}\n")
    pair, out = [str(MODEL), str(SAFE)], str(tmp_path / "out")
    return {
        "verify": pair,
        "certify": [str(MODEL), str(points), "--epsilon", "0.01", "--first", "1"],
        "radius": [str(MODEL), str(points), "--engine", "bounds", "--max", "0.1", "--first", "1"],
        "supports": pair,
        "networks": [str(MODEL)],
        "bench": [str(folder), "--verifier", "tests.bench.verifiers:by_name", "--out", out],
        "compare": [str(folder), "--results", f"a={table}", "--out", out],
        "report": [out],
        "check": [str(results), *pair],
        "check-certificate": [str(points), *pair],
        "demo": ["--benchmark", str(known)],
        "bounds": [*pair, "--method", "plain"],
        "property": [str(MODEL), str(points), "--epsilon", "0.01", "--first", "1", "--out", out],
        "completion": ["bash"],
    }
