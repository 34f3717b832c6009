"""The distance to the nearest input of another class, bounded from below and above."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from fgp_vnn.attack.robustness import Doubles, Norm, check_ball, other_class
from fgp_vnn.base.errors import InputError
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.budget.budget import Budget, check_seconds
from fgp_vnn.engine.certifier import Certifier
from fgp_vnn.engine.climb import search_bundles, search_walk
from fgp_vnn.engine.ends import Ends, Progress
from fgp_vnn.engine.first_ends import FINE, ROUGH, attack, plain_bounds
from fgp_vnn.engine.settings import RADIUS_ENGINES, ROUTES, make_settings, unusual
from fgp_vnn.network import LoadedNetwork, Network

if TYPE_CHECKING:
    from torch.nn import Module

EXACT = 1e-6  # the relative gap of an exact answer

Ended = Literal["gap", "max", "timeout", "inconclusive"]


@dataclass(frozen=True, eq=False)
class Radius:
    """No input nearer than `lower` has another class; the counterexample, at `upper`, has one."""

    lower: float
    upper: float  # infinite if no counterexample was found
    label: int  # the class that the network gives the centre
    counterexample: Counterexample | None = None
    tight: bool = False  # the two ends are within the gap that was asked for
    ended: Ended = "inconclusive"  # "max": no counterexample within the maximum
    engine: str = "auto"  # what the lower bound is from
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        names = ("lower", "label", "tight", "ended", "engine", "seconds")
        result: dict[str, Any] = {name: getattr(self, name) for name in names}
        result["upper"] = self.upper if math.isfinite(self.upper) else None
        result["statistics"] = dict(self.statistics)
        if self.counterexample is not None:
            result["counterexample"] = {
                "label": other_class(self.counterexample.y, self.label),
                "x": [float(v) for v in self.counterexample.x],
                "y": [float(v) for v in self.counterexample.y],
            }
        return result


def radius(
    model: str | Path | LoadedNetwork | Network | Module | Certifier,
    x: ArrayLike,
    norm: Norm = "l2",
    *,
    maximum: float = 1.0,
    gap: float = 0.01,
    exact: bool = False,
    engine: str = "auto",
    clip: tuple[float, float] | None = None,
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
    clip: tuple[float, float] | None = None,
    timeout: float | None = None,
    progress: Progress = lambda lower, upper: None,
) -> Radius:
    """Bounds of the distance at one flat input, up to `maximum`; `progress` hears them narrow.

    Ends when upper - lower <= gap * upper, when nothing nearer than `maximum` is left, or when
    time is up: both ends are valid at any moment.
    """
    begin = time.perf_counter()
    budget = Budget.of(check_seconds(timeout), certifier.settings.memory)
    _check(certifier, x, maximum, gap, engine, norm, clip)
    y = certifier.run(x.astype(np.float32))
    if not np.isfinite(y).all():
        raise InputError("the network's output at the input is not finite")
    ends = Ends(
        certifier,
        x,
        int(y.argmax()),
        norm,
        clip,
        maximum,
        EXACT if exact else gap,
        budget,
        progress,
    )
    with torch.inference_mode():
        attack(ends)
        used = _narrow(ends, engine)
    return _result(ends, used, time.perf_counter() - begin)


def _narrow(ends: Ends, engine: str) -> str:
    """Raise the lower end; gives the engine that did."""
    plain_bounds(ends, FINE if engine == "bounds" else ROUGH)
    if ends.done or engine == "bounds" or ends.budget.expired():
        return "bounds"
    if engine == "walk":
        search_walk(ends)
        return "walk"
    search_bundles(ends)
    return "bundles"


def _result(ends: Ends, engine: str, seconds: float) -> Radius:
    tight = math.isfinite(ends.upper) and ends.lower >= ends.upper * (1 - ends.gap)
    ended: Ended = "inconclusive"
    if tight:
        ended = "gap"
    elif ends.lower >= ends.maximum:
        ended = "max"
    elif ends.budget.expired():
        ended = "timeout"
    return Radius(
        ends.lower,
        ends.upper,
        ends.label,
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
    clip: tuple[float, float] | None,
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
