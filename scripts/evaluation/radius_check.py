"""Compare radii with exact ones: python scripts/evaluation/radius_check.py --networks 1000.

Random small networks, the norms in turn, with and without a clip box, with every engine: the lower
bound may not be above the exact radius, nor the upper bound below it. The exit code is 1 if one is.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from fgp_vnn.api.certify import Certifier
from fgp_vnn.base.radius import Radius
from fgp_vnn.base.robustness import NORMS, Norm
from fgp_vnn.cli.radius import EXACT
from fgp_vnn.network import Network
from fgp_vnn.strategy import Hidden, RadiusSearch, Strategy
from oracle.network import Array, Chain
from oracle.radius import TOLERANCE, exact_radius
from reference_walk import layers_of
from tests.helpers.small_networks import random_network, random_point

SHAPES = ((2, 4, 2), (3, 5, 4, 3), (4, 6, 3), (5, 5, 4, 3), (3, 3, 3, 3, 2), (6, 6, 2))
ENGINES = ("walk", "split", "bounds")
LARGE = "as if large"
WAYS = (*ENGINES, LARGE)
LARGER = Strategy(hidden=Hidden(small=0))  # as if every network were too large to count as small
# And as if a proof at the goal never looked promising.
GROWING = replace(LARGER, radius=RadiusSearch(promising=((0.0, 1.0),), close=1.01))
MAXIMUM = {"l2": 0.8, "linf": 0.4, "l1": 1.2}


@dataclass(frozen=True, eq=False)
class Case:
    """A network, a point, a norm, and the exact radius."""

    network: Network
    x: Array
    norm: Norm
    clip: tuple[float, float] | None
    exact: float


def case(number: int, norm: Norm) -> Case:
    """Random case number `number` in a norm; every third one has a clip box."""
    widths = SHAPES[number % len(SHAPES)]
    network, x = random_network(widths, number), random_point(widths[0], number)
    clip = (0.0, 1.0) if number % 3 == 2 else None
    chain = Chain(tuple((w.astype(np.float64), b) for w, b in layers_of(network)))
    return Case(network, x, norm, clip, exact_radius(chain, x, norm, MAXIMUM[norm], clip))


def results(
    made: Case, seconds: float | None, *, exact: bool = False
) -> Iterator[tuple[str, Radius]]:
    """The radius of a case by each engine."""
    for way in WAYS:
        certifier = Certifier.of(made.network, engine="split" if way == LARGE else way)
        found = (as_if_large(certifier) if way == LARGE else certifier).radius(
            made.x,
            norm=made.norm,
            maximum=MAXIMUM[made.norm],
            gap=EXACT if exact else 0.01,
            clip=made.clip,
            timeout=seconds,
        )
        yield way, found


def as_if_large(certifier: Certifier) -> Certifier:
    """A certifier that treats the network as too large for a proof in one step."""
    return replace(certifier, strategy=GROWING)


def wrong(found: Radius, made: Case) -> bool:
    """Whether a bound is on the wrong side of the exact radius, or the bounds have crossed."""
    slack = TOLERANCE[made.norm] * max(made.exact, 1e-3)
    below = found.lower <= made.exact + (slack if np.isfinite(made.exact) else 0.0)
    # Past the maximum the exact radius is unknown: then any upper bound past it is right.
    above = found.upper >= min(made.exact, MAXIMUM[made.norm]) - slack
    return not (below and above and found.lower <= found.upper)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Radii against exact ones.")
    parser.add_argument("--networks", type=int, default=1000, help="how many random networks")
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each engine and radius")
    parser.add_argument("--every-norm", action="store_true", help="not by turns")
    parser.add_argument("--exact", action="store_true", help="ask for a gap of 1e-6")
    chosen = parser.parse_args(argv)
    torch.set_num_threads(1)
    console = Console()
    seen: Counter[tuple[str, str, str]] = Counter()  # engine, norm, how it ended
    bad: list[str] = []
    numbers = range(chosen.seed, chosen.seed + chosen.networks)
    for number in track(numbers, description="searching", console=console):
        for norm in NORMS if chosen.every_norm else (NORMS[number // 6 % 3],):
            made = case(number, norm)
            for engine, found in results(made, chosen.seconds, exact=chosen.exact):
                seen[engine, norm, found.ended] += 1
                if wrong(found, made):
                    seen[engine, norm, "wrong"] += 1
                    bad.append(
                        f"network {number}, {norm}, {engine}: [{found.lower!r}, {found.upper!r}] "
                        f"does not hold {made.exact!r}"
                    )
    names = ("tight", "max", "inconclusive", "timeout", "wrong")
    table = Table("engine", "norm", *names)
    for engine in WAYS:
        for norm in NORMS:
            table.add_row(engine, norm, *(str(seen[engine, norm, name]) for name in names))
    console.print(table)
    console.print(f"{chosen.networks} networks; {len(bad)} wrong")
    for line in bad:
        console.print(line, soft_wrap=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
