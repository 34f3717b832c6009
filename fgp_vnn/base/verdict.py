"""The result of the verifier: verdicts and counterexamples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.display import Shown, flat_values

Number = TypeVar("Number", int, float)
Status = Literal["sat", "unsat", "unknown", "timeout", "error"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, eq=False, repr=False)
class Counterexample:
    """An input in the domain, and onnxruntime's output there, which is unsafe.

    x holds float32 values, except for coordinates whose bounds have no float32 between them. Both
    are flat, but in results of `certify` and `radius` x has the shape and type of the user's input.
    """

    x: NDArray[Any]  # [inputs]
    y: NDArray[np.float32]  # [outputs]

    def __repr__(self) -> str:
        return f"Counterexample(x of shape {tuple(self.x.shape)}, y = {_few(self.y)})"

    def as_dict(self) -> dict[str, Any]:
        """Both as lists of plain numbers, for JSON."""
        return {"x": flat_values(self.x).tolist(), "y": [float(v) for v in self.y]}


def summed(parts: Sequence[Mapping[str, Number]]) -> dict[str, Number]:
    """The sums of counts, or of seconds, by name."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part[name] for part in parts if name in part) for name in names}


def _few(values: NDArray[Any]) -> str:
    """The first six numbers of an array, as text."""
    shown = ", ".join(f"{float(value):.4g}" for value in values[:6])
    return f"[{shown}{', ...' if len(values) > 6 else ''}]"


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Shown):
    """The answer of `verify`: the status, its evidence, the step that decided it, and times."""

    status: Status
    decided_by: str = ""  # attack, bounds, walk, split, ...; empty if nothing was decided
    counterexample: Counterexample | None = None
    reason: str = ""  # why nothing was decided, or why an unsat has no certificate
    seconds: dict[str, float] = field(default_factory=dict)  # per step, and "total"
    statistics: dict[str, int] = field(default_factory=dict)  # regions, bundles, ...
    certificate: str = ""  # the file with the proof of an unsat, if requested and written
    note: str = ""  # how the verified network differs from the model, if it does

    def title(self) -> str:
        """The status, and the step that decided it."""
        return self.status + (f" by {self.decided_by}" if self.decided_by else "")

    def facts(self) -> dict[str, str]:
        """The time, the reason, the certificate, the note and the output, where present."""
        facts = {"time": f"{self.seconds.get('total', 0.0):.3g} s"} if self.seconds else {}
        given = self.values("reason", "certificate", "note")
        facts |= {name: value for name, value in given.items() if value}
        if self.counterexample is not None:
            facts["output"] = _few(self.counterexample.y)
        return facts

    def after(self, earlier: dict[str, int]) -> Verdict:
        """A copy with the statistics of earlier steps added."""
        return replace(self, statistics=summed([earlier, self.statistics]))

    def as_dict(self) -> dict[str, Any]:
        """All values, as plain Python objects for JSON."""
        result = self.values("status", "decided_by", "reason", "seconds", "statistics")
        given = self.values("certificate", "note")
        result |= {name: value for name, value in given.items() if value}
        if self.counterexample is not None:
            result["counterexample"] = self.counterexample.as_dict()
        return result
