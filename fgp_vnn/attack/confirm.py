"""The final check of a counterexample: its written digits lie in the domain, and onnxruntime
confirms it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.property.numbers import snap

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Judge:
    """Decides whether a point breaks the property, as the competition's scorer would.

    `lower` and `upper` are the ends of the domain: a point on an open face is moved to the next
    value off it. `breaks(x, y)` says, with no tolerance, whether the written values break the
    property.
    """

    lower: Doubles  # [inputs]
    upper: Doubles  # [inputs]
    run: Callable[[Floats], Floats]  # the original network, [inputs] -> [outputs]
    breaks: Callable[[Doubles, Doubles], bool]

    def __call__(self, points: Tensor) -> Counterexample | None:
        """The first of the points [points, inputs] that breaks the property."""
        for point in points.detach().cpu().double().numpy():
            x = snap(point, self.lower, self.upper)
            with np.errstate(over="ignore", under="ignore"):
                single = x.astype(np.float32)
            if not np.isfinite(single).all():
                continue
            y = self.run(single)
            if np.isfinite(y).all() and self.breaks(x, y.astype(np.float64)):
                return Counterexample(x, y)
        return None
