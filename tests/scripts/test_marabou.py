"""Marabou as a tool of `compare`: the scripts of scripts/evaluation/marabou."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fgp_vnn.property import load_property
from fgp_vnn.property.results import read_results
from tests.helpers.places import BENCHMARK, ROOT

SCRIPTS = ROOT / "scripts" / "evaluation" / "marabou"


@pytest.mark.parametrize(("epsilon", "status"), [("0.02", "unsat"), ("0.15", "sat")])
def test_marabou_answers_as_the_ground_truth_says(
    epsilon: str, status: str, tmp_path: Path
) -> None:
    pytest.importorskip("maraboupy", reason="Marabou has no wheel for this machine")
    onnx = BENCHMARK / "onnx" / "dense_16x2_pgd.onnx"
    vnnlib = BENCHMARK / "vnnlib" / f"dense_16x2_pgd_untargeted_{epsilon}.vnnlib"
    results = tmp_path / "results.txt"
    environment = {**os.environ, "MARABOU_PYTHON": sys.executable}
    words = ["v1", "bundled", str(onnx), str(vnnlib)]
    for script, more in (("prepare_instance.sh", []), ("run_instance.sh", [str(results), "1000"])):
        subprocess.run(["bash", str(SCRIPTS / script), *words, *more], env=environment, check=True)
    prop = load_property(vnnlib)
    answer = read_results(results, prop)
    assert answer.status == status
    if status == "sat":
        assert answer.x is not None and answer.y is not None
        assert prop.broken_by(answer.x, answer.y)
