"""The kinds of cases by name, and how case number n of a kind is made and tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from hostile_cases import branches, certificates, magnitudes, operators, properties, spikes
from hostile_cases.case import Case
from hostile_cases.networks import TRIES, Redraw
from hostile_cases.tool import ENGINES, Tool
from hostile_cases.trials import Trial, try_case

Make = Callable[[np.random.Generator], Case]
Try = Callable[[np.random.Generator, Tool, Path], Iterator[Trial]]


def try_number(kind: str, seed: int, number: int, tool: Tool, folder: Path) -> list[Trial]:
    """The trials of one case: the same for the same kind, seed and number."""
    for attempt in range(TRIES):
        random = np.random.default_rng([list(KINDS).index(kind), seed, number, attempt])
        try:
            return list(KINDS[kind](random, tool, folder))
        except Redraw:
            continue
    raise RuntimeError(f"{kind} {number}: {TRIES} draws were of no use")


def _asked(make: Make, *, most: int = len(ENGINES)) -> Try:
    """Trials with the default and so many engines in all, which take turns."""

    def attempt(random: np.random.Generator, tool: Tool, folder: Path) -> Iterator[Trial]:
        case = make(random)
        rest = [str(name) for name in random.permutation(list(ENGINES)[1:])]
        yield from try_case(case, tool, folder, ["default", *rest[: most - 1]])

    return attempt


KINDS: dict[str, Try] = {
    "magnitudes": _asked(magnitudes.make),
    "branches": _asked(branches.make),
    "spikes": _asked(spikes.make),
    "operators": _asked(operators.make, most=3),
    "properties": _asked(properties.make, most=3),
    "certificates": certificates.attempt,
}
