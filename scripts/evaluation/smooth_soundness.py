"""Random smooth networks against dense sampling: python scripts/evaluation/smooth_soundness.py.

Networks of all activations and products, with the attack switched off. A verdict is wrong if it is
`unsat` and a sampled input is a counterexample; so is a bound above a sampled value. The exit code
is 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.extend(
    str(root) for root in Path(__file__).resolve().parents if (root / "pyproject.toml").is_file()
)

import torch
from rich.console import Console
from rich.progress import track

from fgp_vnn.budget.budget import Budget
from fgp_vnn.engine.settings import Settings
from fgp_vnn.strategy import Hidden, Inputs, Slopes, Strategy
from tests.helpers.smooth_networks import smooth_case
from tests.helpers.solving import solve

_ROUNDED = 1e-9  # of a sample in float64
_WAYS = {
    "auto": Strategy(),
    "bounds": Strategy(),
    "neurons": Strategy(inputs=Inputs(few=-1, some=-1)),  # these are split first
    "worthwhile": Strategy(  # as if the network were large
        slopes=Slopes(intervals_first=0), hidden=Hidden(worthwhile=1, worth_gain=-1.0)
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Smooth networks against dense sampling.")
    parser.add_argument("--cases", type=int, default=5000, help="how many random networks")
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    parser.add_argument("--limit", type=float, default=0.3, help="seconds per engine and network")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    console, bad = Console(), list[str]()
    seen: Counter[tuple[str, bool, str]] = Counter()
    numbers = range(chosen.seed, chosen.seed + chosen.cases)
    for number in track(numbers, description="deciding", console=console):
        case = smooth_case(number)
        for engine, strategy in _WAYS.items():
            settings = Settings(engine="bounds" if engine == "bounds" else "auto", attack=False)
            budget = Budget.of(chosen.limit, None)
            verdict = solve(case.query, lambda points: None, settings, budget, strategy)
            seen[engine, case.seen <= 0, verdict.status] += 1
            if verdict.status == "unsat" and case.seen < -_ROUNDED:
                bad.append(f"case {number} ({', '.join(case.names)}): {engine} says unsat")
    for (engine, broken, status), count in sorted(seen.items()):
        sampled = "with" if broken else "without"
        console.print(f"{engine}: {status} for {count} {sampled} a sampled counterexample")
    console.print(f"{chosen.cases} networks, {len(bad)} wrong verdicts")
    for line in bad:
        console.print(line, soft_wrap=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
