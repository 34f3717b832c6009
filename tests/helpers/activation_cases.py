"""Activations with their exact functions, and random intervals of all magnitudes."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any, NamedTuple

import mpmath
import numpy as np
import torch
from mpmath import mp, mpf
from torch import Tensor

from fgp_vnn.network.activations.base import Activation
from fgp_vnn.network.activations.powers import exponential, power
from fgp_vnn.network.activations.table import ACTIVATIONS
from tests.helpers.wide_functions import TINY, UNIT, WIDE, WideFunction

mp.dps = 60
_ALPHA, _GAMMA = mpf(1.67326319217681884765625), mpf(1.05070102214813232421875)
_SAMPLES = 33
_PARABOLAS = 4

EXACT: dict[str, Callable[[Any], Any]] = {
    "Acos": mpmath.acos,
    "Acosh": mpmath.acosh,
    "Asin": mpmath.asin,
    "Asinh": mpmath.asinh,
    "Atan": mpmath.atan,
    "Atanh": mpmath.atanh,
    "Ceil": mpmath.ceil,
    "Celu": lambda z: z if z > 0 else mpmath.expm1(z),
    "Cos": mpmath.cos,
    "Cosh": mpmath.cosh,
    "Elu": lambda z: z if z > 0 else mpmath.expm1(z),
    "Erf": mpmath.erf,
    "Exp": mpmath.exp,
    "Exponential 2": lambda z: mpf(2) ** z,
    "Exponential 0.3": lambda z: mpf(0.3) ** z,
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
    "Sinh": mpmath.sinh,
    "Softplus": lambda z: mpmath.log1p(mpmath.exp(-abs(z))) + max(z, 0),
    "Softsign": lambda z: z / (1 + abs(z)),
    "Sqrt": mpmath.sqrt,
    "Square": lambda z: z * z,
    "Step": lambda z: mpf(z > 0),
    "Tan": mpmath.tan,
    "Tanh": mpmath.tanh,
    "Within": lambda z: z,
}
WITHIN = {
    "Acos": (-1.0, 1.0),
    "Acosh": (1.0, 1e9),
    "Asin": (-1.0, 1.0),
    "Atanh": (-0.999, 0.999),
    "Cosh": (-600.0, 600.0),
    "Exponential 0.3": (-900.0, 900.0),
    "Exponential 2": (-900.0, 900.0),
    "Sinh": (-600.0, 600.0),
    "Tan": (-1.5, 1.5),
}
JUMPS = {"Ceil", "Floor", "Round", "Sign", "Step"}
POSITIVE = {"Log", "Sqrt", "Pow -0.5", "Pow 1.5"}
_PLACES = (0.0, 0.0, 1.0, -1.0, sqrt(2), -sqrt(2), 2.39935728, -2.39935728, 3.0, -3.0, pi, -pi / 2)


def curves() -> dict[str, Activation]:
    """Every activation of the table, and some powers."""
    found = {name: make({}) for name, make in ACTIVATIONS.items()}
    found |= {f"Exponential {base:g}": exponential(base) for base in (2.0, 0.3)}
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
    if name in WITHIN:
        low, high = WITHIN[name]
        lower, upper = (end.clamp(low, high) for end in (lower, upper))
    if name in POSITIVE:
        lower, upper = (
            torch.minimum(lower.abs(), upper.abs()),
            torch.maximum(lower.abs(), upper.abs()),
        )
    if name == "Reciprocal":
        flip = (lower < 0) & (upper > 0)
        lower = torch.where(flip, 1e-3 * upper, lower)
    return lower.unsqueeze(0), upper.unsqueeze(0)


class Line(NamedTuple):
    """A line over an interval; a range is a flat one."""

    lower: float
    upper: float
    number: int  # 1 to 3 below the function, 4 its least value; negative above


def violations(
    curve: Activation, name: str, lower: Tensor, upper: Tensor
) -> tuple[list[Line], int]:
    """The lines that do not hold, and how many were left to mpmath.

    A line is compared with the function at both ends, at the nearest of many places, and at the one
    that parabolas through three of them lead to. Long double decides by what it may be off; what it
    does not decide, and all that it finds to be wrong, is compared again in 60 digits.
    """
    envelope = curve.envelope(lower, upper)
    flat = torch.zeros(1, lower.shape[-1], dtype=lower.dtype)
    below = torch.cat([envelope.low[:, 0], flat]), torch.cat([envelope.floor[:, 0], envelope.least])
    above = (
        torch.cat([envelope.high[:, 0], flat]),
        torch.cat([envelope.ceiling[:, 0], envelope.greatest]),
    )
    low, up = lower[0].double(), upper[0].double()
    points = _places(low, up, jumps=name in JUMPS)
    values = curve.value(points)
    bad: list[Line] = []
    undecided = 0
    for sign, lines in ((1, below), (-1, above)):
        slopes, offsets = (part.double() for part in lines)  # [4, n]
        at = torch.cat(
            [
                _nearest(curve, sign, (slopes, offsets), points, values),
                low.expand(1, 4, -1),
                up.expand(1, 4, -1),
            ]
        )
        infinite = offsets == -sign * torch.inf  # no line at all
        sure = _holds(WIDE[name], sign, slopes, offsets, at).all(0) | infinite
        open_lines = (~sure).nonzero().tolist()
        undecided += len(open_lines)
        for k, i in open_lines:
            if not _holds_exactly(name, sign, slopes[k, i], offsets[k, i], at[:, k, i]):
                bad.append(Line(float(low[i]), float(up[i]), sign * (k + 1)))
    return bad, undecided


def _places(low: Tensor, up: Tensor, *, jumps: bool) -> Tensor:
    """Places [samples, n] of intervals: evenly spread, where functions bend, around jumps."""
    share = torch.linspace(0, 1, _SAMPLES, dtype=torch.float64).unsqueeze(-1)
    even = low + share * (up - low)
    special = torch.tensor(sorted({*_PLACES}), dtype=torch.float64).unsqueeze(-1)
    places = [even, special.expand(-1, len(low))]
    if jumps:
        whole = torch.cat([even[::8].floor(), even[::8].floor() + 0.5])
        places += [whole, torch.nextafter(whole, whole - 1), torch.nextafter(whole, whole + 1)]
    return torch.minimum(torch.maximum(torch.cat(places), low), up)


def _nearest(
    curve: Activation, sign: int, lines: tuple[Tensor, Tensor], points: Tensor, values: Tensor
) -> Tensor:
    """Two places [2, 4, n]: where a line is nearest among the given ones, and further on."""
    slopes, offsets = lines

    def gap(z: Tensor, value: Tensor) -> Tensor:
        return (sign * (value - (slopes * z + offsets))).nan_to_num(torch.inf)

    # The offset is the same at all places of a line.
    gaps = torch.stack([gap(z, value) for z, value in zip(points, values, strict=True)])
    worst = points.gather(0, gaps.argmin(0))  # [4, n]
    low, up = points[0], points[_SAMPLES - 1]
    found, step = worst, (up - low) / (_SAMPLES - 1)
    for _ in range(_PARABOLAS):
        z = torch.stack(
            [torch.minimum(torch.maximum(found + k * step, low), up) for k in (-1, 0, 1)]
        )
        left, middle, right = gap(z, curve.value(z))
        bend = left - 2 * middle + right
        move = torch.where(bend > 0, 0.5 * (left - right) / bend, 0.0).nan_to_num(0.0).clamp(-1, 1)
        found = torch.minimum(torch.maximum(found + move * step, low), up)
        step = step / 16
    return torch.stack([worst, found])


def _holds(
    function: WideFunction, sign: int, slopes: Tensor, offsets: Tensor, at: Tensor
) -> Tensor:
    """Whether long double proves lines [4, n] at places [k, 4, n].

    A product with a power of 2 is exact, what the difference of two numbers loses is known (it is
    `lost`), and a difference of the wrong sign is none, however it is rounded.
    """
    slope, offset, z = (part.numpy().astype(np.longdouble) for part in (slopes, offsets, at))
    with np.errstate(all="ignore"):
        least, greatest = function.enclosure(z)
        value = least if sign > 0 else greatest
        product = slope * z
        spare = np.where(np.frexp(np.abs(slope))[0] % 0.5 == 0, 0, UNIT * np.abs(product) + TINY)
        distance = value - product
        taken = distance - value
        lost = (value - (distance - taken)) - (product + taken)
        holds = sign * (distance - offset) * (1 - UNIT) >= spare + np.abs(lost) * (1 + UNIT)
    return torch.from_numpy(holds & np.isfinite(product) & np.isfinite(distance))


def _holds_exactly(name: str, sign: int, slope: Tensor, offset: Tensor, at: Tensor) -> bool:
    """Whether a line holds at all places, in 60 digits."""
    if not (bool(slope.isfinite()) and bool(offset.isfinite())):
        return False
    p, q = mpf(float(slope)), mpf(float(offset))
    return all(sign * (EXACT[name](mpf(z)) - (p * mpf(z) + q)) >= 0 for z in set(at.tolist()))


def tightness(curve: Activation, lower: Tensor, upper: Tensor) -> Tensor:
    """The least gap [3, n] between the function and each line below, over the interval's width."""
    envelope = curve.envelope(lower, upper)
    share = torch.linspace(0, 1, 257, dtype=torch.float64).unsqueeze(-1)
    points = lower + share * (upper - lower)  # [samples, n]
    lines = envelope.low[:, 0].unsqueeze(0) * points.unsqueeze(1) + envelope.floor[:, 0].unsqueeze(
        0
    )  # [samples, 3, n]
    return (curve.value(points).unsqueeze(1) - lines).amin(0)
