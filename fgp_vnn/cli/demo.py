"""fgp-vnn demo: verify the bundled benchmark and compare every verdict with the ground truth."""

from __future__ import annotations

import argparse
import csv
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import fgp_vnn
from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.progress import Terminal
from fgp_vnn.bench.truth import GROUND_TRUTH
from fgp_vnn.cli.example_files import write_examples

BENCHMARK = Path(fgp_vnn.__file__).parent / "bench" / "bundled"  # it is part of the package


@dataclass(frozen=True)
class KnownInstance:
    """A line of ground_truth.csv."""

    onnx: str
    vnnlib: str
    timeout: float
    expected: str


@dataclass(frozen=True)
class DemoOutcome:
    """What the verifier said about an instance."""

    instance: KnownInstance
    status: str
    decided_by: str
    seconds: float

    @property
    def wrong(self) -> bool:
        """Only a contradiction is wrong: unknown and timeout say nothing."""
        return {self.status, self.instance.expected} == {"sat", "unsat"}


EXAMPLE = "fgp-vnn demo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--benchmark",
        type=Path,
        default=BENCHMARK,
        help="another folder with a ground_truth.csv (the bundled one)",
    )
    parser.add_argument(
        "--files",
        type=Path,
        metavar="FOLDER",
        help="verify nothing, but write files to try the commands with into a folder "
        "(default: verify)",
    )


def run(args: argparse.Namespace) -> int:
    """Return 0, or 1 if a verdict contradicts the ground truth."""
    if args.files is not None:
        print(f"{args.files}: {', '.join(write_examples(args.files, BENCHMARK))}")
        return 0
    folder: Path = args.benchmark
    instances = read_instances(folder)
    console = Terminal()
    started = time.monotonic()
    outcomes = decide(folder, instances, console)
    console.print(table(outcomes))
    console.print(summary(outcomes, time.monotonic() - started))
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


def read_instances(folder: Path) -> list[KnownInstance]:
    """Return the rows of ground_truth.csv."""
    try:
        with (folder / GROUND_TRUTH).open(encoding="ascii", newline="") as file:
            return [
                KnownInstance(row["onnx"], row["vnnlib"], float(row["timeout"]), row["result"])
                for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{folder / GROUND_TRUTH}: cannot be read: {reason}") from error


def decide(folder: Path, instances: Sequence[KnownInstance], console: Console) -> list[DemoOutcome]:
    """Verify one instance after the other, in this process."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    outcomes = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("loading", total=len(instances))
        for instance in instances:
            progress.update(task, description=Path(instance.vnnlib).stem)
            started = time.monotonic()
            verdict = fgp_vnn.verify(
                folder / instance.onnx, folder / instance.vnnlib, timeout=instance.timeout
            )
            seconds = time.monotonic() - started
            outcomes.append(DemoOutcome(instance, verdict.status, verdict.decided_by, seconds))
            progress.advance(task)
    return outcomes


def table(outcomes: Iterable[DemoOutcome]) -> Table:
    """A row per instance; a wrong verdict stands out."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("property", "verdict", "decided by"):
        result.add_column(heading)
    result.add_column("seconds", justify="right")
    result.add_column("expected")
    for outcome in outcomes:
        style = "bold red" if outcome.wrong else None
        if outcome.status != outcome.instance.expected and not outcome.wrong:
            style = "yellow"
        result.add_row(
            Path(outcome.instance.vnnlib).stem,
            outcome.status,
            outcome.decided_by,
            f"{outcome.seconds:.2f}",
            outcome.instance.expected + ("  WRONG" if outcome.wrong else ""),
            style=style,
        )
    return result


def summary(outcomes: Sequence[DemoOutcome], seconds: float) -> str:
    """One line: how many of each verdict, how many wrong, how long."""
    counts = Counter(outcome.status for outcome in outcomes)
    said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    wrong = sum(outcome.wrong for outcome in outcomes)
    return f"\n{len(outcomes)} instances in {seconds:.1f} s: {said or 'none'}; {wrong} wrong"
