"""Run Marabou on one instance: python solve.py ONNX VNNLIB RESULTS_FILE SECONDS.

Called by `run_instance.sh` beside this file, for `fgp-vnn compare`. Marabou answers conjunctions,
so each conjunction of each case is a separate query. It works with a tolerance: its input is
rounded to a float32 in the box, and if onnxruntime does not confirm it, the answer is `unknown`.
That is in Marabou's favour: the competition would call such a `sat` wrong.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))

import numpy as np
import onnxruntime
from maraboupy import Marabou, MarabouCore, MarabouUtils
from maraboupy.MarabouNetworkONNX import MarabouNetworkONNX
from numpy.typing import NDArray

from fgp_vnn.base.verdict import Counterexample, Status, Verdict
from fgp_vnn.property import Case, Conjunction, Property, load_property
from fgp_vnn.property.numbers import snap
from fgp_vnn.property.results import Array, write_results

AT_MOST = MarabouCore.Equation.LE


def ask(model: str, case: Case, rows: Conjunction, seconds: float) -> tuple[Status, Array | None]:
    """Marabou's answer about one conjunction, with the input [inputs] if it is `sat`."""
    network = MarabouNetworkONNX(model)
    inputs = np.concatenate([part.flatten() for part in network.inputVars])
    outputs = np.concatenate([part.flatten() for part in network.outputVars])
    for variable, low, high in zip(inputs, case.lower, case.upper, strict=True):
        network.setLowerBound(int(variable), float(low))
        network.setUpperBound(int(variable), float(high))
    for row, limit in zip(rows.rows, rows.limits, strict=True):
        equation = MarabouUtils.Equation(AT_MOST)
        for column in np.flatnonzero(row):
            equation.addAddend(float(row[column]), int(outputs[column]))
        equation.setScalar(float(limit))
        network.addEquation(equation)
    options = Marabou.createOptions(verbosity=0, timeoutInSeconds=max(1, int(seconds)))
    answer, values, _ = network.solve(verbose=False, options=options)
    if answer == "sat":
        return "sat", np.array([values[int(variable)] for variable in inputs])
    return ("unsat" if answer == "unsat" else "timeout" if answer == "TIMEOUT" else "unknown"), None


def outputs_at(model: str, x: Array) -> NDArray[np.float32]:
    """Onnxruntime's outputs [outputs] at x [inputs]."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    node = session.get_inputs()[0]
    shape = [size if isinstance(size, int) else 1 for size in node.shape]
    given = x.reshape(shape).astype(np.float32)
    return np.asarray(session.run(None, {node.name: given})[0], np.float32).ravel()


def solve(model: str, prop: Property, seconds: float) -> Verdict:
    """The verdict on a whole property."""
    end = time.monotonic() + seconds
    undecided: Status = "unsat"
    for case in prop.cases:
        for rows in case.unsafe:
            status, x = ask(model, case, rows, end - time.monotonic())
            if x is not None:
                x = snap(x, *case.ends())
                y = outputs_at(model, x)
                if prop.broken_by(x, y.astype(np.float64)):
                    return Verdict("sat", counterexample=Counterexample(x, y))
                status = "unknown"
            if status != "unsat":
                undecided = status
            if time.monotonic() >= end:
                return Verdict("timeout")
    return Verdict(undecided)


if __name__ == "__main__":
    asked = load_property(sys.argv[2])
    write_results(sys.argv[3], solve(sys.argv[1], asked, float(sys.argv[4])), asked)
