"""What the verifier answers, and why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Status = Literal["sat", "unsat", "unknown", "timeout", "error"]


@dataclass(frozen=True, eq=False)
class Counterexample:
    """An input in the domain and the output that onnxruntime gives there, both flat.

    x holds float32 values, but for coordinates whose bounds have no float32 between them.
    """

    x: NDArray[np.float64]  # [inputs]
    y: NDArray[np.float32]  # [outputs]

    def as_dict(self) -> dict[str, Any]:
        """Both as lists of plain numbers, for JSON."""
        return {"x": [float(v) for v in self.x], "y": [float(v) for v in self.y]}


@dataclass(frozen=True, eq=False)
class Verdict:
    """The status, its evidence, what decided it and what it cost."""

    status: Status
    decided_by: str = ""  # attack, bounds, walk, split, ...; empty if nothing was decided
    counterexample: Counterexample | None = None
    reason: str = ""  # why nothing was decided, or why an unsat has no certificate
    seconds: dict[str, float] = field(default_factory=dict)  # per step, and "total"
    statistics: dict[str, int] = field(default_factory=dict)  # regions, bundles, ...
    certificate: str = ""  # the file that proves an unsat, if one was asked for and written

    def after(self, earlier: dict[str, int]) -> Verdict:
        """The same with what earlier steps have counted."""
        names = {**earlier, **self.statistics}
        sums = {name: earlier.get(name, 0) + self.statistics.get(name, 0) for name in names}
        return replace(self, statistics=sums)

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        result: dict[str, Any] = {
            "status": self.status,
            "decided_by": self.decided_by,
            "reason": self.reason,
            "seconds": dict(self.seconds),
            "statistics": dict(self.statistics),
        }
        if self.certificate:
            result["certificate"] = self.certificate
        if self.counterexample is not None:
            result["counterexample"] = self.counterexample.as_dict()
        return result
