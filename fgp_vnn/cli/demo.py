"""fgp-vnn demo: verify the bundled benchmark and compare every verdict with the ground truth."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.words import plural
from fgp_vnn.bench.progress import Terminal
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.tables import GROUND_TRUTH, read_result_rows, result_word
from fgp_vnn.cli.example_files import write_examples

BENCHMARK = Path(fgp_vnn.__file__).parent / "bench" / "bundled"  # it is part of the package


EXAMPLE = "fgp-vnn demo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--benchmark",
        type=Path,
        metavar="FOLDER",
        help="another folder with a ground_truth.csv (default: the bundled benchmark)",
    )
    add(
        "--files",
        type=Path,
        metavar="FOLDER",
        help="write example files for the other commands to FOLDER, and verify nothing (default: "
        "verify)",
    )


def run(args: argparse.Namespace) -> int:
    """Return 0, or 1 if a verdict contradicts the ground truth."""
    if args.files is not None:
        if args.benchmark is not None:
            raise InputError("--files writes the bundled examples: leave out --benchmark")
        print(f"{args.files}: {', '.join(write_examples(args.files, BENCHMARK))}")
        return 0
    folder: Path = args.benchmark or BENCHMARK
    waiting = read_instances(folder)
    console = Terminal()
    started = time.monotonic()
    records = decide(folder, waiting, console)
    console.print(table(records))
    console.print(summary(records, time.monotonic() - started))
    return 1 if any(record.contradiction for record in records) else 0


def read_instances(folder: Path) -> list[Record]:
    """Return the rows of ground_truth.csv as records that have no result yet."""
    records = []
    for place, row in read_result_rows(folder / GROUND_TRUTH):
        try:
            limit = float(row["timeout"])
        except (KeyError, ValueError):
            raise InputError(f"{place}: no timeout in seconds") from None
        word = result_word(row["result"])
        known = word if word in ("sat", "unsat") else ""
        records.append(Record("", row["onnx"], row["vnnlib"], limit, "", 0, expected=known))
    return records


def decide(folder: Path, waiting: Sequence[Record], console: Console) -> list[Record]:
    """Verify one instance after the other, in this process."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    records = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("loading", total=len(waiting))
        for one in waiting:
            progress.update(task, description=Path(one.vnnlib).stem)
            started = time.monotonic()
            verdict = fgp_vnn.verify(folder / one.onnx, folder / one.vnnlib, timeout=one.timeout)
            seconds, by = time.monotonic() - started, verdict.decided_by
            records.append(replace(one, result=verdict.status, run_time=seconds, decided_by=by))
            progress.advance(task)
    return records


def table(records: Iterable[Record]) -> Table:
    """A row per instance; a wrong verdict stands out."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("property", "verdict", "decided by"):
        result.add_column(heading)
    result.add_column("seconds", justify="right")
    result.add_column("expected")
    for record in records:
        wrong, right = record.contradiction, record.result == record.expected
        result.add_row(
            Path(record.vnnlib).stem,
            record.result,
            record.decided_by,
            f"{record.run_time:.2f}",
            record.expected + ("  WRONG" if wrong else ""),
            style="bold red" if wrong else None if right else "yellow",
        )
    return result


def summary(records: Sequence[Record], seconds: float) -> str:
    """One line: how many of each verdict, how many wrong, how long."""
    counts = Counter(record.result for record in records)
    said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    wrong = sum(bool(record.contradiction) for record in records)
    instances = plural(len(records), "instance")
    return f"\n{instances} in {seconds:.1f} s: {said or 'none'}; {wrong} wrong"
