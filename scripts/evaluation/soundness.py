"""Compare every engine with exact answers: python scripts/evaluation/soundness.py --cases 10000.

Random tiny networks of many kinds, with the attack off, against mixed-integer programming and
planted counterexamples. A counterexample counts only if rational arithmetic confirms it. The
exit code is 1 if any verdict is wrong; `unknown` and `timeout` are never wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from fgp_vnn.bounds.root import root_bounds
from fgp_vnn.budget.budget import UNLIMITED, Budget
from fgp_vnn.domain.sets import Box
from fgp_vnn.engine.settings import Settings
from fgp_vnn.query import Query
from fgp_vnn.search.boxes import Subdivision
from fgp_vnn.search.inputs import split_inputs
from fgp_vnn.strategy import Strategy
from tests.helpers.random_cases import FAMILIES, Case, exact_confirm, random_case, wrong
from tests.helpers.solving import search_neurons, solve

Decide = Callable[[Query, Budget], str]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Engines against exact answers.")
    parser.add_argument("--cases", type=int, default=1000, help="how many random queries")
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    parser.add_argument("--limit", type=float, default=0.2, help="seconds per engine and query")
    parser.add_argument("--seconds", type=float, help="stop after so long, whatever is left")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    console = Console()
    end = time.monotonic() + (chosen.seconds or float("inf"))
    seen: Counter[tuple[str, str, str]] = Counter()  # engine, truth, status
    families: Counter[str] = Counter()
    bad: list[str] = []
    numbers = range(chosen.seed, chosen.seed + chosen.cases)
    for number in track(numbers, description="deciding", console=console):
        if time.monotonic() > end:
            break
        case = random_case(number)
        families[case.family] += 1
        for engine, status in verdicts(case, chosen.limit):
            seen[engine, case.truth, status] += 1
            if wrong(status, case.truth):
                bad.append(f"case {number} ({case.family}) is {case.truth}: {engine} says {status}")
    report(console, seen, families, bad)
    return 1 if bad else 0


def verdicts(case: Case, limit: float) -> list[tuple[str, str]]:
    """The status of a case by each engine."""
    box = isinstance(case.query.domain, Box)
    return [
        (name, decide(case.query, Budget.of(limit, None)))
        for name, decide in ENGINES.items()
        if box or name != "inputs"
    ]


def _neurons(query: Query, deadline: Budget) -> str:
    bounds = root_bounds(query.network, query.domain, budget=UNLIMITED)
    return search_neurons(query, bounds, exact_confirm(query), deadline, Strategy()).status


def _inputs(query: Query, deadline: Budget) -> str:
    return split_inputs(query, exact_confirm(query), deadline, Subdivision()).status


def _pipeline(engine: str, *, alternate: bool = True, lp: bool = False) -> Decide:
    def decide(query: Query, deadline: Budget) -> str:
        settings = Settings(engine=engine, attack=False, alternate=alternate, lp=lp)
        return solve(query, exact_confirm(query), settings, deadline).status

    return decide


ENGINES: dict[str, Decide] = {
    "neurons": _neurons,
    "inputs": _inputs,
    "auto": _pipeline("auto"),
    "split": _pipeline("split"),
    "walk": _pipeline("walk"),
    "auto, lp": _pipeline("auto", lp=True),
    "walk, lp": _pipeline("walk", alternate=False, lp=True),
}


def report(
    console: Console,
    seen: Counter[tuple[str, str, str]],
    families: Counter[str],
    bad: Sequence[str],
) -> None:
    """Print a table of verdicts by engine, the number of cases, and the wrong verdicts."""
    table = Table("engine", "cases", "sat", "unsat", "unknown", "timeout", "wrong")
    for engine in ENGINES:
        mine = {key[1:]: count for key, count in seen.items() if key[0] == engine}
        statuses = [
            sum(count for (_, status), count in mine.items() if status == name)
            for name in ("sat", "unsat", "unknown", "timeout")
        ]
        mistakes = sum(count for (truth, status), count in mine.items() if wrong(status, truth))
        table.add_row(engine, *map(str, [sum(mine.values()), *statuses, mistakes]))
    console.print(table)
    kinds = ", ".join(f"{family} {families[family]}" for family in FAMILIES)
    console.print(f"{sum(families.values())} cases: {kinds}; {len(bad)} wrong verdicts")
    for line in bad:
        console.print(line, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
