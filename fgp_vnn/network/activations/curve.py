"""Functions of one variable, in pieces that are convex or concave: lines that are proved.

Let f be convex on [a, b], and s any slope. For every t in [a, b], f(z) >= f(t) + f'(t) (z - t), so
that f(z) - s z is at least the lesser of f(t) - s t + (f'(t) - s) (e - t) at the two ends e: a
valid offset of a line below with slope s, whatever t is, and the best one where f'(t) = s. If f is
concave, f(z) - s z is least at an end. The least over all pieces holds for the whole interval. The
lines above f are those below -f, mirrored. So slopes need no proof, and are read off a few values
of f; only offsets are proved.

*Rounding.* Offsets are computed in float64. exp, expm1, log, log1p, tanh, erf, sin, cos and atan
are taken to be within 4 units in the last place: the libraries that torch calls document at most
1 (SLEEF's u10 functions, MKL's VML in its high accuracy mode) or 2 (glibc, CUDA). A unit is at most
eps = 2^-52 of the result. Each piece says how many eps its computed value and derivative may be
off, and of which size: counts are derived beside each formula, from 4 for each of these functions,
1/2 for each operation (we count 1), and how far an argument that is off moves the result. What an
offset adds up in at most 8 operations is off by 8 eps of the sizes of its terms, and by underflow.

An inflection point that is no float64 is known up to `blur`. In between curvature may have the
wrong sign, which moves f - s z by at most (|f'| + |s|) times the blur, twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, rounded_down, unit
from fgp_vnn.network.activations.base import Activation, Fan, or_flat

EPS, LOST = unit(torch.float64).eps, unit(torch.float64).lost
_BISECTIONS = 16  # for the point of a convex piece with a given slope
_POINTS = 9  # at which a function is looked at to choose slopes

Function = Callable[[Tensor], Tensor]


def one(z: Tensor) -> Tensor:
    """1, as the size of an error."""
    return torch.ones_like(z)


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a function, on a closed interval, with one formula and one curvature.

    `size` and `slope_size` times `count` eps bound the errors of `value` and `slope`.
    """

    curvature: float | Tensor  # at least 0: convex; below 0: concave; linear ones are both
    value: Function
    slope: Function
    count: float  # of eps
    size: Function = one
    slope_size: Function = one
    start: float | Tensor = -inf
    end: float | Tensor = inf
    blur: float | Tensor = 0.0  # how far start and end may be off
    touch: Function | None = None  # the place with a given slope, roughly; clamped to the piece


def relative(
    curvature: float,
    value: Function,
    slope: Function,
    count: float = 8,
    ends: tuple[float, float] = (-inf, inf),
    touch: Function | None = None,
) -> Piece:
    """A piece whose errors are relative to its values and slopes."""
    sizes = (lambda z: value(z).abs(), lambda z: slope(z).abs())
    return Piece(curvature, value, slope, count, *sizes, *ends, touch=touch)


@dataclass(frozen=True, eq=False)
class Curve(Activation):
    """A function with finitely many pieces, or with those that an interval meets."""

    name: str
    function: Function  # in any precision
    derivative: Function  # for attacks: a straight-through one where it is flat
    pieces: Sequence[Piece] | Callable[[Tensor, Tensor], Sequence[Piece]]
    range: tuple[float, float] = (-inf, inf)  # of all its values
    domain: tuple[float, float] = (-inf, inf)  # outside of which it has no bounds
    reads: float = -inf  # its argument is known to be at least this, whatever its bounds say
    key: tuple[object, ...] = ()  # its parameters, to tell two curves of one name apart

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Curve) and (self.name, self.key) == (other.name, other.key)

    def __hash__(self) -> int:
        return hash((self.name, self.key))

    def value(self, z: Tensor) -> Tensor:
        return self.function(z)

    def pull(self, z: Tensor, rows: Tensor) -> Tensor:
        return rows * self.derivative(z)

    def push(self, z: Tensor, moves: Tensor) -> Tensor:
        return moves * self.derivative(z)

    def fan(self, lower: Tensor, upper: Tensor) -> Fan:
        dtype = lower.dtype
        lower, upper = (end.double().clamp(min=self.reads) for end in (lower, upper))
        upper = torch.maximum(lower, upper)  # an empty bundle
        sides = []
        for sign in (1, -1):
            slopes = self._slopes(lower, upper, sign).to(dtype)
            # The last line is flat: its offset is the least value.
            flat = torch.cat([slopes, torch.zeros_like(slopes[:1])])
            offsets = self.offset(lower, upper, flat.double(), sign)
            offsets[-1].clamp_(min=self.range[0] if sign > 0 else -self.range[1])
            offsets = rounded_down(offsets, dtype)
            sides.append((sign * slopes, sign * offsets[:-1], sign * offsets[-1]))
        (low, floor, least), (high, ceiling, greatest) = sides
        return or_flat(Fan(low, floor, high, ceiling, below(least), above(greatest)))

    def offset(self, lower: Tensor, upper: Tensor, slope: Tensor, sign: int = 1) -> Tensor:
        """Proved c with slope z + c <= sign f(z) over [lower, upper], for each slope [k, ...]."""
        pieces = self.pieces(lower, upper) if callable(self.pieces) else self.pieces
        result = torch.full_like(slope, inf)
        for piece in pieces:
            start, end = (torch.as_tensor(p).to(lower) for p in (piece.start, piece.end))
            a, b = torch.maximum(lower, start), torch.minimum(upper, end)
            found = torch.minimum(result, _least(piece, a, b, slope, sign))
            result = torch.where(a <= b, found, result)
        inside = (lower >= self.domain[0]) & (upper <= self.domain[1])
        return torch.where(inside, below(result), -inf)

    def _slopes(self, lower: Tensor, upper: Tensor, sign: int) -> Tensor:
        """Slopes [3, ...] of the convex hull of a few values: at its ends and in the middle."""
        share = torch.linspace(0, 1, _POINTS, dtype=torch.float64, device=lower.device)
        share = share.reshape(-1, *(1 for _ in lower.shape))
        # No width overflows, and that of a point is no 0.
        width = (upper / 2 - lower / 2).clamp(min=1e-300, max=1e300)
        values = sign * self.function(lower + 2 * width * share)
        from_start = ((values[1:] - values[:1]) / share[1:]).amin(0)
        to_end = ((values[-1:] - values[:-1]) / (1 - share[:-1])).amax(0)
        left, right = values[: _POINTS // 2].unsqueeze(1), values[_POINTS // 2 + 1 :].unsqueeze(0)
        before, after = share[: _POINTS // 2].unsqueeze(1), share[_POINTS // 2 + 1 :].unsqueeze(0)
        chords = ((right - left) / (after - before)).flatten(0, 1)
        heights = (left + chords.view(len(left), -1, *lower.shape) * (0.5 - before)).flatten(0, 1)
        middle = chords.gather(0, heights.argmin(0, keepdim=True)).squeeze(0)
        slopes = torch.stack([from_start, middle, to_end]) / (2 * width)
        steep = 1e100  # so that nothing that slopes are multiplied by overflows
        return slopes.nan_to_num(0.0, 0.0, 0.0).clamp(-steep, steep)


def _least(piece: Piece, a: Tensor, b: Tensor, slope: Tensor, sign: int) -> Tensor:
    """A lower bound of sign f(z) - slope z over [a, b], within one piece."""
    curvature = torch.as_tensor(sign * piece.curvature).to(a)
    ends = [_at_end(piece, e, slope, sign) for e in (a, b)]
    concave = torch.minimum(*ends)
    if bool((curvature < 0).all()) or bool((torch.as_tensor(piece.curvature) == 0).all()):
        found = concave
    else:
        found = torch.where(curvature < 0, concave, _by_tangent(piece, a, b, slope, sign))
    blur = torch.as_tensor(piece.blur).to(a)
    steep = torch.maximum(piece.slope(a).abs(), piece.slope(b).abs()) + 2
    return torch.where(blur > 0, found - 4 * blur * (steep + slope.abs()), found)


def _at_end(piece: Piece, end: Tensor, slope: Tensor, sign: int) -> Tensor:
    value = piece.value(end)
    terms = value.abs() + (slope * end).abs()
    error = EPS * (piece.count * piece.size(end) + 8 * terms) + LOST * (8 + end.abs())
    return sign * value - slope * end - error


def _by_tangent(piece: Piece, a: Tensor, b: Tensor, slope: Tensor, sign: int) -> Tensor:
    """The lesser end of the tangent at the place where f has that slope, or near it."""
    low, high = a.expand_as(slope), b.expand_as(slope)
    if piece.touch is not None:
        t = torch.minimum(torch.maximum(piece.touch(sign * slope).nan_to_num(0.0), low), high)
    else:
        for _ in range(_BISECTIONS):
            t = low / 2 + high / 2
            left = sign * piece.slope(t) < slope
            low, high = torch.where(left, t, low), torch.where(left, high, t)
        t = torch.minimum(torch.maximum(low / 2 + high / 2, a), b)
    value, tilt = piece.value(t), sign * piece.slope(t)
    reach = torch.maximum(t - a, b - t)
    lesser = torch.minimum((tilt - slope) * (a - t), (tilt - slope) * (b - t))
    terms = value.abs() + (slope * t).abs() + (tilt.abs() + slope.abs()) * reach
    error = piece.count * (piece.size(t) + piece.slope_size(t) * reach) + 8 * terms
    small = LOST * (8 + t.abs() + 2 * reach)
    return sign * value - slope * t + lesser - EPS * error - small
