"""The distance to the nearest input of another class, bounded from below and above."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fgp_vnn.certifier import Certifier, ball, check_ball
from fgp_vnn.deadline import Deadline
from fgp_vnn.decide import lifted, shrink
from fgp_vnn.domain import L2Ball
from fgp_vnn.reduction import reduce_inputs
from fgp_vnn.robustness import Doubles, Norm, other_class
from fgp_vnn.search.outcome import Confirm
from fgp_vnn.search.radius import Reached, walk_outwards
from fgp_vnn.verdict import Counterexample

TIGHT = 1e-3  # relative difference of the bounds at which the lower one is called tight


@dataclass(frozen=True, eq=False)
class Radius:
    """No input nearer than `lower` has another class; `witness`, at distance `upper`, has one."""

    lower: float
    upper: float  # infinite if no witness was found
    label: int
    tight: bool  # the lower bound ends at the witness
    ended: str  # "witness", "limit", "inconclusive" or "timeout"
    witness: Counterexample | None = None
    seconds: float = 0.0
    statistics: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        names = ("lower", "label", "tight", "ended", "seconds")
        result: dict[str, Any] = {name: getattr(self, name) for name in names}
        result["upper"] = self.upper if math.isfinite(self.upper) else None
        result["statistics"] = dict(self.statistics)
        if self.witness is not None:
            result["witness_label"] = other_class(self.witness.y, self.label)
            result["witness"] = [float(v) for v in self.witness.x]
        return result


def certified_radius(
    certifier: Certifier,
    x: Doubles,
    *,
    limit: float,
    norm: Norm = "l2",
    clip: tuple[float, float] | None = None,
    timeout: float | None = None,
    progress: Callable[[float], None] = lambda lower: None,
) -> Radius:
    """Bounds of the distance at x, up to `limit`; `progress` hears the lower bound as it grows.

    The lower bound is one of the whole ball; witnesses have to lie in the clip box.
    """
    begin = time.perf_counter()
    deadline = Deadline.after(timeout)
    check_ball(x, limit, norm, clip)
    if not limit > 0:
        raise ValueError("the limit must be positive")
    label = int(certifier.run(x.astype(np.float32)).argmax())
    attacked = certifier.attack(x, epsilon=limit, norm=norm, clip=clip, timeout=timeout)
    far = limit if attacked is None else min(limit, _distance(attacked, x, norm))
    with torch.inference_mode():
        reached = _search(certifier, x, far, norm, clip, label, deadline, progress)
    witness = reached.witness or attacked
    upper = math.inf if witness is None else _distance(witness, x, norm)
    lower = min(reached.lower * far, upper)
    tight = witness is not None and upper - lower <= TIGHT * upper
    seconds = time.perf_counter() - begin
    ended = "witness" if tight else reached.ended
    return Radius(lower, upper, label, tight, ended, witness, seconds, reached.statistics)


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
