"""The distance to the nearest input of another class, bounded from below and above."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import ArrayLike

from fgp_vnn.api.certify import Certifier
from fgp_vnn.attack.ball_judge import check_ball
from fgp_vnn.base.errors import InputError, OutOfMemoryError, memory_errors
from fgp_vnn.base.radius import Ended, Radius
from fgp_vnn.base.robustness import Doubles, Norm
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.engine.classifier import Clip
from fgp_vnn.engine.radius_ends import Ends, Progress
from fgp_vnn.engine.radius_search import narrow
from fgp_vnn.engine.settings import RADIUS_ENGINES, ROUTES, make_settings, unusual
from fgp_vnn.network import LoadedNetwork, Network

if TYPE_CHECKING:
    from torch.nn import Module

EXACT = 1e-6  # the relative gap of an exact answer


def radius(
    model: str | Path | LoadedNetwork | Network | Module | Certifier,
    x: ArrayLike,
    norm: Norm = "l2",
    *,
    maximum: float = 1.0,
    gap: float = 0.01,
    exact: bool = False,
    engine: str = "auto",
    clip: Clip | None = None,
    timeout: float | None = None,
    **settings: Any,
) -> Radius | list[Radius]:
    """How far from x the nearest input of another class is, between two bounds.

    One input gives one result, a batch along the first axis gives a list. `timeout` is in seconds
    for each input; settings are the fields of `Settings`.
    """
    make_settings("radius", settings)
    certifier = Certifier.of(model, **settings)
    points, single = certifier.points(x)
    results = [
        find_radius(
            certifier,
            point,
            norm=norm,
            maximum=maximum,
            gap=gap,
            exact=exact,
            engine=engine,
            clip=clip,
            timeout=timeout,
        )
        for point in points
    ]
    return results[0] if single else results


def find_radius(
    certifier: Certifier,
    x: Doubles,
    *,
    norm: Norm = "l2",
    maximum: float = 1.0,
    gap: float = 0.01,
    exact: bool = False,
    engine: str = "auto",
    clip: Clip | None = None,
    timeout: float | None = None,
    progress: Progress = lambda lower, upper: None,
) -> Radius:
    """Bounds of the distance at one flat input, up to `maximum`; `progress` hears them narrow.

    Ends when upper - lower <= gap * upper, when nothing nearer than `maximum` is left, or when
    time is up or an allocation fails: both ends are valid at any moment.
    """
    begin = time.perf_counter()
    budget = Budget.of(check_seconds(timeout), certifier.settings.memory)
    _check(certifier, x, maximum, gap, engine, norm, clip)
    ends = Ends(
        certifier,
        certifier.center(x, norm, clip),
        maximum,
        EXACT if exact else gap,
        budget,
        progress,
    )
    short = False
    try:
        with memory_errors(), torch.inference_mode():
            used = narrow(ends, engine)
    except OutOfMemoryError:
        used, short = engine, True
    return _result(ends, used, time.perf_counter() - begin, short)


def _result(ends: Ends, engine: str, seconds: float, short: bool) -> Radius:
    tight = math.isfinite(ends.upper) and ends.lower >= ends.upper * (1 - ends.gap)
    ended: Ended = "inconclusive"
    if tight:
        ended = "gap"
    elif ends.lower >= ends.maximum:
        ended = "max"
    elif short:
        ended = "memory"
    elif ends.budget.expired():
        ended = "timeout"
    return Radius(
        ends.lower,
        ends.upper,
        ends.center.label,
        ends.counterexample,
        tight,
        ended,
        engine,
        seconds,
        dict(ends.statistics),
    )


def _check(
    certifier: Certifier,
    x: Doubles,
    maximum: float,
    gap: float,
    engine: str,
    norm: Norm,
    clip: Clip | None,
) -> None:
    if not 0 < maximum < math.inf:
        raise InputError(f"the maximum is {maximum}; it must be a positive number")
    if not 0 < gap < 1:
        raise InputError(f"the gap is {gap}; it must lie between 0 and 1")
    if engine not in RADIUS_ENGINES:
        raise InputError(
            f"engine is {engine!r}; for a radius it must be one of {', '.join(RADIUS_ENGINES)}"
        )
    unused = unusual(vars(certifier.settings)).keys() - set(ROUTES["radius"])
    if unused:
        raise InputError(f"a radius does not use the setting {min(unused)!r} of its Certifier")
    check_ball(x, maximum, norm, clip)
