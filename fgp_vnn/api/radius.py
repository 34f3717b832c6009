"""The distance to the nearest input of another class, bounded from below and above."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from fgp_vnn.api.certify import ASKED, Certifier
from fgp_vnn.api.models import Model
from fgp_vnn.api.opening import divide
from fgp_vnn.base.radius import Radius
from fgp_vnn.engine.settings import make_settings
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
    """How far from x the nearest input of another class is, between two bounds that are within
    `gap` of each other, relative to the upper one, unless time is up or `maximum` is reached.

    One input gives one result, a batch along the first axis gives a list. `norm` is l2, unless linf
    or l1 is named. Options are those of `certify` but for `mask` and `target`; `timeout` is in
    seconds for each input, and `progress` is called with the two bounds whenever one improves, as
    in `bounds` and `maximise` (False for no bar).
    """
    asked, settings = divide(options, ASKED)
    front, chosen = divide(settings, ("mean", "std"))
    make_settings("radius", chosen)
    certifier = Certifier.of(model, x, **front, **chosen)
    answer: Radius | list[Radius] = certifier.radius(x, norm, maximum=maximum, gap=gap, **asked)
    return answer
