"""Write a benchmark's ground_truth.csv with an exact oracle.

    python scripts/evaluation/ground_truth.py FOLDER

`sat` needs a float32 point of the box that onnxruntime confirms with no tolerance; `unsat` needs
a proof that the output constraints cannot be met even if relaxed by a clear margin. Anything else
is `unclear`: such an instance does not belong in the benchmark, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from rich.progress import track

from oracle.milp import layer_bounds, solve
from oracle.network import Array, Chain, read_chain
from oracle.query import Query, read_queries

MARGIN = 1e-3  # far above the 1e-6 of HiGHS and the rounding of float32
SECONDS = 120.0  # per mixed-integer program


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Exact verdicts for a benchmark folder.")
    parser.add_argument("folder", type=Path, help="a folder with instances.csv")
    folder: Path = parser.parse_args(argv).folder
    with (folder / "instances.csv").open(encoding="ascii", newline="") as file:
        instances = list(csv.reader(file))
    lines, unclear = ["onnx,vnnlib,timeout,result\n"], 0
    for onnx, vnnlib, timeout in track(instances, description="deciding"):
        started = time.monotonic()
        result = decide(folder / onnx, folder / vnnlib)
        lines.append(f"{onnx},{vnnlib},{timeout},{result}\n")
        unclear += result == "unclear"
        print(f"{vnnlib}: {result} ({time.monotonic() - started:.1f} s)", flush=True)
    (folder / "ground_truth.csv").write_text("".join(lines), encoding="ascii")
    return 1 if unclear else 0


def decide(onnx: Path, vnnlib: Path) -> str:
    """sat, unsat or unclear."""
    chain, queries = read_chain(onnx), read_queries(vnnlib)
    session = onnxruntime.InferenceSession(str(onnx), providers=["CPUExecutionProvider"])
    if any(confirmed(session, query, attack(chain, query)) for query in queries):
        return "sat"
    result, bounds = "unsat", {}
    for query in queries:
        box = (query.lower.tobytes(), query.upper.tobytes())
        if box not in bounds:
            bounds[box] = layer_bounds(chain, query.lower, query.upper)
        met, point = solve(chain, query, bounds[box], slack=MARGIN, seconds=SECONDS)
        if point is not None and confirmed(session, query, point):
            return "sat"
        if met is not False:
            result = "unclear"
    return result


def confirmed(session: onnxruntime.InferenceSession, query: Query, point: Array) -> bool:
    """Whether the point, as float32 inside of the box, meets every output constraint."""
    x = point.astype(np.float32)
    x = np.where(x.astype(np.float64) < query.lower, np.nextafter(x, np.float32(np.inf)), x)
    x = np.where(x.astype(np.float64) > query.upper, np.nextafter(x, np.float32(-np.inf)), x)
    exact = x.astype(np.float64)
    if not ((query.lower <= exact) & (exact <= query.upper)).all():
        return False
    entry = session.get_inputs()[0]
    (output,) = session.run(None, {entry.name: x.reshape(entry.shape)})
    y = np.ravel(output).astype(np.float64)
    return bool((query.rows @ y + query.offsets >= 0).all())


def attack(chain: Chain, query: Query) -> Array:
    """The best point of a few signed gradient ascents on the most violated constraint."""
    generator = np.random.default_rng(0)
    width = query.upper - query.lower
    best, best_value = query.lower, -np.inf
    for _ in range(10):
        x = query.lower + width * generator.random(len(width))
        for step in range(30):
            values = query.rows @ chain.pre_activations(x)[-1] + query.offsets
            if values.min() > best_value:
                best, best_value = x, values.min()
            direction = np.sign(chain.gradient(x, query.rows[values.argmin()]))
            x = np.clip(x + width * 0.5 * 0.9**step * direction, query.lower, query.upper)
    return best


if __name__ == "__main__":
    sys.exit(main())
