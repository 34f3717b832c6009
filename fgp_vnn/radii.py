"""The distance to the nearest input of another class, bounded from below and above."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from fgp_vnn.certifier import Certifier, ball, check_ball
from fgp_vnn.deadline import Deadline
from fgp_vnn.decide import lifted, shrink
from fgp_vnn.domain import L2Ball
from fgp_vnn.errors import InputError
from fgp_vnn.network import LoadedNetwork, Network
from fgp_vnn.reduction import reduce_inputs
from fgp_vnn.robustness import Doubles, Norm, other_class
from fgp_vnn.search.outcome import Confirm
from fgp_vnn.search.radius import Reached, walk_outwards
from fgp_vnn.settings import RADIUS_ENGINES
from fgp_vnn.verdict import Counterexample

if TYPE_CHECKING:
    from torch.nn import Module

EXACT = 1e-6  # the relative gap of an exact answer

Ended = Literal["gap", "max", "timeout", "inconclusive"]
Progress = Callable[[float, float], None]  # hears the lower and the upper bound


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
    certifier = model if isinstance(model, Certifier) else Certifier.of(model, **settings)
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
    deadline = Deadline.after(timeout)
    _check(x, maximum, gap, engine, norm, clip)
    gap = EXACT if exact else gap
    label = int(certifier.run(x.astype(np.float32)).argmax())
    attacked = certifier.attack(x, epsilon=maximum, norm=norm, clip=clip, timeout=timeout)
    far = maximum if attacked is None else min(maximum, _distance(attacked, x, norm))
    with torch.inference_mode():
        reached = _search(
            certifier, x, far, norm, clip, label, deadline, lambda lower: progress(lower, far)
        )
    witness = reached.witness or attacked
    upper = math.inf if witness is None else _distance(witness, x, norm)
    lower = min(reached.lower * far, upper)
    tight = witness is not None and upper - lower <= gap * upper
    seconds = time.perf_counter() - begin
    names: dict[str, Ended] = {"limit": "max", "timeout": "timeout"}
    ended = "gap" if tight else names.get(reached.ended, "inconclusive")
    return Radius(lower, upper, label, witness, tight, ended, "walk", seconds, reached.statistics)


def _check(
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
    check_ball(x, maximum, norm, clip)


def _search(
    certifier: Certifier,
    x: Doubles,
    far: float,
    norm: Norm,
    clip: tuple[float, float] | None,
    label: int,
    deadline: Deadline,
    progress: Callable[[float], None],
) -> Reached:
    domain = ball(x, far, norm, None, certifier.network.device)
    query = certifier.query(domain, label)
    confirm: Confirm = certifier.judge(x, far, norm, clip, label)
    if certifier.space is not None and isinstance(domain, L2Ball):
        query, lift = certifier.space.restrict(query, domain)
        confirm = lifted(lift, confirm)
    small = shrink(query)
    query, lift = reduce_inputs(small.query)

    def part(witness: Counterexample) -> float:
        return _distance(witness, x, norm) / far

    return walk_outwards(
        query, small.bounds, lifted(lift, confirm), part, deadline, lambda t: progress(t * far)
    )


def _distance(witness: Counterexample, x: Doubles, norm: Norm) -> float:
    """The distance of a witness, rounded up by more than float64 can be wrong."""
    order = {"l2": 2, "linf": np.inf, "l1": 1}[norm]
    return float(np.linalg.norm(witness.x.astype(np.float64) - x, order)) * (1 + 1e-12)
