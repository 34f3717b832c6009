"""What `radius` answers about one input."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from fgp_vnn.base.robustness import other_class
from fgp_vnn.base.verdict import Counterexample

Ended = Literal["gap", "max", "timeout", "memory", "inconclusive"]


@dataclass(frozen=True, eq=False)
class Radius:
    """No input nearer than `lower` has another class; the counterexample, at `upper`, has one."""

    lower: float
    upper: float  # infinite if no counterexample was found
    label: int  # the class that the network gives the centre
    counterexample: Counterexample | None = None
    ended: Ended = "inconclusive"  # "max": none is within the maximum
    engine: str = "auto"  # what the lower bound is from
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)
    note: str = ""  # how the network that was verified differs from the model, if it does

    @property
    def tight(self) -> bool:
        """Whether the two bounds are within the gap that was asked for."""
        return self.ended == "gap"

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        names = ("lower", "label", "tight", "ended", "engine", "seconds")
        result: dict[str, Any] = {name: getattr(self, name) for name in names}
        result["upper"] = self.upper if math.isfinite(self.upper) else None
        result["statistics"] = dict(self.statistics)
        if self.note:
            result["note"] = self.note
        if self.counterexample is not None:
            result["counterexample"] = {
                "label": other_class(self.counterexample.y, self.label),
                **self.counterexample.as_dict(),
            }
        return result
