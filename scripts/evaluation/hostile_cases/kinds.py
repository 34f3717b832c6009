"""The kinds of cases by name, and how case number n of a kind is made and tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from hostile_cases import branches, certificates, magnitudes, operators, properties, radii, spikes
from hostile_cases.case import Case
from hostile_cases.networks import TRIES, Redraw
from hostile_cases.tool import ENGINES, Tool
from hostile_cases.trials import Trial, try_case

Make = Callable[[np.random.Generator], Case]
Try = Callable[[np.random.Generator, Tool, Path], Iterator[Trial]]


def try_number(kind: str, seed: int, number: int, tool: Tool, folder: Path) -> list[Trial]:
    """The trials of one case, determined by kind, seed and number."""
    for attempt in range(TRIES):
        random = np.random.default_rng([list(KINDS).index(kind), seed, number, attempt])
        try:
            return list(KINDS[kind](random, tool, folder))
        except Redraw:
            continue
    raise RuntimeError(f"{kind} {number}: {TRIES} draws were of no use")


def _asked(make: Make, first: Sequence[str] = (), most: int = len(ENGINES)) -> Try:
    """Trials with the engines `first` and further ones at random, `most` in all."""

    def attempt(random: np.random.Generator, tool: Tool, folder: Path) -> Iterator[Trial]:
        case = make(random)
        others = random.permutation([name for name in ENGINES if name not in first])
        engines = [*first, *(str(name) for name in others)]
        yield from try_case(case, tool, folder, engines[:most])

    return attempt


KINDS: dict[str, Try] = {
    "magnitudes": _asked(magnitudes.make),
    "branches": _asked(branches.make),
    "spikes": _asked(spikes.make),
    "operators": _asked(operators.make, ("bounds", "split"), most=3),
    "properties": _asked(properties.make, ("default",), most=3),
    "certificates": certificates.attempt,
    "radii": radii.attempt,
}
