"""The result of `certify` for one input, and the part that it shares with that of `radius`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.display import Shown
from fgp_vnn.base.verdict import Counterexample

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Norm = Literal["l2", "linf", "l1"]
RobustnessStatus = Literal["robust", "not_robust", "unknown", "timeout"]
NORMS: tuple[Norm, ...] = ("l2", "linf", "l1")


class PointAnswer(Shown):
    """A result for one input, which may have a counterexample."""

    label: int  # the class of the centre: the given y, or the network's prediction
    counterexample: Counterexample | None
    seconds: float
    statistics: dict[str, int]
    note: str  # how the verified network differs from the model, if it does
    input: Any  # the centre, as the user passed it

    def facts(self) -> dict[str, str]:
        """The class, the facts of this kind of result, the counterexample's class and the time."""
        facts = {"class": str(self.label), **self.own_facts()}
        if self.counterexample is not None:
            facts["counterexample of class"] = str(other_class(self.counterexample.y, self.label))
        facts |= {"note": self.note} if self.note else {}
        return facts | {"time": f"{self.seconds:.3g} s"}

    def own_facts(self) -> dict[str, str]:
        """The facts that only this kind of result has."""
        raise NotImplementedError

    def compared(self) -> tuple[Any, Any] | None:
        """The input and the counterexample."""
        found = self.counterexample
        return None if found is None or self.input is None else (self.input, found.x)

    def as_dict(self) -> dict[str, Any]:
        """All values, as plain Python objects for JSON."""
        result = self.own_values() | self.values("statistics")
        if self.note:
            result["note"] = self.note
        if self.counterexample is not None:
            result["counterexample"] = {
                "label": other_class(self.counterexample.y, self.label),
                **self.counterexample.as_dict(),
            }
        return result

    def own_values(self) -> dict[str, Any]:
        """The fields of this kind of result, which come first in `as_dict`."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class Robustness(PointAnswer):
    """Whether all inputs of a ball have the class of its centre, with the evidence."""

    status: RobustnessStatus
    label: int  # the class of the centre: the given y, or the network's prediction
    counterexample: Counterexample | None = None  # in the ball, with another class or a tie
    decided_by: str = ""  # bounds, attack, walk, ...; empty if nothing was decided
    reason: str = ""  # why nothing was decided
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)
    note: str = ""  # how the verified network differs from the model, if it does
    input: Any = None  # the centre, as the user passed it

    def title(self) -> str:
        """The status, and the step that decided it."""
        words = self.status.replace("_", " ")
        return words + (f" by {self.decided_by}" if self.decided_by else "")

    def own_facts(self) -> dict[str, str]:
        return {"reason": self.reason} if self.reason else {}

    def own_values(self) -> dict[str, Any]:
        return self.values("status", "label", "decided_by", "reason", "seconds")


def other_class(y: Floats, label: int) -> int:
    """The class other than `label` with the greatest output in y [outputs]."""
    others = y.copy()
    others[label] = -np.inf
    return int(others.argmax())
