"""The result of an engine, and the type of functions that confirm candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from fgp_vnn.base.verdict import Counterexample

# Takes candidates [points, inputs]; returns the first that is a counterexample: in the domain as
# float32, and confirmed by running the network itself.
Confirm = Callable[[Tensor], Counterexample | None]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The status of a query, its evidence and the work it took."""

    status: Literal["sat", "unsat", "unknown", "timeout"]
    counterexample: Counterexample | None = None
    reason: str = ""
    statistics: dict[str, int] = field(default_factory=dict)
    unfinished: bool = False  # undecided only because of a limit on the work or the time
