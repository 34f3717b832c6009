"""Lower and upper bounds on the distance to the nearest input of another class."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from fgp_vnn.api.certify import POINT_OPTIONS, Certifier
from fgp_vnn.api.models import Model
from fgp_vnn.base.radius import Radius
from fgp_vnn.engine.settings import make_settings, split_options
from fgp_vnn.network import Network


def radius(
    model: Model | Network | Certifier,
    x: ArrayLike,
    norm: Any = "l2",
    *,
    maximum: float = 1.0,
    gap: float = 0.01,
    **options: Any,
) -> Radius | list[Radius]:
    """Bound the distance from x to the nearest input of another class from below and above.

    The search stops when upper - lower <= gap * upper, when no counterexample is nearer than
    `maximum`, or at the deadline. Returns one result for one input, and a list for a batch along
    the first axis. `norm` is "l2", "linf" or "l1". Options are those of `certify` except `mask` and
    `target`; of `Settings`, `engine`, `reduce`, `device`, `memory` and `seed` apply. `timeout` is
    in seconds for each input. `progress` is a function called with both bounds whenever one
    improves, as in `bounds` and `maximise`; False hides the progress bar.
    """
    for_points, settings = split_options(options, POINT_OPTIONS)
    front, chosen = split_options(settings, ("mean", "std"))
    make_settings("radius", chosen)
    certifier = Certifier.of(model, x, **front, **chosen)
    answer: Radius | list[Radius] = certifier.radius(
        x, norm, maximum=maximum, gap=gap, **for_points
    )
    return answer
