"""Solve the instances of a folder with certificates, check these, and say what it costs.

Run: python scripts/evaluation/certificates.py FOLDER --timeout 20

Instances that ground_truth.csv knows to be sat are left out: they have no certificate. Exits with 1
if an unsat is without a certificate that the checker accepts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.instances import Instance, read_benchmark, select
from fgp_vnn.bench.truth import read_truth


@dataclass(frozen=True)
class Row:
    """One instance: its verdict and, in seconds, what solving, writing and checking took."""

    name: str
    status: str
    decided_by: str
    solve: float
    write: float = 0.0
    check: float = 0.0
    size: int = 0  # bytes
    leaves: int = 0
    fault: str = ""  # why there is no accepted certificate; empty if there is one

    def __str__(self) -> str:
        words = f"{self.name:58} {self.status:8} {self.decided_by:7} {self.solve:8.2f}"
        if self.status != "unsat":
            return words
        return f"{words} {self.write:8.2f} {self.check:8.2f} {self.size:10,} {self.leaves:8,} " + (
            self.fault or "accepted"
        )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--timeout", type=float, help="for all, in place of the rows' own limits")
    parser.add_argument("--filter", help="a regular expression for the names of instances")
    parser.add_argument("--every", type=int, default=1, help="only each so-manieth instance")
    args = parser.parse_args(argv)
    try:
        benchmark = read_benchmark(args.folder, timeout=args.timeout)
        truth = read_truth(benchmark.folders)
        chosen = select(benchmark.instances, pattern=args.filter)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    wanted = [i for i in chosen if truth.get(i.key) != "sat"][:: args.every]
    import torch

    torch.set_num_threads(1)
    heads = f"{'solve':>8} {'write':>8} {'check':>8} {'bytes':>10} {'leaves':>8}"
    print(f"{'instance':58} {'verdict':8} {'by':7} {heads}")
    rows = []
    for instance in wanted:
        rows.append(measure(instance))
        print(rows[-1], flush=True)
    print(summary(rows))
    return 1 if any(row.fault for row in rows) else 0


def measure(instance: Instance) -> Row:
    """Solve an instance, and check its certificate if it has one."""
    from fgp_vnn import verify
    from fgp_vnn.base.files import read_bytes
    from fgp_vnn.certificate.checker.check import check_files

    model, prop = Path(instance.network_files[0]), Path(instance.property_file)
    name = f"{Path(instance.onnx).stem} {Path(instance.vnnlib).stem}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.npz"
        verdict = verify(model, prop, timeout=instance.timeout, certificate=path)
        write = verdict.seconds.get("certificate", 0.0)
        solve = verdict.seconds["total"] - write
        if not verdict.certificate:
            fault = verdict.reason if verdict.status == "unsat" else ""
            return Row(name, verdict.status, verdict.decided_by, solve, fault=fault)
        begin = time.perf_counter()
        contents = read_bytes(path, "certificate"), read_bytes(model, ""), read_bytes(prop, "")
        try:
            leaves, fault = check_files(*contents).leaves, ""
        except InputError as error:
            leaves, fault = 0, f"refused: {error}"
        check = time.perf_counter() - begin
    size = len(contents[0])
    return Row(name, verdict.status, verdict.decided_by, solve, write, check, size, leaves, fault)


def summary(rows: list[Row]) -> str:
    """Counts and sums over the instances that are unsat."""
    proved = [row for row in rows if row.status == "unsat"]
    good = [row for row in proved if not row.fault]
    count = max(len(good), 1)
    solve, write, check = (sum(getattr(r, n) for r in good) for n in ("solve", "write", "check"))
    return (
        f"{len(rows)} instances: {len(proved)} unsat, {len(good)} of them with an accepted "
        f"certificate, {sum(row.size for row in good) / count:,.0f} bytes on average; seconds to "
        f"solve {solve:.1f}, to write {write:.1f}, to check {check:.1f}"
    )


if __name__ == "__main__":
    sys.exit(main())
