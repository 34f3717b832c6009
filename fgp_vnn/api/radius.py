"""The distance to the nearest input of another class, bounded from below and above."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from fgp_vnn.api.certify import Certifier
from fgp_vnn.api.models import Model
from fgp_vnn.base.radius import Radius
from fgp_vnn.base.robustness import Norm
from fgp_vnn.engine.classifier import Clip
from fgp_vnn.engine.settings import make_settings
from fgp_vnn.network import Network


def radius(
    model: Model | Network | Certifier,
    x: ArrayLike,
    norm: Norm = "l2",
    *,
    maximum: float = 1.0,
    gap: float = 0.01,
    clip: Clip | None = None,
    timeout: float | None = None,
    **settings: Any,
) -> Radius | list[Radius]:
    """How far from x the nearest input of another class is, between two bounds that are within
    `gap` of each other, relative to the upper one, unless time is up or `maximum` is reached.

    One input gives one result, a batch along the first axis gives a list. `timeout` is in seconds
    for each input; settings are the fields of `Settings`.
    """
    make_settings("radius", settings)
    certifier = Certifier.of(model, x, **settings)
    asked: dict[str, Any] = {"norm": norm, "maximum": maximum, "gap": gap}
    asked |= {"clip": clip, "timeout": timeout}
    return certifier.each(x, lambda point: certifier.radius(point, **asked))
