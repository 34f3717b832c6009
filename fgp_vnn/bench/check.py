"""Check a counterexample: a float32 input in the box, unsafe by onnxruntime, with no tolerance.

Nothing here depends on the verifier's own arithmetic: onnxruntime runs the ONNX file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError, UnsupportedError, one_line
from fgp_vnn.base.model_file import read_model
from fgp_vnn.base.program import open_program
from fgp_vnn.base.words import plural
from fgp_vnn.bench.rules import Evidence, Standing, standings
from fgp_vnn.property.load import load_property
from fgp_vnn.property.model import Case, Property
from fgp_vnn.property.results import read_results

Vector = NDArray[np.float32]

_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64}


@dataclass(frozen=True)
class Judgement:
    """Judgement of a counterexample: with no tolerance, and by the competition's rules."""

    fault: str  # why it is not valid with no tolerance; empty: it is valid
    standings: Mapping[str, Standing] = field(default_factory=dict)  # by year; empty: invalid


def judge_results(results: Path, network: OnnxFile, prop: Property) -> Judgement:
    """Return the judgement of the counterexample in a results file."""
    found = read_results(results, prop)
    if found.status != "sat":
        raise InputError(f"{results}: says {found.status}, so there is no counterexample to check")
    if found.x is None or not len(found.x):
        return Judgement("sat, but there is no counterexample")
    return judge(found.x, found.y, network, prop)


def load_judged(path: Path) -> Property:
    """Read a property whose counterexamples can be judged: it has to be about one network."""
    prop = load_property(path, joint=True)
    if prop.networks > 1:
        raise UnsupportedError(f"property {path}: about {prop.networks} networks, and not one")
    return prop


def judge(x: NDArray[Any], y: NDArray[Any] | None, network: OnnxFile, prop: Property) -> Judgement:
    """Return whether x [inputs] is a counterexample of the property; y [outputs] are the outputs
    that a tool has written, if any."""
    inputs, outputs = prop.declared
    if x.shape != (inputs,):
        return Judgement(f"{plural(x.size, 'input')}, the property has {inputs}")
    with np.errstate(over="ignore"):
        point = x.astype(np.float32)
    if not np.isfinite(point).all():
        return Judgement(f"X_{int(np.argmin(np.isfinite(point)))} is not a finite number")
    written, read = _shared(x, prop), _shared(point, prop)
    if written is None or read is None:
        return Judgement("inputs that have to be equal differ")
    replayed = network.run(point).astype(np.float64)
    fits = replayed.shape == (outputs,)
    # A case judges the float32 that the network gets, or the written value if its box has none.
    digits = [(case, np.where(case.without_single(), written, read)) for case in prop.cases]
    inside = [(case, values) for case, values in digits if case.contains(values)]
    if not inside:
        fault = _outside(digits)
    elif not fits:
        fault = f"the network has {plural(replayed.size, 'output')}, the property {outputs}"
    elif any(case.unsafe_at(prop.all_outputs(replayed, values)) for case, values in inside):
        fault = ""
    else:
        shown = ", ".join(f"{value:.9g}" for value in replayed[:10])
        where = "" if prop.joint is None else " at this input"
        more = ", ..." if outputs > 10 else ""
        fault = f"the output [{shown}{more}] is not unsafe{where}"
    if not fits:
        return Judgement(fault)
    said = None if y is None else prop.all_outputs(y, written)
    evidence = Evidence(written, said, prop.all_outputs(replayed, written))
    return Judgement(fault, standings(evidence, prop))


def _shared(x: NDArray[Any], prop: Property) -> NDArray[np.float64] | None:
    """Return the inputs as the cases number them [inputs]; None if inputs set equal differ."""
    wide = x.astype(np.float64)
    return wide if prop.joint is None else prop.joint.shared(wide)


class OnnxFile:
    """An ONNX file with one input and one output, run by onnxruntime on the processor."""

    def __init__(self, path: Path) -> None:
        data = read_model(path)
        try:
            self._session = open_program(data)
        except InputError as error:
            raise type(error)(f"{path}: {error}") from None
        except Exception as error:  # onnxruntime has no common base for its errors
            raise InputError(f"{path}: onnxruntime cannot load it: {one_line(error)}") from error
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            raise InputError(f"{path}: {len(inputs)} inputs, expected one")
        if inputs[0].type not in _TYPES:
            raise InputError(f"{path}: input of type {inputs[0].type}, expected float")
        self._path = path
        self._input = inputs[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the input; a symbolic dimension counts as 1."""
        return tuple(size if isinstance(size, int) else 1 for size in self._input.shape)

    def run(self, x: Vector) -> Vector:
        """Return the outputs [outputs] at x [inputs], both flat in C order."""
        if prod(self.shape) != x.size:
            raise InputError(f"{self._path}: takes {self.shape}, got {plural(x.size, 'value')}")
        shaped = x.astype(_TYPES[self._input.type]).reshape(self.shape)
        try:
            y = self._session.run(None, {self._input.name: shaped})[0]
        except Exception as error:
            raise InputError(f"{self._path}: onnxruntime fails: {one_line(error)}") from error
        return np.asarray(y).reshape(-1)


def _outside(digits: Sequence[tuple[Case, NDArray[np.float64]]]) -> str:
    """Say which value lies outside of the nearest box, given each case with the values that it
    judges; a point of the closed box lies on an open face."""
    if not digits:
        return "the property has no input box"

    def excess(case: Case, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(case.lower - x, x - case.upper)

    case, x = min(digits, key=lambda pair: float(excess(*pair).max()))
    beyond = excess(case, x)
    if beyond.max() > 0:
        worst = int(np.argmax(beyond))
        how = f"outside the box by {float(beyond[worst]):.2g}"
    else:
        worst, how = int(np.argmin(case.inside(x))), "on an open face of the box"
    left = "[" if case.open_lower is None or not case.open_lower[worst] else "("
    right = "]" if case.open_upper is None or not case.open_upper[worst] else ")"
    bounds = f"{left}{case.lower[worst]:.17g}, {case.upper[worst]:.17g}{right}"
    return f"counterexample {how}: X_{worst} = {float(x[worst]):.17g} is not in {bounds}"
