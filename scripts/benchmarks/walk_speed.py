"""Compare the walk's regions per second with a plain implementation of the paper's algorithm.

    python scripts/benchmarks/walk_speed.py FOLDER [--networks mnist20x3 ...] [--points 8]

FOLDER holds the paper's networks (NAME.onnx) and points (mnist100.npz, fmnist100.npz). All walks
take the same points in turn in one process. The table has three rates, in regions per second of CPU
time, which a busy machine disturbs least: the reference, the walk with the paper's rules (signed
and combined rules off), and the walk as it is. It also has the numbers of regions that the last two
needed on points where both finished.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts/evaluation"))

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from fgp_vnn.api.certify import Certifier
from fgp_vnn.network import load_network
from paper_results import NETWORKS
from reference_walk import layers_of, reference_walk

PLAIN = {"signed": False, "combined": False, "alternate": False}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Regions per second of the walk.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", nargs="+", default=["mnist20x3", "mnist40x3", "mnist20x9"])
    parser.add_argument("--points", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each point and walk")
    parser.add_argument("--epsilon", type=float, default=0.25)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    table = Table(
        "network", "reference", "paper's rules", "as it is", "regions: paper's / as it is"
    )
    for name in args.networks:
        table.add_row(name, *_measure(args, name))
    Console().print(table)
    return 0


def _measure(args: argparse.Namespace, name: str) -> list[str]:
    loaded = load_network(args.folder / f"{name}.onnx")
    with np.load(args.folder / f"{NETWORKS[name].data}.npz") as archive:
        points = archive["x"][: args.points].astype(np.float64)
    layers = layers_of(loaded.network)
    plain = Certifier.of(loaded, engine="walk", **PLAIN)
    full = Certifier.of(loaded, engine="walk")
    rates: dict[str, list[float]] = {"reference": [0, 0], "plain": [0, 0], "full": [0, 0]}
    regions = [0, 0]
    for x in points:
        begin = time.process_time()
        slow = reference_walk(layers, x, args.epsilon, seconds=args.seconds / 4)
        _add(rates["reference"], slow.regions, time.process_time() - begin)
        counts, ended = [], True
        for key, certifier in (("plain", plain), ("full", full)):
            begin = time.process_time()
            result = certifier.certify(x, epsilon=args.epsilon, timeout=args.seconds)
            spent = time.process_time() - begin
            counts.append(result.statistics["regions"])
            ended &= result.status != "timeout"
            _add(rates[key], counts[-1], spent)
        if ended:
            regions = [a + b for a, b in zip(regions, counts, strict=True)]
    per_second = [f"{count / max(seconds, 1e-9):,.0f}/s" for count, seconds in rates.values()]
    return [*per_second, f"{regions[0]:,} / {regions[1]:,}"]


def _add(rate: list[float], regions: int, seconds: float) -> None:
    rate[0] += regions
    rate[1] += seconds


if __name__ == "__main__":
    sys.exit(main())
