"""What the verifier answers, and why."""

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
    """An input in the domain and the output that onnxruntime gives there.

    x holds float32 values, but for coordinates whose bounds have no float32 between them. Both are
    flat; what `certify` and `radius` give back has the shape and type of the input.
    """

    x: NDArray[Any]  # [inputs]
    y: NDArray[np.float32]  # [outputs]

    def __repr__(self) -> str:
        return f"Counterexample(x of shape {tuple(self.x.shape)}, y = {_few(self.y)})"

    def as_dict(self) -> dict[str, Any]:
        """Both as lists of plain numbers, for JSON."""
        return {"x": flat_values(self.x).tolist(), "y": [float(v) for v in self.y]}


def summed(parts: Sequence[Mapping[str, Number]]) -> dict[str, Number]:
    """Counts, or seconds, added up by their names."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: sum(part[name] for part in parts if name in part) for name in names}


def _few(values: NDArray[Any]) -> str:
    """The first numbers of an array, for a reader."""
    shown = ", ".join(f"{float(value):.4g}" for value in values[:6])
    return f"[{shown}{', ...' if len(values) > 6 else ''}]"


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Shown):
    """The status, its evidence, what decided it and what it cost."""

    status: Status
    decided_by: str = ""  # attack, bounds, walk, split, ...; empty if nothing was decided
    counterexample: Counterexample | None = None
    reason: str = ""  # why nothing was decided, or why an unsat has no certificate
    seconds: dict[str, float] = field(default_factory=dict)  # per step, and "total"
    statistics: dict[str, int] = field(default_factory=dict)  # regions, bundles, ...
    certificate: str = ""  # the file that proves an unsat, if one was asked for and written
    note: str = ""  # how the network differs from the model that was given, if it does

    def title(self) -> str:
        """The status, and what decided it."""
        return self.status + (f" by {self.decided_by}" if self.decided_by else "")

    def facts(self) -> dict[str, str]:
        """The time, and what else there is."""
        facts = {"time": f"{self.seconds.get('total', 0.0):.3g} s"} if self.seconds else {}
        given = self.values("reason", "certificate", "note")
        facts |= {name: value for name, value in given.items() if value}
        if self.counterexample is not None:
            facts["output"] = _few(self.counterexample.y)
        return facts

    def after(self, earlier: dict[str, int]) -> Verdict:
        """The same with what earlier steps have counted."""
        return replace(self, statistics=summed([earlier, self.statistics]))

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        result = self.values("status", "decided_by", "reason", "seconds", "statistics")
        given = self.values("certificate", "note")
        result |= {name: value for name, value in given.items() if value}
        if self.counterexample is not None:
            result["counterexample"] = self.counterexample.as_dict()
        return result
