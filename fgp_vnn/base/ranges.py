"""The results of `bounds` and `maximise`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.display import Shown

Array = NDArray[np.float64]
# "rounding": as tight as float64 proofs and float32 inputs allow; "method": as the method allows.
Stopped = Literal["tight", "rounding", "method", "timeout", "inconclusive"]


@dataclass(frozen=True, eq=False, repr=False)
class Bounds(Shown):
    """Certified bounds: no input of the domain gives a value below `lower` or above `upper`. Inputs
    of the domain were found that give `least_seen` and `greatest_seen`, up to rounding."""

    lower: Array  # in the shape of the output, or [neurons]
    upper: Array
    least_seen: Array
    greatest_seen: Array
    method: str  # plain, optimised, split
    ended: Stopped  # "tight": within the requested gap
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)
    note: str = ""  # how the verified network differs from the model, if it does

    @property
    def slack(self) -> Array:
        """Upper bound on how far each certified bound is from the exact one, up to rounding;
        infinite where the network gave no finite value."""
        with np.errstate(invalid="ignore"):  # infinity - infinity
            below, above = self.least_seen - self.lower, self.upper - self.greatest_seen
        return np.nan_to_num(np.maximum(below, above), nan=np.inf, posinf=np.inf)

    def as_dict(self) -> dict[str, Any]:
        """All values, as plain Python objects for JSON, with None for infinity."""
        seen = self.values("lower", "upper", "least_seen", "greatest_seen")
        return seen | self.values("method", "ended", "seconds", "statistics", "note")

    def title(self) -> str:
        """The first ranges."""
        pairs = list(zip(self.lower.ravel(), self.upper.ravel(), strict=True))
        shown = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in pairs[:4])
        return shown + (f", ... ({len(pairs)})" if len(pairs) > 4 else "")

    def facts(self) -> dict[str, str]:
        """The method, why it ended, the slack and the time."""
        slack = f"{float(self.slack.max(initial=0.0)):.2g}"
        facts = {"method": self.method, "ended": self.ended, "slack at most": slack}
        return facts | _last(self.seconds, self.note)


@dataclass(frozen=True, eq=False, repr=False)
class Maximum(Shown):
    """The maximum of an objective lies between `value`, proved for the input x, and `upper`, proved
    for all inputs of the set. Both are valid in real arithmetic, whenever the search stopped."""

    value: float
    upper: float
    x: NDArray[Any]  # the input with this value, in the network's shape, as float32
    y: NDArray[np.float32]  # the network's output at x as computed, in the shape of its output
    ended: Stopped
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)
    note: str = ""  # how the verified network differs from the model, if it does

    @property
    def gap(self) -> float:
        """upper - value."""
        return self.upper - self.value

    @property
    def tight(self) -> bool:
        """Whether the gap is as small as requested."""
        return self.ended == "tight"

    def as_dict(self) -> dict[str, Any]:
        """All values, as plain Python objects for JSON, with None for infinity."""
        return self.values("value", "upper", "ended", "seconds", "statistics", "note", "x", "y")

    def title(self) -> str:
        """Both bounds."""
        return f"{self.value:.8g} to {self.upper:.8g}"

    def facts(self) -> dict[str, str]:
        """Why the search ended, and the time."""
        return {"ended": self.ended} | _last(self.seconds, self.note)


def _last(seconds: float, note: str) -> dict[str, str]:
    return {"time": f"{seconds:.3g} s"} | ({"note": note} if note else {})
