"""Windows has no fcntl and no resource: everything but the guard of processes works without."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.places import BENCHMARK

HIDDEN = """
import sys, pkgutil, importlib
import psutil, torch, onnx, onnxruntime, vnnlib  # which have parts of their own for each system
for name in ("fcntl", "resource"):
    sys.modules[name] = None  # importing it raises ImportError
import fgp_vnn
for module in pkgutil.walk_packages(fgp_vnn.__path__, "fgp_vnn."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from fgp_vnn.cli.main import main
sys.exit(main(["verify", *sys.argv[1:]]))
"""


@pytest.mark.slow
def test_all_modules_load_and_verify_works_without_fcntl_and_resource() -> None:
    name = "dense_16x2_pgd"
    files = (
        str(BENCHMARK / "onnx" / f"{name}.onnx"),
        str(BENCHMARK / "vnnlib" / f"{name}_untargeted_0.02.vnnlib"),
    )
    command = [sys.executable, "-c", HIDDEN, *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("unsat")
