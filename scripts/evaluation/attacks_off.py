"""Known counterexamples, with the attacks off: python scripts/evaluation/attacks_off.py FOLDER.

Runs each engine for a short time and without attacks on every instance of a benchmark folder or
tree that is known to be sat, so that the search itself has to find the counterexample.
`sat`, `unknown` and `timeout` are right. The exit code is 1 if any verdict is `unsat`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from fgp_vnn import verify
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.bench.instances import Instance, read_benchmark, select
from fgp_vnn.bench.tables import read_truth

STATUSES = ("sat", "unsat", "unknown", "timeout", "unsupported")


class Answer(NamedTuple):
    """The status of an instance by one engine."""

    instance: Instance
    engine: str
    status: str


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Known counterexamples, with the attacks off.")
    parser.add_argument("folder", type=Path, help="a benchmark, or a tree of them")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds per engine and instance")
    parser.add_argument("--engine", nargs="+", default=["auto"], help="auto, split, walk, bounds")
    parser.add_argument("--filter", help="only instances that match this regular expression")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    console = Console()
    try:
        broken = known_broken(chosen.folder, chosen.filter)
        runs = [(instance, engine) for instance in broken for engine in chosen.engine]
        shown = track(runs, description="deciding", console=console)
        answers = list(decide(shown, chosen.limit))
    except InputError as error:
        print(f"attacks_off.py: {error}", file=sys.stderr)
        return 2
    return report(console, answers)


def known_broken(folder: Path, pattern: str | None) -> list[Instance]:
    """The instances that are `sat` in the benchmark's ground truth."""
    benchmark = read_benchmark(folder, timeout=1.0)
    truth = read_truth(benchmark.folders)
    chosen = select(benchmark.instances, pattern=pattern)
    return [instance for instance in chosen if truth.get(instance.key) == "sat"]


def decide(runs: Iterable[tuple[Instance, str]], limit: float) -> Iterator[Answer]:
    for instance, engine in runs:
        try:
            if len(instance.network_files) != 1:
                raise UnsupportedError("a property of several networks")
            files = instance.network_files[0], instance.property_file
            status: str = verify(*files, timeout=limit, engine=engine, attack=False).status
        except UnsupportedError:
            status = "unsupported"
        yield Answer(instance, engine, status)


def report(console: Console, answers: Sequence[Answer]) -> int:
    """Print a table by benchmark and engine, then the wrong verdicts; return the exit code."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for answer in answers:
        of_benchmark = counts.setdefault((answer.instance.category, answer.engine), Counter())
        of_benchmark[answer.status] += 1
    table = Table("benchmark", "engine", "instances", *STATUSES)
    for (category, engine), statuses in sorted(counts.items()):
        row = [sum(statuses.values()), *(statuses[status] for status in STATUSES)]
        table.add_row(category, engine, *map(str, row))
    console.print(table)
    bad = [answer for answer in answers if answer.status == "unsat"]
    console.print(f"{len(answers)} verdicts where a counterexample is known; {len(bad)} wrong")
    for answer in bad:
        console.print(f"{answer.engine} says unsat: {answer.instance}", soft_wrap=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
