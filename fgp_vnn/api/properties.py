"""Properties of a model, made in Python: its variables, and the questions that are asked most."""

from __future__ import annotations

from typing import Any

import numpy as np

from fgp_vnn.api.arrays import read_classes, read_inputs, read_numbers
from fgp_vnn.api.nearness import read_near
from fgp_vnn.api.opening import open_model, space_of
from fgp_vnn.api.refused import program_of
from fgp_vnn.api.sets import Ball, box_condition, is_pair, read_pair
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.property import Property, conditions
from fgp_vnn.property.conditions import Condition, Space, any_of
from fgp_vnn.property.expressions import Expression, space_variables


def variables(model: Any) -> tuple[Expression, Expression]:
    """The inputs x and the outputs y of a model, in its own shapes without the batch dimension, to
    write conditions and objectives with."""
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
    """Broken by an input within epsilon of x, in the norm linf, to which another class than y, or a
    target, is as likely; y is the network's own class of x if it is not given.

    Values are as for `certify`; one input, not a batch.
    """
    loaded = open_model(model)
    given, space = read_inputs(x, loaded.input_shape, loaded.network.inputs), space_of(loaded)
    if not given.single:
        raise InputError("a property is about one input, not a batch")
    point, outputs = given.points[0], loaded.network.outputs
    own = int(loaded.runtime.run(point.astype(np.float32)).argmax())
    label = own if y is None else read_classes(y, 1, outputs)[0]
    near = read_near(space, "linf", clip, mask, target)
    center, radius = near.at(point, label, epsilon)
    lower, upper = center.box(radius)
    inputs, results = (array.flatten() for array in space_variables(space))
    others = range(outputs) if near.targets is None else near.targets
    reached = any_of([results[j] >= results[label] for j in others if j != label])
    return conditions.property_of((lower <= inputs) & (inputs <= upper), reached)


def output_range(model: Any, inputs: Any, *, lower: Any = None, upper: Any = None) -> Property:
    """Broken by an input whose outputs leave the range; its ends are numbers, or one for each.
    `inputs` is a condition on x, a pair (lower, upper) or a `Ball` of the norm linf."""
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
    """The property that is broken by the inputs of a set, a condition, a pair (lower, upper) or a
    `Ball` of the norm linf, whose outputs are unsafe."""
    if isinstance(inputs, Ball) and isinstance(unsafe, Condition):
        inputs = box_condition(inputs, unsafe.space)
    if is_pair(inputs) and isinstance(unsafe, Condition):
        lower, upper = read_pair(inputs, unsafe.space)
        x = space_variables(unsafe.space)[0].flatten()
        inputs = (lower <= x) & (x <= upper)
    return conditions.property_of(inputs, unsafe)


def _space(model: Any) -> Space:
    """The variables of a model, also of one that can only be run."""
    try:
        return space_of(open_model(model))
    except UnsupportedError as error:
        return space_of(program_of(model, error))


def _single(array: Expression) -> Expression:
    """Without a batch dimension of 1."""
    return array[0] if len(array.shape) > 1 and array.shape[0] == 1 else array
