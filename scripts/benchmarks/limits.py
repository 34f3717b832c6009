"""Measure how well `fgp-vnn verify` keeps its limits: python scripts/benchmarks/limits.py FOLDER.

Runs one instance, if possible not a known easy one, for each of the largest networks of a benchmark
folder or tree. Prints the time from start to end of the process, how far that is past `--timeout`,
and the peak memory, for every combination of the given limits.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.files import read_bytes
from fgp_vnn.bench.instances import Instance, read_benchmark, select
from fgp_vnn.bench.tables import Truth, read_truth

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Measured:
    """One run of the command."""

    status: str
    seconds: float  # from the start of the process to its end
    megabytes: float  # peak resident memory


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Time and memory past their limits.")
    parser.add_argument("folder", type=Path, help="a benchmark, or a tree of them")
    parser.add_argument("--timeout", type=float, nargs="+", default=[2.0, 5.0, 10.0])
    parser.add_argument("--memory", type=float, nargs="+", help="gigabytes")
    parser.add_argument("--networks", type=int, default=5, help="how many, the largest first")
    parser.add_argument("--filter", help="only instances that match this regular expression")
    parser.add_argument("--worst", type=float, help="exit with 1 if a run is later than this")
    chosen = parser.parse_args(argv)
    try:
        instances = hardest(chosen.folder, chosen.networks, chosen.filter)
    except InputError as error:
        print(f"limits.py: {error}", file=sys.stderr)
        return 2
    console = Console()
    table = Table("network", "property", "timeout", "memory", "verdict", "seconds", "late", "MB")
    latest = 0.0
    runs = list(product(instances, chosen.timeout, chosen.memory or [None]))
    for instance, timeout, memory in track(runs, description="measuring", console=console):
        measured = measure(instance, timeout, memory)
        late = max(0.0, measured.seconds - timeout)
        latest = max(latest, late)
        table.add_row(
            Path(instance.onnx).name[:30],
            Path(instance.vnnlib).name[:30],
            f"{timeout:g}",
            "half of free" if memory is None else f"{memory:g} GB",
            measured.status,
            f"{measured.seconds:.2f}",
            f"{late:.2f}",
            f"{measured.megabytes:.0f}",
        )
    console.print(table)
    console.print(f"{len(runs)} runs; the latest ended {latest:.2f} s after its time")
    return 1 if chosen.worst is not None and latest > chosen.worst else 0


def hardest(folder: Path, networks: int, pattern: str | None) -> list[Instance]:
    """One instance for each of the largest networks, if possible not known to be sat."""
    benchmark = read_benchmark(folder, timeout=1.0)
    truth = read_truth(benchmark.folders)
    chosen: dict[tuple[str, ...], Instance] = {}
    for instance in select(benchmark.instances, pattern=pattern):
        held = chosen.setdefault(instance.network_files, instance)
        if _rank(truth, instance) < _rank(truth, held):
            chosen[instance.network_files] = instance
    sizes = {files: len(read_bytes(Path(files[0]), "network")) for files in chosen}
    return [chosen[files] for files in sorted(chosen, key=lambda f: -sizes[f])][:networks]


def _rank(truth: Truth, instance: Instance) -> int:
    return ["", "unsat", "sat"].index(truth.get(instance.key, ""))


def measure(instance: Instance, timeout: float, memory: float | None) -> Measured:
    """Run the command on an instance."""
    command = [sys.executable, "-m", "fgp_vnn", "verify"]
    command += [instance.network_files[0], instance.property_file, "--timeout", str(timeout)]
    command += [] if memory is None else ["--memory", str(memory)]
    reader, writer = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_CLOSE, reader)]
    begin = time.monotonic()
    child = os.posix_spawn(sys.executable, command, _environment(), file_actions=actions)
    os.close(writer)
    _, code, usage = os.wait4(child, 0)
    seconds = time.monotonic() - begin
    with os.fdopen(reader) as output:
        words = output.read().split()
    status = words[0] if code == 0 and words else f"exit {os.waitstatus_to_exitcode(code)}"
    return Measured(status, seconds, usage.ru_maxrss / 1024)


def _environment() -> dict[str, str]:
    package = str(ROOT)
    path = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


if __name__ == "__main__":
    sys.exit(main())
