"""What `bounds` and `maximise` answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.display import Shown

Array = NDArray[np.float64]
# "rounding": as tight as float64 can prove, or float32 inputs can show; "method": as that one can.
Stopped = Literal["gap", "rounding", "method", "timeout", "inconclusive"]


@dataclass(frozen=True, eq=False, repr=False)
class Bounds(Shown):
    """Certified ranges of values: nothing of the domain gives a value below `lower` or above
    `upper`. Points of the domain were seen to give `least_seen` and `greatest_seen`, up to
    rounding."""

    lower: Array  # in the shape of the output, or [neurons]
    upper: Array
    least_seen: Array
    greatest_seen: Array
    method: str  # plain, optimised, split
    ended: Stopped  # "gap": as tight as was asked for
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)
    note: str = ""  # how the network differs from the model that was given, if it does

    @property
    def slack(self) -> Array:
        """How much wider the certified ranges may be than the exact ones."""
        result: Array = np.maximum(self.least_seen - self.lower, self.upper - self.greatest_seen)
        return result

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        seen = self.values("lower", "upper", "least_seen", "greatest_seen")
        return seen | self.values("method", "ended", "seconds", "statistics", "note")

    def title(self) -> str:
        """The first ranges."""
        pairs = list(zip(self.lower.ravel(), self.upper.ravel(), strict=True))
        shown = ", ".join(f"[{low:.6g}, {high:.6g}]" for low, high in pairs[:4])
        return shown + (f", ... ({len(pairs)})" if len(pairs) > 4 else "")

    def facts(self) -> dict[str, str]:
        """How they were found, how tight they are, and the time."""
        slack = f"{float(self.slack.max(initial=0.0)):.2g}"
        facts = {"method": self.method, "ended": self.ended, "slack at most": slack}
        return facts | _last(self.seconds, self.note)


@dataclass(frozen=True, eq=False, repr=False)
class Maximum(Shown):
    """The greatest value of an objective lies between `value`, proved of the input x, and `upper`,
    proved of all inputs; both hold in real arithmetic, whenever the search was stopped."""

    value: float
    upper: float
    x: NDArray[Any]  # the input that gives the value, in the network's shape, as float32
    y: NDArray[np.float32]  # what the network's program gives there, in the shape of its output
    ended: Stopped
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)
    note: str = ""  # how the network differs from the model that was given, if it does

    @property
    def gap(self) -> float:
        """upper - value."""
        return self.upper - self.value

    @property
    def tight(self) -> bool:
        """Whether the gap is as small as was asked for."""
        return self.ended == "gap"

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        return self.values("value", "upper", "ended", "seconds", "statistics", "note", "x", "y")

    def title(self) -> str:
        """Both ends."""
        return f"{self.value:.8g} to {self.upper:.8g}"

    def facts(self) -> dict[str, str]:
        """How it ended, and the time."""
        return {"ended": self.ended} | _last(self.seconds, self.note)


def _last(seconds: float, note: str) -> dict[str, str]:
    return {"time": f"{seconds:.3g} s"} | ({"note": note} if note else {})
