"""Measure the overhead of `fgp-vnn bench` over solving.

    python scripts/benchmarks/bench_overhead.py

Three measurements: the overhead with one worker on easy instances, the speed-up by two workers, and
the start-up time with a folder of ten thousand instances.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fgp_vnn.base.verdict import Verdict
from fgp_vnn.bench.journal import read_records

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Timing:
    """One run of the command: seconds until it had started, until it ended, and of solving."""

    started: float
    ended: float
    solving: float
    instances: int
    checking: float  # seconds of checking counterexamples again, not part of solving
    megabytes: float  # peak memory of the coordinator or a worker, whichever is larger

    @property
    def overhead(self) -> float:
        """Time of the command that is not solving, from start to end, relative to solving."""
        return self.ended / self.solving - 1

    @property
    def steady_overhead(self) -> float:
        """The same, counted from the moment the first worker is warm."""
        return (self.ended - self.started) / self.solving - 1


def wait(model: str, prop: str, *, timeout: float, **settings: object) -> Verdict:
    """Stand-in for a verifier that takes a tenth of a second of CPU time."""
    end = time.process_time() + 0.1
    while time.process_time() < end:
        sum(range(1000))
    return Verdict("unsat", "stand-in")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmark", type=Path, default=ROOT / "vnncomp" / "benchmark")
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument(
        "--repeat", type=int, default=1, help="number of runs, of which the fastest counts"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        easy = repeated(args.benchmark, args.instances, folder / "easy")
        for verifier in ("fgp_vnn:verify", "bench_overhead:wait"):
            measure_jobs(verifier, easy, folder / verifier.partition(":")[2], args.repeat)
        measure_start(folder / "many")


def measure_jobs(verifier: str, easy: Path, out: Path, repeat: int) -> None:
    one = best(easy, out / "1", repeat, "--jobs", "1", "--verifier", verifier)
    two = best(easy, out / "2", repeat, "--jobs", "2", "--verifier", verifier)
    each = (one.ended - one.started - one.solving) / one.instances
    check = one.checking / one.instances
    print(f"{verifier}: {one.instances} instances, {one.solving:.2f} s of solving")
    print(f"  start {one.started:.2f} s, then {1000 * each:.2f} ms of overhead per instance,")
    print(f"  of which {1000 * check:.2f} ms go into checking counterexamples once more")
    print(f"  overhead {one.overhead:.1%}, without the start {one.steady_overhead:.1%} (bar: 5%)")
    gain = one.ended / two.ended
    steady = (one.ended - one.started) / (two.ended - two.started)
    print(f"  two workers: {gain:.2f} times faster, without the start {steady:.2f} (bar: 1.7)")


def repeated(benchmark: Path, instances: int, folder: Path) -> Path:
    """Write a folder of `instances` instances by repeating a benchmark's rows under new names."""
    (folder / "onnx").mkdir(parents=True)
    (folder / "vnnlib").mkdir()
    rows = [line.split(",") for line in (benchmark / "instances.csv").read_text().split()]
    lines = []
    for number in range(instances):
        onnx, vnnlib, _ = rows[number % len(rows)]
        names = []
        for kind, name in (("onnx", onnx), ("vnnlib", vnnlib)):
            source = benchmark / name
            source = source if source.exists() else source.with_name(source.name + ".gz")
            names.append(f"{kind}/{number}-{source.name}")
            shutil.copy(source, folder / names[-1])
        lines.append(f"{names[0]},{names[1]},60\n")
    (folder / "instances.csv").write_text("".join(lines))
    return folder


def best(folder: Path, out: Path, repeat: int, *arguments: str) -> Timing:
    """The fastest of several runs, the one least disturbed by the rest of the machine."""
    runs = [timed(folder, out / str(number), *arguments) for number in range(repeat)]
    return min(runs, key=lambda timing: timing.ended)


def timed(folder: Path, out: Path, *arguments: str) -> Timing:
    """Run the command as a user does; it prints its first line with the first result."""
    begin = time.perf_counter()
    process = start(folder, out, *arguments)
    assert process.stdout is not None
    process.stdout.readline()
    first = time.perf_counter() - begin
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    ended = time.perf_counter() - begin
    if process.returncode:
        sys.exit(f"bench ended with exit code {process.returncode}")
    records = read_records(out)
    started = first - records[0].run_time
    solving = sum(record.run_time for record in records)
    checking = sum(record.seconds.get("check", 0.0) for record in records)
    return Timing(started, ended, solving, len(records), checking, usage.ru_maxrss / 1024)


def measure_start(folder: Path, instances: int = 10_000) -> None:
    """Measure when the first of many instances is handed to a worker, and the peak memory."""
    (folder / "onnx").mkdir(parents=True)
    (folder / "vnnlib").mkdir()
    for number in range(instances):
        (folder / "onnx" / f"network-{number}.onnx").touch()
        (folder / "vnnlib" / f"property-{number}.vnnlib").touch()
    rows = [f"onnx/network-{n}.onnx,vnnlib/property-{n}.vnnlib,60\n" for n in range(instances)]
    (folder / "instances.csv").write_text("".join(rows))
    timing = timed(folder, folder / "out", "--verifier", "bench_overhead:nothing")
    print(f"{instances} instances: first handed out after {timing.started:.2f} s (bar: 2 s),")
    print(f"  at most {timing.megabytes:.0f} MB (bar: 300 MB in the coordinator)")


def nothing(model: str, prop: str, *, timeout: float, **settings: object) -> Verdict:
    return Verdict("unsat", "stand-in")


def start(folder: Path, out: Path, *arguments: str) -> subprocess.Popen[str]:
    paths = [str(ROOT), str(Path(__file__).resolve().parent)]
    return subprocess.Popen(
        [sys.executable, "-m", "fgp_vnn", "bench", str(folder), "--out", str(out), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
    )


if __name__ == "__main__":
    main()
