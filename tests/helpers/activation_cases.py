"""Activations with their exact functions, and random intervals of all magnitudes."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import mpmath
import torch
from mpmath import mp, mpf
from torch import Tensor

from fgp_vnn.network.activations.base import Activation
from fgp_vnn.network.activations.powers import power
from fgp_vnn.network.activations.table import ACTIVATIONS

mp.dps = 60
_ALPHA, _GAMMA = mpf(1.67326319217681884765625), mpf(1.05070102214813232421875)
_SAMPLES = 33

EXACT: dict[str, Callable[[Any], Any]] = {
    "Atan": mpmath.atan,
    "Ceil": mpmath.ceil,
    "Celu": lambda z: z if z > 0 else mpmath.expm1(z),
    "Cos": mpmath.cos,
    "Elu": lambda z: z if z > 0 else mpmath.expm1(z),
    "Erf": mpmath.erf,
    "Exp": mpmath.exp,
    "Floor": mpmath.floor,
    "Gelu": lambda z: z * mpmath.erfc(-z / mpmath.sqrt(2)) / 2,
    "HardSwish": lambda z: z * min(max(z + 3, 0), 6) / 6,
    "Log": mpmath.log,
    "Pow 3": lambda z: z**3,
    "Pow 4": lambda z: z**4,
    "Pow -0.5": lambda z: 1 / mpmath.sqrt(z),
    "Pow 1.5": lambda z: z * mpmath.sqrt(z),
    "Reciprocal": lambda z: 1 / z,
    "Round": mpmath.nint,
    "Selu": lambda z: _GAMMA * (z if z > 0 else _ALPHA * mpmath.expm1(z)),
    "Sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    "Sign": mpmath.sign,
    "SiLU": lambda z: z / (1 + mpmath.exp(-z)),
    "Sin": mpmath.sin,
    "Softplus": lambda z: mpmath.log1p(mpmath.exp(-abs(z))) + max(z, 0),
    "Softsign": lambda z: z / (1 + abs(z)),
    "Sqrt": mpmath.sqrt,
    "Square": lambda z: z * z,
    "Tanh": mpmath.tanh,
}
POSITIVE = {"Log", "Sqrt", "Pow -0.5", "Pow 1.5"}
_PLACES = (0.0, 0.0, 1.0, -1.0, sqrt(2), -sqrt(2), 2.39935728, -2.39935728, 3.0, -3.0, pi, -pi / 2)


def curves() -> dict[str, Activation]:
    """Every activation of the table, and some powers."""
    found = {name: make({}) for name, make in ACTIVATIONS.items()}
    return found | {f"Pow {p:g}": power(p) for p in (3, 4, -0.5, 1.5)}


def intervals(name: str, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Lower and upper ends [1, count]: near special places and far from them, wide and narrow."""
    random = torch.Generator().manual_seed(seed)

    def spread(low: float, high: float) -> Tensor:
        exponent = low + (high - low) * torch.rand(count, generator=random, dtype=torch.float64)
        sign = torch.randint(0, 2, (count,), generator=random) * 2 - 1
        return sign * 10.0**exponent

    place = torch.tensor(_PLACES, dtype=torch.float64)[
        torch.randint(0, len(_PLACES), (count,), generator=random)
    ]
    usual = torch.rand(count, generator=random) < 0.7
    middle = place + torch.where(usual, spread(-3, 1), spread(-12, 4))
    radius = torch.where(usual, spread(-2, 0.7), spread(-12, 3)).abs()
    radius = torch.where(torch.rand(count, generator=random) < 0.05, 0.0, radius)
    lower, upper = middle - radius, middle + radius
    if name in POSITIVE:
        lower, upper = (
            torch.minimum(lower.abs(), upper.abs()),
            torch.maximum(lower.abs(), upper.abs()),
        )
    if name == "Reciprocal":
        flip = (lower < 0) & (upper > 0)
        lower = torch.where(flip, 1e-3 * upper, lower)
    return lower.unsqueeze(0), upper.unsqueeze(0)


def violations(
    curve: Activation, exact: Callable[[Any], Any], lower: Tensor, upper: Tensor
) -> list[tuple[float, float, int]]:
    """The intervals, and lines of them, that do not hold at a few of their worst places."""
    fan = curve.fan(lower, upper)
    low, up = lower[0].double(), upper[0].double()
    share = torch.linspace(0, 1, _SAMPLES, dtype=torch.float64).unsqueeze(-1)
    points = torch.minimum(torch.maximum(low + share * (up - low), low), up)  # [samples, n]
    values = curve.value(points)
    bad: list[tuple[float, float, int]] = []
    n = lower.shape[-1]
    flat = torch.zeros(1, n, dtype=lower.dtype)
    below = torch.cat([fan.low[:, 0], flat]), torch.cat([fan.floor[:, 0], fan.least])
    above = torch.cat([fan.high[:, 0], flat]), torch.cat([fan.ceiling[:, 0], fan.greatest])
    for sign, (slopes, offsets) in ((1, below), (-1, above)):
        lines = slopes.double().unsqueeze(1) * points + offsets.double().unsqueeze(1)
        gaps = (sign * (values - lines)).nan_to_num(torch.inf)  # [4, samples, n]
        worst = points.gather(0, gaps.argmin(1))  # [4, n]
        for i in range(n):
            places = {*worst[:, i].tolist(), low[i].item(), up[i].item()}
            wanted = {z: sign * exact(mpf(z)) for z in places}
            for line in range(4):
                if not bool(offsets[line, i].isfinite()):
                    continue
                slope, offset = mpf(float(slopes[line, i])), mpf(float(offsets[line, i]))
                if any(w < sign * (slope * mpf(z) + offset) for z, w in wanted.items()):
                    bad.append((low[i].item(), up[i].item(), sign * (line + 1)))
    return bad


def tightness(curve: Activation, lower: Tensor, upper: Tensor) -> Tensor:
    """The least gap [3, n] between the function and each line below, over the interval's width."""
    fan = curve.fan(lower, upper)
    share = torch.linspace(0, 1, 257, dtype=torch.float64).unsqueeze(-1)
    points = lower + share * (upper - lower)  # [samples, n]
    lines = fan.low[:, 0].unsqueeze(0) * points.unsqueeze(1) + fan.floor[:, 0].unsqueeze(
        0
    )  # [samples, 3, n]
    return (curve.value(points).unsqueeze(1) - lines).amin(0)
