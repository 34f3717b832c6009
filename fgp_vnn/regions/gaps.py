"""How close an undecided region came to being decided, and the likely reason.

All numbers refer to constraints scaled to be at most 1 in the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Gap(NamedTuple):
    """Bounds on the minimum, over the domain, of the greatest constraint of a region."""

    least: float  # lower bound, ignoring rounding
    most: float  # upper bound: at some point no constraint is above it
    rounding: float  # proved bound on the rounding error of `least`

    @property
    def width(self) -> float:
        """How far the region and the unsafe set can be from touching, either way."""
        return max(abs(self.least), self.most, 0.0)

    @property
    def kind(self) -> str:
        if self.rounding == math.inf:
            return "overflow"
        if not all(map(math.isfinite, self)):
            return "failed"
        if self.most < -self.rounding:
            return "refused"
        return "tie" if self.width <= self.rounding else "wide"


FAILED = Gap(-math.inf, math.inf, 0.0)


def describe_gaps(gaps: Sequence[Gap]) -> str:
    """The reason why these regions are undecided: a phrase for each kind of gap, with the widest
    gap."""
    phrases = []
    for kind, say in _PHRASES.items():
        mine = [gap for gap in gaps if gap.kind == kind]
        if mine:
            count = f"{len(mine)} times " if len(mine) < len(gaps) else ""
            phrases.append(count + say(max(mine, key=lambda gap: gap.width)))
    return "; ".join(phrases)


_PHRASES: dict[str, Callable[[Gap], str]] = {
    "tie": lambda gap: (
        f"a tie: the region and the unsafe set are within {gap.width:.1e} of touching, "
        f"the rounding error is {gap.rounding:.1e}"
    ),
    "wide": lambda gap: (
        f"the solver left a gap of {gap.most - gap.least:.1e}, the rounding error is "
        f"{gap.rounding:.1e}"
    ),
    "refused": lambda gap: (
        f"a point {-gap.most:.1e} deep in the unsafe set is no counterexample of the network"
    ),
    "overflow": lambda gap: "numbers overflow",
    "failed": lambda gap: "the solver failed",
}
