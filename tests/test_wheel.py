"""What a user installs: built without a warning, complete, and at work without a clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.helpers.places import BENCHMARK, ROOT

pytestmark = pytest.mark.slow

LEFT_OUT = (".*", "__pycache__", "build", "dist", "runs", "*.egg-info")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, made from a copy of the repository."""
    pytest.importorskip("build", reason="needs pip install build")
    folder = tmp_path_factory.mktemp("built")
    source = folder / "source"
    shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    command = [sys.executable, "-W", "error", "-m", "build", "--no-isolation", "-o", str(folder)]
    kept = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}  # a warning
    done = subprocess.run([*command, str(source)], env=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    said = f"{done.stdout}\n{done.stderr}".lower()
    assert [line for line in said.splitlines() if "warning" in line or "deprecat" in line] == []
    return folder


def test_the_wheel_has_the_whole_benchmark_and_the_sdist_the_tests(built: Path) -> None:
    wheel = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    for name in ("instances.csv", "ground_truth.csv", "points.npz"):
        assert f"fgp_vnn/bench/bundled/{name}" in wheel
    for folder in ("onnx", "vnnlib"):
        bundled = {path.name for path in (BENCHMARK / folder).iterdir()}
        start = f"fgp_vnn/bench/bundled/{folder}/"
        assert {name[len(start) :] for name in wheel if name.startswith(start)} == bundled
    assert {"fgp_vnn/py.typed", "fgp_vnn/report/page/page.css"} <= set(wheel)
    assert not [name for name in wheel if name.startswith(("tests", "scripts"))]
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("tests/test_wheel.py", "scripts/test.sh", "docs/index.md", "CITATION.cff"):
        assert name in names
    assert "vnncomp/run_instance.sh" in names


def test_the_demo_runs_from_the_wheel_with_no_clone(built: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    zipfile.ZipFile(next(built.glob("*.whl"))).extractall(target)  # as pip does, after seconds
    shutil.copytree(target / "fgp_vnn" / "bench" / "bundled", tmp_path / "few")
    rows = (tmp_path / "few" / "ground_truth.csv").read_text().splitlines()
    few = [row for row in rows if re.search("^onnx,|16x2_pgd_untargeted_0.0[58]", row)]
    (tmp_path / "few" / "ground_truth.csv").write_text("\n".join(few) + "\n")
    program = [sys.executable, "-m", "fgp_vnn", "demo"]
    done = subprocess.run(
        [*program, "--benchmark", "few"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "2 instances in" in done.stdout and "0 wrong" in done.stdout


def test_what_the_dockerfile_copies_builds_the_whole_package(tmp_path: Path) -> None:
    """Its steps up to the installation, without Docker: the same files in an empty folder."""
    pytest.importorskip("build", reason="needs pip install build")
    place = tmp_path / "image"
    place.mkdir()
    for line in (ROOT / "vnncomp" / "Dockerfile").read_text().splitlines():
        if line.startswith("RUN pip") and "'.[" in line:
            break
        word, *parts = line.split() or [""]
        if word != "COPY":
            continue
        *sources, target = parts
        for source in sources:
            goal = place / source if target == "./" else place / target
            goal.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, goal, symlinks=True)
            else:
                shutil.copyfile(ROOT / source, goal)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(tmp_path)]
    done = subprocess.run([*command, str(place)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for name in ("instances.csv", "points.npz", "onnx/dense_16x2_pgd.onnx"):
        assert f"fgp_vnn/bench/bundled/{name}" in names
