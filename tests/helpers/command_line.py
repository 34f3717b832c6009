"""The tool as a user runs it, and small networks and properties to run it on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnxruntime

from fgp_vnn.property import load_property
from fgp_vnn.property.results import read_results
from tests.helpers.network_models import Builder
from tests.helpers.places import BENCHMARK, ROOT

MODEL = BENCHMARK / "onnx" / "dense_16x2_standard.onnx"
SAFE = BENCHMARK / "vnnlib" / "dense_16x2_standard_untargeted_0.01.vnnlib"
UNSAFE = BENCHMARK / "vnnlib" / "dense_16x2_standard_untargeted_0.06.vnnlib"

ENVIRONMENT: Mapping[str, str] = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
COMMAND = [sys.executable, "-m", "fgp_vnn"]


def run(
    command: list[str], *arguments: str | Path, env: Mapping[str, str] = ENVIRONMENT
) -> subprocess.CompletedProcess[str]:
    words = [*command, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=env, timeout=120, check=False)


def copy_of(process: subprocess.Popen[str]) -> int:
    """The id of the process that does the work of one that was started with `warm_python`."""
    assert isinstance(process.args, list)
    note = Path(process.args[0]).with_name(str(process.pid))
    while not (note.exists() and note.read_text().endswith("\n")):
        assert process.poll() is None
        time.sleep(0.005)
    return int(note.read_text())


def box(values: list[tuple[float, float]], outputs: int, constraint: str) -> str:
    """A property of VNN-LIB 1.0."""
    lines = [f"(declare-const X_{i} Real)" for i in range(len(values))]
    lines += [f"(declare-const Y_{i} Real)" for i in range(outputs)]
    for i, (low, high) in enumerate(values):
        lines += [f"(assert (>= X_{i} {low}))", f"(assert (<= X_{i} {high}))"]
    return "\n".join([*lines, f"(assert {constraint})", ""])


def small_model(folder: Path, *, weight: float | None = None) -> Path:
    """Four inputs, two outputs; one weight may be given."""
    builder = Builder([1, 4])
    first = np.random.default_rng(0).normal(size=(4, 3))
    if weight is not None:
        first[1, 1] = weight
    hidden = builder.op("Relu", builder.op("Gemm", "x", builder.const(first)))
    return builder.save(folder / "small.onnx", builder.op("Gemm", hidden, builder.random(3, 2)))


def small_property(folder: Path, inputs: int = 4, outputs: int = 2) -> Path:
    path = folder / "small.vnnlib"
    path.write_text(box([(-1, 1)] * inputs, outputs, "(<= Y_0 -100.0)"))
    return path


def no_network(folder: Path) -> list[str | Path]:
    path = folder / "text.onnx"
    path.write_text("this is not a network\n")
    return [path, SAFE]


def one_clear_line(stderr: str, words: tuple[str, ...]) -> None:
    (line,) = stderr.splitlines()
    assert line.startswith("fgp-vnn: ")
    assert "Traceback" not in line
    for word in words:
        assert word in line


def confirm_results(results: Path, model: Path, prop: Path) -> None:
    """What the competition's judge does with a counterexample, with no tolerance."""
    read = read_results(results)
    assert read.status == "sat" and read.x is not None and read.y is not None
    x = read.x.astype(np.float32)
    assert np.array_equal(x.astype(np.float64), read.x)  # nothing was lost in the digits
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    shape = [d if isinstance(d, int) else 1 for d in session.get_inputs()[0].shape]
    (y,) = session.run(None, {session.get_inputs()[0].name: x.reshape(shape)})
    assert np.array_equal(y.reshape(-1).astype(np.float64), read.y)
    assert load_property(prop).broken_by(read.x, read.y)


def hard_instance(folder: Path) -> list[str | Path]:
    """Far too many regions to be walked, and bounds that leave it open."""
    builder = Builder([1, 20])
    at = "x"
    for before, after in ((20, 60), (60, 60), (60, 60)):
        at = builder.op("Relu", builder.op("Gemm", at, builder.random(before, after)))
    model = builder.save(folder / "hard.onnx", builder.op("Gemm", at, builder.random(60, 1)))
    prop = folder / "hard.vnnlib"
    prop.write_text(box([(-1, 1)] * 20, 1, "(<= Y_0 -600.0)"))
    return [model, prop, "--engine", "walk", "--no-attack"]


def loaded(process: subprocess.Popen[str], library: str) -> bool:
    maps = Path(f"/proc/{process.pid}/maps")
    return process.poll() is not None or library in maps.read_text(errors="replace")
