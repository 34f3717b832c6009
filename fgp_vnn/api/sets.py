"""Sets of inputs that a user can pass: conditions, pairs of arrays, balls, and properties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fgp_vnn.api.arrays import read_inputs, read_numbers
from fgp_vnn.api.models import space_of
from fgp_vnn.api.nearness import read_near
from fgp_vnn.attack.ball_judge import BallPoints
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.robustness import Doubles
from fgp_vnn.base.words import plural
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.engine.classifier import Center
from fgp_vnn.network import LoadedNetwork
from fgp_vnn.property import Property
from fgp_vnn.property.conditions import Condition, Space
from fgp_vnn.property.expressions import space_variables
from fgp_vnn.property.normal import to_cases
from fgp_vnn.property.numbers import exact_numbers, snap


@dataclass(frozen=True)
class Ball:
    """The inputs within epsilon of x in a norm, which has no default. `clip` restricts them to a
    box, and `mask` selects the entries of x that may change; all values are as for `certify`."""

    x: Any
    epsilon: Any
    norm: Any
    clip: Any = None
    mask: Any = None


@dataclass(frozen=True, eq=False)
class InputSet:
    """One convex set of inputs."""

    domain: Domain
    inside: Callable[[Doubles], Doubles | None]  # nearby point of the set with float32 values


def example_of(inputs: Any) -> Any:
    """An array in the shape of one input: the centre of a ball, or the lower end of a pair of
    arrays; None if there is none."""
    if isinstance(inputs, Ball):
        return inputs.x
    return inputs[0] if is_pair(inputs) and np.ndim(inputs[0]) else None


def is_pair(inputs: Any) -> bool:
    """Whether inputs are given as a pair (lower, upper)."""
    return isinstance(inputs, (tuple, list)) and len(inputs) == 2


def read_pair(inputs: Any, space: Space) -> tuple[Doubles, Doubles]:
    """The lower and upper bounds [inputs] from a pair of numbers or arrays."""
    count, shape = space.names.inputs, space.input_shape
    lower, upper = (
        np.broadcast_to(read_numbers(side, name, shape, count), (count,)).copy()
        for side, name in zip(inputs, ("lower", "upper"), strict=True)
    )
    if above := np.flatnonzero(lower > upper).tolist():
        raise InputError(f"inputs: the lower bound of input {above[0]} is above its upper bound")
    return lower, upper


def read_sets(inputs: Any, loaded: LoadedNetwork) -> list[InputSet]:
    """The convex sets whose union is the user's set of inputs; at least one."""
    count = loaded.network.inputs
    if isinstance(inputs, Ball):
        return [_ball(inputs, space_of(loaded))]
    if isinstance(inputs, Condition):
        cases, warnings = to_cases(inputs.space.names, [inputs.formula])
        if inputs.space.names.inputs != count:
            raise InputError("the inputs are about another network")
        if any(part.rows.size for case in cases for part in case.unsafe):
            raise InputError("inputs: a condition on the inputs only, not on outputs")
        if not cases:
            raise InputError(f"inputs: {warnings[0]}")
        return [_box(case.lower, case.upper) for case in cases]
    if isinstance(inputs, Property):
        if inputs.inputs != count:
            raise InputError(
                f"the inputs are about another network: {plural(inputs.inputs, 'value')}, "
                f"not {count}"
            )
        if not inputs.cases:
            raise InputError("inputs: no input meets the property's constraints")
        return [_box(case.lower, case.upper) for case in inputs.cases]
    if is_pair(inputs):
        return [_box(*read_pair(inputs, space_of(loaded)))]
    raise InputError(
        "inputs are a condition on x, a pair (lower, upper), a Ball, or a Property for its inputs"
    )


def _box(lower: Doubles, upper: Doubles) -> InputSet:
    domain = Box(torch.from_numpy(lower), torch.from_numpy(upper))
    return InputSet(domain, lambda point: snap(point, lower, upper))


def box_condition(ball: Ball, space: Space) -> Condition:
    """The exact condition on x for a ball of the linf norm."""
    center, radius = _center(ball, space)
    if center.norm != "linf":
        raise InputError(
            f"a property is about boxes, and a Ball of the norm {center.norm} is none: certify and "
            "radius ask for the classes in it, maximise(model, Ball(...), y[0] - y[1]) for outputs"
        )
    x = space_variables(space)[0].flatten()
    reach = np.broadcast_to(center.reach(radius), center.x.shape)
    if center.moves is not None:
        reach = np.where(center.moves, reach, 0.0)
    middle, size = exact_numbers(center.x), exact_numbers(reach)
    near: Condition = (x >= middle - size) & (x <= middle + size)
    if center.clip is not None:
        near = near & (x >= center.clip[0]) & (x <= center.clip[1])
    return near


def _center(ball: Ball, space: Space) -> tuple[Center, float]:
    given = read_inputs(ball.x, space.input_shape, space.names.inputs)
    if not given.single:
        raise InputError("a ball is around one input, not a batch")
    near = read_near(space, ball.norm, ball.clip, ball.mask)
    return near.at(given.points[0], 0, ball.epsilon)


def _ball(ball: Ball, space: Space) -> InputSet:
    center, radius = _center(ball, space)
    points = BallPoints(center.x, center.reach(radius), center.norm, *center.box(radius))
    return InputSet(center.ball(radius, torch.device("cpu")), points.inside)
