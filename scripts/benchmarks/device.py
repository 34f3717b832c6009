"""Compare a CPU and a GPU on the bundled instances.

    python scripts/benchmarks/device.py [--devices cpu cuda] [--folder FOLDER] [--timeout 20]

Each instance is verified on each device in turn. A first run on each device is not counted, since
the device loads its programs then. Prints a table of networks with the number of decided instances
and the median seconds on each device. Exits with 1 if two devices contradict each other.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.verdict import Verdict
from fgp_vnn.bench.instances import Instance, read_benchmark, select

ROOT = Path(__file__).resolve().parents[2]
DECIDED = ("sat", "unsat")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="CPU and GPU on the same instances.")
    parser.add_argument("--folder", type=Path, default=ROOT / "vnncomp" / "benchmark")
    parser.add_argument("--devices", nargs="+", default=["cpu", "cuda"])
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds for each instance")
    parser.add_argument("--filter", help="only instances that match this regular expression")
    parser.add_argument("--no-attack", action="store_true", help="searches alone")
    args = parser.parse_args(argv)
    try:
        benchmark = read_benchmark(args.folder, timeout=args.timeout)
        instances = select(benchmark.instances, pattern=args.filter)
        for device in args.devices:
            _run(instances[0], device, args)  # not counted; InputError if the device is missing
    except InputError as error:
        print(f"device.py: {error}", file=sys.stderr)
        return 2
    found: dict[str, list[dict[str, Verdict]]] = defaultdict(list)
    for instance in track(instances, description="measuring", console=Console(stderr=True)):
        one = {device: _run(instance, device, args) for device in args.devices}
        found[Path(instance.onnx).stem].append(one)
    Console().print(table(found, args.devices))
    wrong = contradictions(found)
    print(f"torch {torch.__version__}, {wrong} contradictions")
    return 1 if wrong else 0


def _run(instance: Instance, device: str, args: argparse.Namespace) -> Verdict:
    return fgp_vnn.verify(
        instance.network_files[0],
        instance.property_file,
        timeout=args.timeout,
        device=device,
        attack=not args.no_attack,
    )


def table(found: dict[str, list[dict[str, Verdict]]], devices: Sequence[str]) -> Table:
    """A row per network: the number of decided instances and the median seconds on each device."""
    result = Table("network", "instances", *(f"{d}: decided | seconds" for d in devices))
    for name, runs in found.items():
        cells = []
        for device in devices:
            mine = [run[device] for run in runs]
            decided = sum(verdict.status in DECIDED for verdict in mine)
            seconds = statistics.median(verdict.seconds["total"] for verdict in mine)
            cells.append(f"{decided} | {seconds:.3f}")
        result.add_row(name, str(len(runs)), *cells)
    return result


def contradictions(found: dict[str, list[dict[str, Verdict]]]) -> int:
    """The number of instances that are sat on one device and unsat on another."""
    decided = (
        {verdict.status for verdict in run.values()} & set(DECIDED)
        for runs in found.values()
        for run in runs
    )
    return sum(len(statuses) > 1 for statuses in decided)


if __name__ == "__main__":
    sys.exit(main())
