"""Proved lines below and above sigmoids and hyperbolic tangents, and planes for products.

*Values.* No library function is trusted. exp(x) = 2^k exp(r) with r = x - k ln 2 and |r| < 0.35, by
Taylor's series up to r^18, whose remainder is below 1e-25. r is off by at most u = 2^-53: k times
the first 37 bits of ln 2 is exact, and two differences are rounded. Each step of Horner's rule
rounds three times, numbers below 1.5, and multiplies the previous error by 0.35: at most 8 u in
all. So exp has a relative error of at most 16 u, a sigmoid e / (1 + e) or 1 / (1 + e) is off by
64 u, and tanh(z) = 2 sigmoid(2 z) - 1 by 128 u = VALUE; the derivatives 1 - t^2 and s (1 - s) are
off by 512 u = SLOPE. Beyond |x| = 40 the function differs from its value at 40 by less than u.

*Lines below f with any slope s*, over [l, u]. Both functions are convex for z <= 0 and concave for
z >= 0. On the concave part, f(z) - s z has its minimum at an end. On the convex part [a, b] it is
at least f(t) - s t + min over the ends e of (f'(t) - s)(e - t) for any t, since a tangent lies
below. The smaller of the two holds on both parts. Lines above follow from f(z) = c - f(-z), c = 0
or 1.

*Planes p u + q v + c below and above u v.* For any p and q, u v - p u - q v is linear in each
variable, so its minimum and maximum over a box are at corners.

Sums of few terms are off by at most 16 u times their sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fgp_vnn.certificate.checker.forms import Array
from fgp_vnn.certificate.checker.rounding import SMALL, UNIT

VALUE, SLOPE, SUM = 128 * UNIT, 512 * UNIT, 16 * UNIT
PRODUCT = "Mul"

_LN2 = 0.6931471805599453  # rounded: only used to choose k
_LN2_HIGH = float.fromhex("0x1.62e42fefap-1")  # 37 bits
_LN2_LOW = float.fromhex("0x1.cf79abc9e3b3ap-40")  # the rest, to 2^-93
_POINTS = 9  # samples of a function from which slopes are chosen


class Planes(NamedTuple):
    """Lines or planes below (low, floor) and above (high, ceiling) the values of a layer: slopes
    [batch, operands * n], offsets [batch, n]."""

    low: Array
    floor: Array
    high: Array
    ceiling: Array

    def pull(self, coefficient: Array) -> tuple[Array, Array]:
        """Coefficients of z from coefficients of values [batch, rows, n], and the sum of offsets;
        positive coefficients take the line or plane below, negative ones the one above."""
        up, down = np.maximum(coefficient, 0), np.minimum(coefficient, 0)
        times = self.low.shape[-1] // self.floor.shape[-1]
        rise, fall = np.tile(up, times), np.tile(down, times)
        through = rise * self.low[:, None] + fall * self.high[:, None]
        offset = up @ self.floor[:, :, None] + down @ self.ceiling[:, :, None]
        return through, offset[..., 0]

    @property
    def size(self) -> Array:
        """The largest absolute offset, [batch, n]."""
        return np.maximum(np.abs(self.floor), np.abs(self.ceiling))


def values(kind: str, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Lower and upper bounds of a layer's values for lower <= z <= upper."""
    if kind == PRODUCT:
        none = np.zeros((1, lower.shape[-1]))
        return _corners(lower, upper, none, 1), -_corners(lower, upper, none, -1)
    least = {"Sigmoid": 0.0, "Tanh": -1.0}[kind]
    low, high = _function(kind, lower) - VALUE, _function(kind, upper) + VALUE
    return np.clip(low, least, 1.0), np.clip(high, least, 1.0)


def planes(kind: str, lower: Array, upper: Array, alpha: Array | None = None) -> Planes:
    """Lines or planes below and above a layer's values for lower <= z <= upper; alpha [batch, z] in
    [0, 1] chooses the slopes, the middle ones where it is NaN."""
    upper = np.maximum(lower, upper)  # lower > upper: an assumption that cannot be met
    share = np.full(lower.shape, 0.5) if alpha is None else np.where(np.isnan(alpha), 0.5, alpha)
    if kind == PRODUCT:
        u, v = np.split(np.arange(lower.shape[-1]), 2)
        share, other = share[:, u], np.concatenate([v, u])
        first, last = lower[:, other], upper[:, other]
        middle = first / 2 + last / 2
        both = np.tile(share, 2)
        low = _mixed((first, middle, last), both)
        ends = (lower[:, u], upper[:, u])
        turned = (np.hstack([last[:, u], ends[0]]), middle, np.hstack([first[:, u], ends[1]]))
        high = _mixed(turned, both)
        return Planes(low, _corners(lower, upper, low, 1), high, -_corners(lower, upper, high, -1))
    low = _mixed(_slopes(kind, lower, upper, 1), share)
    high = -_mixed(_slopes(kind, lower, upper, -1), share)
    shift = {"Sigmoid": 1.0, "Tanh": 0.0}[kind]
    floor = offset(kind, lower, upper, low)
    turned_floor = offset(kind, -upper, -lower, high)
    ceiling = shift - turned_floor + SUM * (shift + np.abs(turned_floor))
    return Planes(low, floor, high, ceiling)


def exp(x: Array) -> Array:
    """exp(x) for |x| <= 80, with a relative error of at most 16 * 2^-53."""
    k = np.rint(x / _LN2)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    total = np.ones_like(r)
    for n in range(18, 0, -1):
        total = 1 + total * r / n
    return np.ldexp(total, k.astype(np.int32))


def _function(kind: str, z: Array) -> Array:
    """f(z), off by at most VALUE."""
    x = np.clip(2 * z if kind == "Tanh" else z, -40.0, 40.0)
    e = exp(-np.abs(x))
    result: Array = np.where(x >= 0, 1.0, e) / (1 + e)
    return 2 * result - 1 if kind == "Tanh" else result


def _derivative(kind: str, z: Array) -> Array:
    """f'(z), off by at most SLOPE."""
    f = _function(kind, z)
    return 1 - f * f if kind == "Tanh" else f * (1 - f)


def offset(kind: str, lower: Array, upper: Array, slope: Array) -> Array:
    """Proved offset c with slope z + c <= f(z) over [lower, upper]."""
    ends = [_function(kind, e) - slope * e - _spare(slope * e) for e in (lower, upper)]
    concave = np.minimum(np.where(lower >= 0, ends[0], np.inf), ends[1])
    # The convex part ends at 0 at the latest, which is also an end of the concave part.
    start, end = np.minimum(lower, 0.0), np.minimum(upper, 0.0)
    t = np.clip(_touch(kind, slope), start, end)
    tilt, reach = _derivative(kind, t) - slope, end - start
    rise = np.minimum(tilt * (start - t), tilt * (end - t))
    spare = (SLOPE + SUM * (np.abs(tilt) + np.abs(slope))) * reach + _spare(slope * t)
    convex = _function(kind, t) - slope * t + rise - spare
    result = np.where(
        lower >= 0, concave, np.where(upper <= 0, convex, np.minimum(concave, convex))
    )
    return np.where(np.isfinite(result), result, -np.inf)


def _spare(term: Array) -> Array:
    """Upper bound on the error of a value of f plus a product."""
    return VALUE + SUM * (1 + np.abs(term)) + SMALL


def _touch(kind: str, slope: Array) -> Array:
    """Approximately the z <= 0 at which f has this slope; any number is sound."""
    steep = np.clip(slope, 1e-12, 1.0 if kind == "Tanh" else 0.25)
    if kind == "Tanh":
        return -np.arctanh(np.minimum(np.sqrt(1 - steep), 1 - 1e-15))
    low = (1 - np.sqrt(1 - 4 * steep)) / 2
    return np.log(low / (1 - low))


def _slopes(kind: str, lower: Array, upper: Array, sign: int) -> tuple[Array, Array, Array]:
    """Slopes of the lower convex hull of samples of sign * f: at the lower end, in the middle and
    at the upper end."""
    share = np.linspace(0, 1, _POINTS).reshape(-1, 1, 1)
    width = np.maximum(upper - lower, 1e-300)
    given = sign * _function(kind, lower + width * share)
    first = ((given[1:] - given[:1]) / share[1:]).min(0)
    last = ((given[-1:] - given[:-1]) / (1 - share[:-1])).max(0)
    half = _POINTS // 2
    left, right = given[:half, None], given[None, half + 1 :]
    before, after = share[:half, None], share[None, half + 1 :]
    chords = (right - left) / (after - before)
    heights = (left + chords * (0.5 - before)).reshape(-1, *lower.shape)
    chords = chords.reshape(heights.shape)
    middle = np.take_along_axis(chords, heights.argmin(0)[None], 0)[0]
    steep = np.clip(np.nan_to_num(np.stack([first, middle, last]) / width), -1.0, 1.0)
    return steep[0], steep[1], steep[2]


def _mixed(parts: tuple[Array, Array, Array], alpha: Array) -> Array:
    """Interpolation: the first part at alpha 0, the second at 1/2, the third at 1."""
    first, last = np.maximum(1 - 2 * alpha, 0), np.maximum(2 * alpha - 1, 0)
    return first * parts[0] + (1 - first - last) * parts[1] + last * parts[2]


def _corners(lower: Array, upper: Array, slope: Array, sign: int) -> Array:
    """Lower bounds [batch, n] of sign (u v - p u - q v) over boxes of (u, v) [batch, 2 n]."""
    (p, q), sides = np.split(slope, 2, -1), [np.split(side, 2, -1) for side in (lower, upper)]
    result = np.full((1, p.shape[-1]), np.inf)
    for u in (sides[0][0], sides[1][0]):
        for v in (sides[0][1], sides[1][1]):
            terms = u * v, -p * u, -q * v
            size = np.abs(terms[0]) + np.abs(terms[1]) + np.abs(terms[2])
            found = sign * (terms[0] + terms[1] + terms[2]) - SUM * size - SMALL
            result = np.minimum(result, found)
    return np.where(np.isfinite(result), result, -np.inf)
