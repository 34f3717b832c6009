"""Check the lines of every activation in high precision.

On random intervals of all magnitudes, each lower and upper line, and the range, is compared with
the function at the ends of the interval and where the two are closest. This is done in long double
with its rounding error counted, and in mpmath if that does not decide. The exit code is 1 if a line
is not a valid bound.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import torch
from rich.console import Console

from tests.helpers.activation_cases import Line, curves, intervals, violations

_BATCH = 4096  # intervals at once; more of them do not fit in the cache
_SHOWN = 5  # invalid lines printed for each activation


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Lines of activations in high precision.")
    parser.add_argument("--intervals", type=int, default=1_000_000, help="for each activation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="the name of one activation")
    chosen = parser.parse_args(argv)
    names = [name for name in curves() if chosen.only in (None, name)]
    if not names:
        parser.error(f"no activation is called {chosen.only}; there are {', '.join(curves())}")
    torch.set_num_threads(1)
    return 1 if sum([_check(name, chosen.intervals, chosen.seed) for name in names]) else 0


def _check(name: str, wanted: int, seed: int) -> int:
    """Check one activation, print the result, and return the number of invalid lines."""
    console, begin = Console(), time.process_time()
    curve, found, undecided = curves()[name], list[tuple[torch.dtype, Line]](), 0
    for part in range(0, wanted, _BATCH):
        ends = intervals(name, min(_BATCH, wanted - part), seed + part)
        dtype = torch.float64 if (part // _BATCH) % 4 else torch.float32
        bad, left = violations(curve, name, *(end.to(dtype) for end in ends))
        found += [(dtype, line) for line in bad]
        undecided += left
    seconds = time.process_time() - begin
    console.print(
        f"{name}: {wanted} intervals, a quarter in float32, {len(found)} lines do not hold, "
        f"{undecided} were left to mpmath, {seconds:.0f} s",
        soft_wrap=True,
    )
    for dtype, line in found[:_SHOWN]:
        console.print(f"  line {line.number} over [{line.lower!r}, {line.upper!r}] in {dtype}")
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
