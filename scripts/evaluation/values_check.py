"""Compare bounds and maxima with exact ones: python scripts/evaluation/values_check.py.

Random networks of up to 100 neurons, and boxes of all sizes. The ranges of `bounds`, by any method,
have to contain the exact range, and the exact maximum has to lie between the two bounds of
`maximise`. The exit code is 1 if one is wrong; a gap not closed in time is only counted.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from rich.console import Console
from rich.progress import track

import fgp_vnn
from fgp_vnn.network import Network
from oracle.milp import encode, layer_bounds
from oracle.network import Array, Chain
from reference_walk import layers_of
from tests.helpers.small_networks import random_network, random_point

SHAPES = ((2, 4, 2), (3, 8, 8, 2), (5, 20, 20, 3), (8, 16, 16, 16, 2), (4, 50, 50, 2), (6, 100, 3))
SIZES = (0.05, 0.2, 0.5)
METHODS = ("plain", "optimised", "split")
TOLERANCE = 2e-5  # of HiGHS


@dataclass(frozen=True, eq=False)
class Case:
    """A network, a box, and the coefficients of the outputs in the objective."""

    network: Network
    lower: Array
    upper: Array
    factors: Array

    def exact(self, seconds: float) -> float | None:
        """The maximum of the objective, or None if HiGHS needs longer."""
        chain = Chain(tuple((w.astype(np.float64), b) for w, b in layers_of(self.network)))
        bounds = layer_bounds(chain, self.lower, self.upper)
        program, last = encode(chain, self.lower, self.upper, bounds)
        weight, bias = chain.layers[-1]
        cost = np.zeros(len(program.low))
        cost[last] = -(self.factors @ weight)
        solved = program.minimise(cost, mip_rel_gap=1e-9, time_limit=seconds)
        if solved.status != 0:
            return None
        return float(-solved.fun + self.factors @ bias)


def case(number: int) -> Case:
    """Random case number `number`."""
    widths = SHAPES[number % len(SHAPES)]
    size = SIZES[number // len(SHAPES) % len(SIZES)]
    chance = np.random.default_rng(number)
    network, x = random_network(widths, number), random_point(widths[0], number)
    reach = size * chance.uniform(0.2, 1.0, widths[0])
    factors = chance.integers(-2, 3, widths[-1]).astype(np.float64)
    factors[0] = factors[0] or 1.0
    return Case(network, x - reach, x + reach, factors)


def faults(made: Case, exact: float, seconds: float, gap: float) -> tuple[list[str], bool]:
    """The results that contradict the exact maximum, and whether the gap was closed."""
    slack, box = TOLERANCE * max(1.0, abs(exact)), (made.lower, made.upper)
    found = fgp_vnn.maximise(made.network, box, made.factors, gap=gap, timeout=seconds)
    result = []
    if not found.value - slack <= exact <= found.upper + slack or found.value > found.upper:
        result.append(f"maximum from {found.value!r} to {found.upper!r}, exactly {exact!r}")
    y = made.network(torch.from_numpy(found.x).double().reshape(1, -1))[0].numpy()
    if abs(float(made.factors @ y) - found.value) > 1e-9 * max(1.0, abs(found.value)):
        result.append(f"the point gives {made.factors @ y!r}, not {found.value!r}")
    for method in METHODS:
        ranges = fgp_vnn.bounds(made.network, box, method=method, timeout=seconds)
        ends = np.stack([ranges.lower, ranges.upper])
        most = float(np.where(made.factors > 0, ends[1], ends[0]) @ made.factors)
        if not most >= exact - slack:
            result.append(f"{method} bounds allow {most!r} at most, exactly {exact!r}")
        if not ((ranges.lower <= y + 1e-9) & (y - 1e-9 <= ranges.upper)).all():
            result.append(f"{method} bounds {ranges} do not hold {y}")
    return result, found.tight


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Bounds and maxima against exact ones.")
    parser.add_argument("--networks", type=int, default=1000, help="how many random networks")
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each question")
    parser.add_argument("--gap", type=float, default=1e-4, help="relative to values above 1")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    console, counts, bad = Console(), Counter[str](), list[str]()
    numbers = range(chosen.seed, chosen.seed + chosen.networks)
    for number in track(numbers, description="searching", console=console):
        made = case(number)
        exact = made.exact(chosen.seconds)
        if exact is None:
            counts["without an exact answer"] += 1
            continue
        wrong, tight = faults(made, exact, chosen.seconds, chosen.gap)
        bad += [f"network {number}: {line}" for line in wrong]
        counts["gap closed" if tight else "gap left open"] += 1
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    console.print(f"{chosen.networks} networks: {told}; {len(bad)} wrong")
    for line in bad:
        console.print(line, soft_wrap=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
