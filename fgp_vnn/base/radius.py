"""What `radius` answers about one input."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from fgp_vnn.base.robustness import PointAnswer
from fgp_vnn.base.verdict import Counterexample

Ended = Literal["gap", "max", "timeout", "memory", "inconclusive"]


@dataclass(frozen=True, eq=False, repr=False)
class Radius(PointAnswer):
    """No input nearer than `lower` has another class; the counterexample, at `upper`, has one."""

    lower: float
    upper: float  # infinite if no counterexample was found
    label: int  # the class that the network gives the centre
    counterexample: Counterexample | None = None
    ended: Ended = "inconclusive"  # "max": none is within the maximum
    engine: str = "auto"  # what the lower bound is from
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)
    reason: str = ""  # why the search ended, if it is inconclusive or memory was short
    note: str = ""  # how the network that was verified differs from the model, if it does
    input: Any = None  # the centre, as it was given

    @property
    def tight(self) -> bool:
        """Whether the two bounds are within the gap that was asked for."""
        return self.ended == "gap"

    def title(self) -> str:
        """Both bounds."""
        upper = f"{self.upper:.6g}" if math.isfinite(self.upper) else "?"
        return f"{self.lower:.6g} to {upper}"

    def own_facts(self) -> dict[str, str]:
        return {"ended": self.ended} | ({"reason": self.reason} if self.reason else {})

    def own_values(self) -> dict[str, Any]:
        names = ("lower", "label", "tight", "ended", "reason", "engine", "seconds")
        return self.values(*names) | {"upper": self.upper if math.isfinite(self.upper) else None}
