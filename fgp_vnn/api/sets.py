"""Sets of inputs as a user gives them: a condition, a pair of arrays, or a ball around a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fgp_vnn.api.arrays import read_inputs, read_numbers
from fgp_vnn.api.nearness import read_near
from fgp_vnn.api.opening import Opened
from fgp_vnn.attack.ball_judge import BallPoints
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.robustness import Doubles
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.property import Property
from fgp_vnn.property.conditions import Condition
from fgp_vnn.property.normal import to_cases
from fgp_vnn.property.numbers import snap


@dataclass(frozen=True)
class Ball:
    """The inputs within epsilon of x in a norm, which has to be named, and in the clip box, of
    which only those that the mask names move; values as `certify` takes them."""

    x: Any
    epsilon: Any
    norm: Any
    clip: Any = None
    mask: Any = None


@dataclass(frozen=True, eq=False)
class InputSet:
    """One convex set of inputs."""

    domain: Domain
    inside: Callable[[Doubles], Doubles | None]  # a point of it near a flat one, of float32 values


def read_sets(inputs: Any, opened: Opened) -> list[InputSet]:
    """The sets that a user's inputs consist of; at least one."""
    if isinstance(inputs, Ball):
        return [_ball(inputs, opened)]
    if isinstance(inputs, Condition):
        cases, warnings = to_cases(inputs.space.names, [inputs.formula])
        if inputs.space.names.inputs != opened.network.inputs:
            raise InputError("the inputs are about another network")
        if any(part.rows.size for case in cases for part in case.unsafe):
            raise InputError("inputs: a condition on the inputs only, not on outputs")
        if not cases:
            raise InputError(f"inputs: {warnings[0]}")
        return [_box(case.lower, case.upper) for case in cases]
    if isinstance(inputs, Property):
        if inputs.inputs != opened.network.inputs:
            raise InputError("the inputs are about another network")
        if not inputs.cases:
            raise InputError("inputs: no input meets the property's constraints")
        return [_box(case.lower, case.upper) for case in inputs.cases]
    if isinstance(inputs, (tuple, list)) and len(inputs) == 2:
        count, shape = opened.network.inputs, opened.input_shape
        lower, upper = (
            np.broadcast_to(read_numbers(side, name, shape, count), (count,)).copy()
            for side, name in zip(inputs, ("lower", "upper"), strict=True)
        )
        if not (lower <= upper).all():
            raise InputError("inputs: a lower bound is above its upper bound")
        return [_box(lower, upper)]
    raise InputError(
        "inputs are a condition on x, a pair (lower, upper), a Ball, or a Property for its inputs"
    )


def _box(lower: Doubles, upper: Doubles) -> InputSet:
    domain = Box(torch.from_numpy(lower), torch.from_numpy(upper))
    return InputSet(domain, lambda point: snap(point, lower, upper))


def _ball(ball: Ball, opened: Opened) -> InputSet:
    given = read_inputs(ball.x, opened.input_shape, opened.network.inputs)
    if not given.single:
        raise InputError("a ball is around one input, not a batch")
    asked = read_near(opened, ball.norm, ball.clip, ball.mask)
    center, radius = asked.at(given.points[0], 0, ball.epsilon)
    points = BallPoints(center.x, center.reach(radius), center.norm, *center.box(radius))
    return InputSet(center.ball(radius, torch.device("cpu")), points.inside)
