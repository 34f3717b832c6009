"""What `certify` answers about one input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.verdict import Counterexample

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Norm = Literal["l2", "linf", "l1"]
RobustnessStatus = Literal["robust", "not_robust", "unknown", "timeout"]
NORMS: tuple[Norm, ...] = ("l2", "linf", "l1")


@dataclass(frozen=True, eq=False)
class Robustness:
    """Whether all inputs of the ball have the class of its centre, and what shows it."""

    status: RobustnessStatus
    label: int  # the class that the network gives the centre
    counterexample: Counterexample | None = None  # in the ball, with another class or a tie
    decided_by: str = ""  # bounds, attack, walk, ...; empty if nothing was decided
    reason: str = ""  # why nothing was decided
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)
    note: str = ""  # how the network that was verified differs from the model, if it does

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        names = ("status", "label", "decided_by", "reason", "seconds")
        result: dict[str, Any] = {name: getattr(self, name) for name in names}
        result["statistics"] = dict(self.statistics)
        if self.note:
            result["note"] = self.note
        if self.counterexample is not None:
            result["counterexample"] = {
                "label": other_class(self.counterexample.y, self.label),
                **self.counterexample.as_dict(),
            }
        return result


def other_class(y: Floats, label: int) -> int:
    """The class, other than the label, with the greatest of the outputs y [outputs]."""
    others = y.copy()
    others[label] = -np.inf
    return int(others.argmax())
