"""Check the lines of every activation in high precision.

On random intervals of all magnitudes, each line below and above is compared with the function at
the ends and at the places where the two are nearest. The exit code is 1 if a line does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from rich.console import Console

from tests.helpers.activation_cases import EXACT, curves, intervals, violations


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Lines of activations in high precision.")
    parser.add_argument("--intervals", type=int, default=1_000_000, help="for each activation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="the name of one activation")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    bad = 0
    report: Callable[[str], None] = Console().print
    for name, curve in curves().items():
        if chosen.only not in (None, name):
            continue
        found, batch = 0, min(chosen.intervals, 5_000)
        for part in range(0, chosen.intervals, batch):
            lower, upper = intervals(name, batch, chosen.seed + part)
            for dtype in (torch.float64, torch.float32):
                found += len(violations(curve, EXACT[name], lower.to(dtype), upper.to(dtype)))
        report(f"{name}: {chosen.intervals} intervals, {found} lines that do not hold")
        bad += found
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
