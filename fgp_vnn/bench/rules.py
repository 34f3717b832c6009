"""The competition's rules by year: which counterexamples count, which prove sat, and the points.

Each year's scorer runs the ONNX file with onnxruntime on the CPU. Up to 2025 it judges the outputs
that the tool has written, if they agree with its own; since 2026 it judges its own outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.property.model import Case, Property

Array = NDArray[np.float64]

# A counterexample counts and proves sat, or counts within tolerance, or does not count.
Standing = Literal["valid", "tolerated", "invalid"]

_LEAST_OUTPUT = 1e-6  # if all written outputs are smaller, they are not compared


@dataclass(frozen=True)
class Rules:
    """One year's rules; tolerances are absolute unless noted otherwise."""

    year: int
    input_tolerance: float  # how far an input may lie outside of its box
    output_tolerance: float  # how far an output may miss a constraint
    agreement: float | None  # relative, of written and replayed outputs; None: replayed ones count
    tolerated_proves: bool  # whether a tolerated counterexample makes another tool's unsat wrong
    right: int = 10  # points
    wrong: int = -150

    def __str__(self) -> str:
        outputs = (
            f"outputs to {self.output_tolerance:g}" if self.output_tolerance else "outputs exact"
        )
        return f"VNN-COMP {self.year}: inputs to {self.input_tolerance:g}, {outputs}"


RULES: Mapping[int, Rules] = {
    2023: Rules(2023, 1e-4, 1e-4, 1e-3, tolerated_proves=True),
    2024: Rules(2024, 1e-4, 1e-4, 1e-3, tolerated_proves=False),
    2025: Rules(2025, 1e-4, 1e-4, 1e-3, tolerated_proves=False),
    2026: Rules(2026, 1e-4, 0.0, None, tolerated_proves=False),
}
NEWEST = RULES[max(RULES)]


@dataclass(frozen=True, eq=False)
class Evidence:
    """A counterexample as written by a tool, and onnxruntime's outputs for it."""

    x: Array  # [inputs]
    written: Array | None  # [outputs], None: the tool wrote none
    replayed: Array  # [outputs]


def standings(evidence: Evidence, prop: Property) -> dict[str, Standing]:
    """Return the standing of a counterexample under the rules of each year."""
    return {str(year): standing(evidence, prop, rules) for year, rules in RULES.items()}


def standing(evidence: Evidence, prop: Property, rules: Rules) -> Standing:
    """Return the standing of a counterexample under the rules of one year."""
    error, outputs = 0.0, evidence.replayed
    if rules.agreement is not None:
        if evidence.written is None or evidence.written.shape != evidence.replayed.shape:
            return "invalid"
        outputs = evidence.written
        error = _disagreement(evidence)
        if not error <= rules.agreement:
            return "invalid"
    if error == 0.0 and _breaks(prop, evidence.x, outputs, 0.0, 0.0):
        return "valid"
    if _breaks(prop, evidence.x, outputs, rules.input_tolerance, rules.output_tolerance):
        return "tolerated"
    return "invalid"


def _disagreement(evidence: Evidence) -> float:
    """Return the largest difference of written and replayed outputs, relative to the written."""
    assert evidence.written is not None
    size = float(np.abs(evidence.written).max(initial=0.0))
    if size < _LEAST_OUTPUT:
        return 0.0
    return float(np.abs(evidence.written - evidence.replayed).max()) / size


def _breaks(prop: Property, x: Array, y: Array, inputs: float, outputs: float) -> bool:
    """Whether x lies within `inputs` of a box in which y is within `outputs` of unsafe."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return False
    return any(_near(case, x, inputs) and _unsafe(case, y, outputs) for case in prop.cases)


def _near(case: Case, x: Array, tolerance: float) -> bool:
    if not tolerance:
        return case.contains(x)
    return bool(((case.lower - tolerance <= x) & (x <= case.upper + tolerance)).all())


def _unsafe(case: Case, y: Array, tolerance: float) -> bool:
    if not tolerance:
        return case.unsafe_at(y)
    return any((c.rows @ y <= c.limits + tolerance).all() for c in case.unsafe)
