"""Compare both network readers, the verifier's and the checker's, with onnxruntime.

    python scripts/evaluation/operators.py --cases 10000

Random networks of one operator each, with all possible attributes. The exit code is 1 if a reader
disagrees with onnxruntime, or refuses a network without naming the operator.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.helpers.operator_agreement import AGREES, READERS, REFUSED, outcomes
from tests.helpers.operator_choices import random_operator


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Readers of networks against onnxruntime.")
    parser.add_argument("--cases", type=int, default=1000, help="how many random networks")
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    console = Console()
    seen: Counter[tuple[str, str, str]] = Counter()  # operator, reader, outcome
    bad: list[str] = []
    numbers = range(chosen.seed, chosen.seed + chosen.cases)
    for number in track(numbers, description="reading", console=console):
        drawn = random_operator(number)
        for reader, outcome in outcomes(drawn).items():
            known = outcome in (AGREES, REFUSED)
            seen[drawn.operator, reader, outcome if known else "wrong"] += 1
            if not known:
                bad.append(f"{reader} {outcome}: {drawn.description}")
    _report(console, seen, bad)
    return 1 if bad else 0


def _report(console: Console, seen: Counter[tuple[str, str, str]], bad: list[str]) -> None:
    columns = [(reader, outcome) for reader in READERS for outcome in (AGREES, REFUSED, "wrong")]
    table = Table("operator", *(" ".join(column) for column in columns))
    for operator in sorted({key[0] for key in seen}):
        counts = [seen[operator, reader, outcome] for reader, outcome in columns]
        table.add_row(operator, *map(str, counts))
    console.print(table)
    for line in bad:
        console.print(line, markup=False)
    console.print(f"{seen.total()} readings, {len(bad)} wrong")


if __name__ == "__main__":
    sys.exit(main())
