"""A property: a union of input boxes, each with its set of unsafe outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.words import Version, plural

Array = NDArray[np.float64]


class Limit(NamedTuple):
    """The right-hand side of a row, exactly as written."""

    value: Fraction
    strict: bool


@dataclass(frozen=True, eq=False)
class Conjunction:
    """Outputs y that meet every row: rows @ y <= limits, or < where the row is strict.

    If a written limit is not a float64, `limits` holds the next float64 above it and the row is
    strict. A proof may cover this superset; a counterexample has to meet the written limit.
    """

    rows: Array  # [rows, outputs]
    limits: Array  # [rows]
    strict: NDArray[np.bool_]  # [rows]
    written: Mapping[int, Limit] = field(default_factory=dict)  # by row, if not a float64

    def meets(self, y: Array) -> bool:
        """Whether y [outputs] meets every row, in exact arithmetic; False if y is not finite.

        Float64 decides unless rounding could change the answer for a row.
        """
        if not np.isfinite(y).all():
            return False
        wide = y.astype(np.float64)
        with np.errstate(all="ignore"):  # an overflow is not clear: it is decided exactly
            excess = self.rows @ wide - self.limits
            sizes = np.abs(self.rows) @ np.abs(wide) + np.abs(self.limits)
            slack = 4 * (y.size + 4) * np.finfo(np.float64).eps * sizes + 1e-290
            clear = np.abs(excess) > slack
        if (excess[clear] > 0).any():
            return False
        return all(self._meets(int(row), wide) for row in np.flatnonzero(~clear))

    def limit(self, row: int) -> Limit:
        """The limit of a row, exactly as written."""
        given = Limit(Fraction(float(self.limits[row])), bool(self.strict[row]))
        return self.written.get(row, given)

    def _meets(self, row: int, y: Array) -> bool:
        """Whether y meets a row, in rational numbers."""
        limit, strict = self.limit(row)
        entries = np.flatnonzero(self.rows[row])
        products = zip(self.rows[row, entries].tolist(), y[entries].tolist(), strict=True)
        value = sum((Fraction(c) * Fraction(v) for c, v in products), Fraction(0))
        return value < limit if strict else value <= limit


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
        return bool(self.inside(x).all())

    def inside(self, x: Array) -> NDArray[np.bool_]:
        """Mask [inputs] of the values of x that lie in their interval, with no tolerance."""
        inside = (self.lower <= x) & (x <= self.upper)
        if self.open_lower is not None:
            inside &= (self.lower < x) | ~self.open_lower
        if self.open_upper is not None:
            inside &= (x < self.upper) | ~self.open_upper
        return np.asarray(inside)

    def ends(self) -> tuple[Array, Array]:
        """The least and the greatest float64 [inputs] that lie in the box and off its open faces;
        if there is none, the first number is greater than the second."""
        lower, upper = self.lower, self.upper
        if self.open_lower is not None:
            lower = np.where(self.open_lower, np.nextafter(lower, np.inf), lower)
        if self.open_upper is not None:
            upper = np.where(self.open_upper, np.nextafter(upper, -np.inf), upper)
        return lower, upper

    def without_single(self) -> NDArray[np.bool_]:
        """Mask [inputs] of inputs without a float32 in their bounds and off open faces, such as
        one fixed at 0.1."""
        lower, upper = self.ends()
        with np.errstate(over="ignore", under="ignore"):
            near = lower.astype(np.float32)
        least = np.where(near < lower, np.nextafter(near, np.float32(np.inf)), near)
        return np.asarray(least > upper)

    def unsafe_at(self, y: Array) -> bool:
        """Whether the output y [outputs] is unsafe in this case."""
        return any(conjunction.meets(y) for conjunction in self.unsafe)


@dataclass(frozen=True)
class Variable:
    """A declared input or output; counterexamples in VNN-LIB 2.0 repeat its declaration."""

    name: str
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Declared:
    """A network that a property declares."""

    name: str
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    equal_to: str = ""  # the name of the network that this one is a copy of


@dataclass(frozen=True)
class Joint:
    """Turns a property of several networks, or one that relates inputs to other variables, into a
    property of one joint network. Its inputs are shared by all networks; its outputs are the
    outputs of all networks, followed by some of the inputs."""

    places: tuple[int, ...]  # shared input of each declared input, network by network
    passed: tuple[int, ...]  # shared inputs that follow the outputs
    networks: tuple[Declared, ...] = ()  # none in VNN-LIB 1.0

    def shared(self, x: Array) -> Array | None:
        """Shared inputs for declared inputs x; None if two inputs that have to be equal differ."""
        places = np.asarray(self.places)
        found = np.zeros(places.max(initial=-1) + 1)
        found[places] = x
        return found if (found[places] == x).all() else None


@dataclass(frozen=True, eq=False, repr=False)
class Property:
    """Broken by x if some case contains x and its unsafe set contains the output at x."""

    cases: tuple[Case, ...]
    inputs: int
    outputs: int
    version: Version = "1.0"
    input_variables: tuple[Variable, ...] = ()  # 2.0 only, in the order of declaration
    output_variables: tuple[Variable, ...] = ()
    warnings: tuple[str, ...] = ()
    joint: Joint | None = None  # inputs and outputs are then those of the joint network

    @property
    def declared(self) -> tuple[int, int]:
        """How many inputs and outputs the file declares."""
        if self.joint is None:
            return self.inputs, self.outputs
        return len(self.joint.places), self.outputs - len(self.joint.passed)

    @property
    def networks(self) -> int:
        """The number of networks that the property is about."""
        return 1 if self.joint is None else max(len(self.joint.networks), 1)

    def all_outputs(self, y: Array, x: Array) -> Array:
        """Outputs as the cases number them [outputs]: the declared outputs y, then the inputs of
        x [inputs] that follow them in a joint network."""
        return y if self.joint is None else np.concatenate([y, x[list(self.joint.passed)]])

    def __repr__(self) -> str:
        sizes = (self.inputs, "input"), (self.outputs, "output"), (len(self.cases), "case")
        return f"Property({', '.join(plural(number, noun) for number, noun in sizes)})"

    def broken_by(self, x: Array, y: Array) -> bool:
        """Whether the input x [inputs] with the output y [outputs] is a counterexample; inputs
        that follow the outputs are taken from x."""
        if self.joint is not None:
            y = self.all_outputs(y[: self.declared[1]], x)
        return any(case.contains(x) and case.unsafe_at(y) for case in self.cases)
