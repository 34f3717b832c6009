"""Properties written in Python: the variables of a model, and the most common properties."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgp_vnn.api.arrays import read_classes, read_inputs, read_numbers
from fgp_vnn.api.models import open_model, space_of
from fgp_vnn.api.nearness import read_near
from fgp_vnn.api.refused import program_of
from fgp_vnn.api.sets import Ball, box_condition, is_pair, read_pair
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.property import Property, conditions
from fgp_vnn.property.conditions import Condition, Space, any_of
from fgp_vnn.property.expressions import Expression, space_variables


def variables(model: Any) -> tuple[Expression, Expression]:
    """The inputs x and outputs y of a model, to write conditions and objectives with; both have the
    model's shapes without a batch dimension of 1."""
    x, y = space_variables(_space(model))
    return _single(x), _single(y)


def robustness(
    model: Any,
    x: Any,
    *,
    epsilon: Any,
    y: Any = None,
    clip: Any = None,
    mask: Any = None,
    target: Any = None,
) -> Property:
    """The property that all inputs within epsilon of x, in the linf norm, have class y. By default,
    y is the network's own prediction at x.

    It is broken by an input at which the output of another class, or of a target class, is at least
    that of y. Arguments are as for `certify`, but x is one input, not a batch.
    """
    loaded = open_model(model)
    given, space = read_inputs(x, loaded.input_shape, loaded.network.inputs), space_of(loaded)
    if not given.single:
        raise InputError("a property is about one input, not a batch")
    point, outputs = given.points[0], loaded.network.outputs
    check_classifier(outputs)
    own = int(loaded.runtime.run(point.astype(np.float32)).argmax())
    label = own if y is None else read_classes(y, 1, outputs)[0]
    near = read_near(space, "linf", clip, mask, target)
    center, radius = near.at(point, label, epsilon)
    lower, upper = center.box(radius)
    inputs, results = (array.flatten() for array in space_variables(space))
    others = range(outputs) if near.targets is None else near.targets
    reached = any_of([results[j] >= results[label] for j in others if j != label])
    return conditions.property_of((lower <= inputs) & (inputs <= upper), reached)


def check_classifier(outputs: int) -> None:
    """Refuse a network with one output: `robustness` compares the outputs of classes."""
    if outputs < 2:
        raise InputError(
            "robustness is for a network with an output for each class, and this one has one "
            "output: state a limit on its value with output_range or property_of"
        )


def output_range(model: Any, inputs: Any, *, lower: Any = None, upper: Any = None) -> Property:
    """The property that all outputs lie between `lower` and `upper`, each a number or one value per
    output. `inputs` is a condition on x, a pair (lower, upper) or a `Ball` of the linf norm."""
    if lower is None and upper is None:
        raise InputError("a range has a lower end, an upper end, or both")
    space = _space(model)
    results = space_variables(space)[1].flatten()
    shape, count = space.output_shape, space.names.outputs
    outside: list[Condition] = []
    if lower is not None:
        outside.append((results < read_numbers(lower, "lower", shape, count)).any())
    if upper is not None:
        outside.append((results > read_numbers(upper, "upper", shape, count)).any())
    return property_of(inputs, any_of(outside))


def property_of(inputs: Any, unsafe: Condition) -> Property:
    """The property that no input of a set has an unsafe output. `inputs` is a condition on x, a
    pair (lower, upper) or a `Ball` of the linf norm; `unsafe` is a condition on the variables."""
    if isinstance(inputs, Ball) and isinstance(unsafe, Condition):
        inputs = box_condition(inputs, unsafe.space)
    if is_pair(inputs) and isinstance(unsafe, Condition):
        lower, upper = read_pair(inputs, unsafe.space)
        x = space_variables(unsafe.space)[0].flatten()
        inputs = (lower <= x) & (x <= upper)
    return conditions.property_of(inputs, unsafe)


def _space(model: Any) -> Space:
    """The variables of a model, even of one that can be run but not verified."""
    try:
        return space_of(open_model(model))
    except UnsupportedError as error:
        return space_of(program_of(model, error))


def _single(array: Expression) -> Expression:
    """Drop a batch dimension of 1."""
    return array[0] if len(array.shape) > 1 and array.shape[0] == 1 else array
