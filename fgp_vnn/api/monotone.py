"""Monotonicity in one input, as a property of a network that evaluates the model at two inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray

from fgp_vnn.api.arrays import read_number
from fgp_vnn.api.models import open_model
from fgp_vnn.api.sets import read_sets
from fgp_vnn.api.written import onnx_of
from fgp_vnn.base.errors import InputError
from fgp_vnn.domain.sets import Box
from fgp_vnn.network import LoadedNetwork
from fgp_vnn.network.onnx.pairs import paired
from fgp_vnn.property import Property
from fgp_vnn.property.conditions import Condition
from fgp_vnn.property.model import Case, Conjunction
from fgp_vnn.property.normal import to_cases


class Monotonicity(NamedTuple):
    """The question whether outputs are monotone in one entry of the input; to decide it, call
    `verify(question.model, question.property)`."""

    model: onnx.ModelProto  # [1, inputs + 1] -> [1, outputs], differences of the outputs
    property: Property
    entry: int  # its two values are the model's inputs number `entry` and number `inputs` (last)

    def pair(self, x: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """The two inputs [inputs] that a counterexample x [inputs + 1] encodes; the one with the
        smaller value of the entry comes first."""
        *values, last = np.asarray(x).reshape(-1)
        low, high = np.array(values), np.array(values)
        ends = sorted((values[self.entry], last))
        low[self.entry], high[self.entry] = ends
        return low, high


def monotonicity(
    model: Any,
    inputs: Any,
    entry: int,
    *,
    outputs: int | Sequence[int] | None = None,
    decreasing: bool = False,
    tolerance: Any,
) -> Monotonicity:
    """Ask whether the outputs never decrease by more than `tolerance` when one entry of the input
    increases and the others stay the same; with `decreasing`, never increase by more than it.

    A counterexample is a pair of inputs of one box that differ in this entry only. `inputs` is as
    for `bounds`, but a `Ball` must have the linf norm. `entry` is the index in the flat input.
    `outputs` are the indices of the outputs in question; default: all. Where the two inputs are
    equal, so are the outputs: a tolerance of 0 cannot be proved, and the smaller the tolerance, the
    longer a proof takes.
    """
    proto = onnx_of(model)
    loaded = open_model(proto)
    count, results = loaded.network.inputs, loaded.network.outputs
    slack = read_number(tolerance, "tolerance")
    if not slack >= 0:
        raise InputError(f"the tolerance is {tolerance}; it must be at least 0")
    _check_number(entry, count, "entry", "inputs")
    counted = range(results) if outputs is None else np.atleast_1d(np.asarray(outputs)).tolist()
    for number in counted:
        _check_number(number, results, "output", "outputs")
    sign = -1.0 if decreasing else 1.0
    falls = tuple(
        Conjunction(sign * np.eye(results)[[j]], np.array([-slack]), np.array([True]))
        for j in counted
    )
    cases = tuple(_doubled(case, entry, falls) for case in _boxes(inputs, loaded))
    pairs = paired(proto, loaded.input_shape, results, entry)
    return Monotonicity(pairs, Property(cases, count + 1, results), entry)


def _boxes(inputs: Any, loaded: LoadedNetwork) -> tuple[Case, ...]:
    """The boxes of the user's inputs, with marks for faces that do not belong to them."""
    parts = read_sets(inputs, loaded)
    if isinstance(inputs, Condition):
        return to_cases(inputs.space.names, [inputs.formula])[0]
    if isinstance(inputs, Property):
        return inputs.cases
    made = []
    for part in parts:
        if not isinstance(part.domain, Box):
            raise InputError("monotonicity is about boxes: a ball has the norm linf")
        made.append(Case(part.domain.lower.numpy(), part.domain.upper.numpy(), ()))
    return tuple(made)


def _doubled(case: Case, entry: int, unsafe: tuple[Conjunction, ...]) -> Case:
    """The box with the bounds of one entry repeated at the end."""

    def longer(values: Any) -> Any:
        return None if values is None else np.append(values, values[entry])

    ends = longer(case.lower), longer(case.upper)
    return Case(*ends, unsafe, longer(case.open_lower), longer(case.open_upper))


def _check_number(number: Any, count: int, what: str, of: str) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise InputError(f"{what} is {number!r}; it must be a whole number")
    if not 0 <= number < count:
        raise InputError(f"{what} is {number}; the {of} are numbered from 0 to {count - 1}")
