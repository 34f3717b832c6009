"""What an engine reports, and how it hands over a candidate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from fgp_vnn.base.verdict import Counterexample

# Takes points [points, inputs] of the query's domain; gives the first that is a real
# counterexample: in the domain as float32, and confirmed by running the network itself.
Confirm = Callable[[Tensor], Counterexample | None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """A status, its evidence and what it cost."""

    status: Literal["sat", "unsat", "unknown", "timeout"]
    counterexample: Counterexample | None = None
    reason: str = ""
    statistics: dict[str, int] = field(default_factory=dict)
    unfinished: bool = False  # open only because of a limit on the work or the time
