"""The neighbourhood of an input (norm, clip box, mask, target classes), read from user values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.api.arrays import read_mask, read_norm, read_numbers, read_targets
from fgp_vnn.attack.ball_judge import check_ball
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.robustness import Doubles, Norm
from fgp_vnn.engine.classifier import Center, Clip
from fgp_vnn.property.conditions import Space


@dataclass(frozen=True, eq=False)
class Nearness:
    """A norm, a clip box, the inputs that may change, and the target classes."""

    shape: tuple[int, ...]  # of an input
    norm: Norm
    clip: Clip | None
    moves: NDArray[np.bool_] | None
    targets: tuple[int, ...] | None

    def at(self, x: Doubles, label: int, epsilon: Any) -> tuple[Center, float]:
        """The centre and the radius of the ball around x [inputs]. An array epsilon becomes the
        `sizes` of the centre, with radius 1. Raises InputError if the ball is not valid."""
        if self.targets == (label,):
            raise InputError(f"the target is the class {label} itself")
        radius = read_numbers(epsilon, "epsilon", self.shape, len(x))
        check_ball(x, radius, self.norm, self.clip)
        sizes = None if isinstance(radius, float) else radius
        center = Center(x, label, self.norm, self.clip, self.moves, sizes, self.targets)
        return center, radius if isinstance(radius, float) else 1.0


def read_near(
    space: Space, norm: Any, clip: Any = None, mask: Any = None, target: Any = None
) -> Nearness:
    """Read the user's values for a network with the variables `space`."""
    shape, inputs = space.input_shape, space.names.inputs
    moves, targets = read_mask(mask, shape, inputs), read_targets(target, space.names.outputs)
    return Nearness(shape, read_norm(norm), _clip(clip, shape, inputs), moves, targets)


def _clip(clip: Any, shape: tuple[int, ...], inputs: int) -> Clip | None:
    if clip is None:
        return None
    if not isinstance(clip, (tuple, list)) or len(clip) != 2:
        raise InputError("clip is a pair (low, high), of numbers or arrays")
    low, high = (
        np.broadcast_to(read_numbers(side, "clip", shape, inputs), (inputs,)).astype(np.float64)
        for side in clip
    )
    return low, high
