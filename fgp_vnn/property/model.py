"""A property: a union of input boxes, each with the set of outputs that is unsafe in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Conjunction:
    """Outputs y that meet every row: rows @ y <= limits, or < where the row is strict."""

    rows: Array  # [rows, outputs]
    limits: Array  # [rows]
    strict: NDArray[np.bool_]  # [rows]

    def meets(self, y: Array) -> bool:
        """Whether y [outputs] meets every row, with no tolerance; a y that is not finite never."""
        if not np.isfinite(y).all():
            return False
        values = self.rows @ y.astype(np.float64)
        return bool(np.where(self.strict, values < self.limits, values <= self.limits).all())


@dataclass(frozen=True, eq=False)
class Case:
    """An input box and its unsafe set, a disjunction of conjunctions.

    No conjunction: nothing is unsafe. A conjunction without rows: everything is.
    A proof may cover the closed box; a counterexample has to stay off its open faces.
    """

    lower: Array  # [inputs]
    upper: Array  # [inputs]
    unsafe: tuple[Conjunction, ...]
    open_lower: NDArray[np.bool_] | None = None  # [inputs], where x > lower; None: nowhere
    open_upper: NDArray[np.bool_] | None = None  # [inputs], where x < upper; None: nowhere

    def contains(self, x: Array) -> bool:
        """Whether x [inputs] lies in the box and off its open faces, with no tolerance."""
        inside = (self.lower <= x) & (x <= self.upper)
        if self.open_lower is not None:
            inside &= (self.lower < x) | ~self.open_lower
        if self.open_upper is not None:
            inside &= (x < self.upper) | ~self.open_upper
        return bool(inside.all())

    def without_single(self) -> NDArray[np.bool_]:
        """Which inputs [inputs] have bounds with no float32 between them, as one fixed at 0.1."""
        with np.errstate(over="ignore"):
            near = self.lower.astype(np.float32)
        least = np.where(near < self.lower, np.nextafter(near, np.float32(np.inf)), near)
        return np.asarray(least > self.upper)

    def unsafe_at(self, y: Array) -> bool:
        return any(conjunction.meets(y) for conjunction in self.unsafe)


@dataclass(frozen=True)
class Variable:
    """A declared input or output, as a witness in VNN-LIB 2.0 has to name it."""

    name: str
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Property:
    """Broken by x if some case contains x and its unsafe set contains the output at x."""

    cases: tuple[Case, ...]
    inputs: int
    outputs: int
    version: Literal["1.0", "2.0"] = "1.0"
    input_variables: tuple[Variable, ...] = ()  # 2.0 only, in the order of declaration
    output_variables: tuple[Variable, ...] = ()
    warnings: tuple[str, ...] = ()

    def broken_by(self, x: Array, y: Array) -> bool:
        return any(case.contains(x) and case.unsafe_at(y) for case in self.cases)
