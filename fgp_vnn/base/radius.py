"""The result of `radius` for one input."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from fgp_vnn.base.robustness import PointAnswer
from fgp_vnn.base.verdict import Counterexample

# "tight": the bounds are within the requested gap; "max": no counterexample is nearer than the
# maximum.
Ended = Literal["tight", "max", "timeout", "memory", "inconclusive"]


@dataclass(frozen=True, eq=False, repr=False)
class Radius(PointAnswer):
    """Bounds on the distance to the nearest input of another class. No input nearer than `lower`
    has another class; the counterexample, at distance `upper`, has one."""

    lower: float
    upper: float  # infinite if no counterexample was found
    label: int  # the class of the centre: the given y, or the network's prediction
    counterexample: Counterexample | None = None
    ended: Ended = "inconclusive"
    decided_by: str = ""  # the method that proved the lower bound: bounds, walk, split
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)
    reason: str = ""  # why the search ended, if it was inconclusive or out of memory
    note: str = ""  # how the verified network differs from the model, if it does
    input: Any = None  # the centre, as the user passed it

    @property
    def tight(self) -> bool:
        """Whether the two bounds are within the requested gap."""
        return self.ended == "tight"

    def title(self) -> str:
        """Both bounds."""
        upper = f"{self.upper:.6g}" if math.isfinite(self.upper) else "?"
        return f"{self.lower:.6g} to {upper}"

    def own_facts(self) -> dict[str, str]:
        return {"ended": self.ended} | ({"reason": self.reason} if self.reason else {})

    def own_values(self) -> dict[str, Any]:
        names = ("lower", "label", "ended", "reason", "decided_by", "seconds", "upper")
        return self.values(*names)
