"""Proved lower and upper lines of functions of one variable with convex and concave pieces.

Let f be convex on [a, b], and s any slope. For every t in [a, b], f(z) >= f(t) + f'(t) (z - t), so
f(z) - s z is at least the smaller value of f(t) - s t + (f'(t) - s) (e - t) at the two ends e. This
is a valid offset of a lower line with slope s for any t, and the best one if f'(t) = s. If f is
concave, f(z) - s z has its minimum at an end. The minimum over all pieces holds for the whole
interval. The upper lines of f are the lower lines of -f, negated. So slopes need no proof, and are
estimated from a few values of f; only offsets are proved.

*Rounding.* Offsets are computed in float64. exp, expm1, log, log1p, tanh, erf, sin, cos and atan
are assumed to be within 4 units in the last place: the libraries that torch calls document at most
1 (SLEEF's u10 functions, MKL's VML in its high accuracy mode) or 2 (glibc, CUDA). A unit is at most
eps = 2^-52 of the result. "n of y" means an error of at most n eps |y|. Each piece states the
errors of its computed value and derivative in this form. The counts n are derived beside each
formula: 4 for each of these functions, 1/2 for each operation (counted as 1), and the effect of an
argument's error on the result. An offset takes at most 8 operations: its error is 8 of the sizes of
its terms, plus underflow.

An inflection point that is not a float64 is known up to `blur`. Within the blur, the curvature may
have the wrong sign, which changes f - s z by at most (|f'| + |s|) times the blur, twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, rounded_down, unit
from fgp_vnn.network.activations.base import Activation, Envelope, or_flat

EPS, UNDERFLOW = unit(torch.float64).eps, unit(torch.float64).underflow
_BISECTIONS = 16  # to find the point of a convex piece with a given slope
_POINTS = 9  # samples of a function, to choose slopes

Function = Callable[[Tensor], Tensor]


def one(z: Tensor) -> Tensor:
    """1 for each entry: the size of an absolute error."""
    return torch.ones_like(z)


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a function, on a closed interval, with one formula and one curvature.

    `size` and `slope_size` times `count` eps bound the errors of `value` and `slope`.
    """

    curvature: float | Tensor  # > 0: convex; < 0: concave; 0: linear, which is both
    value: Function
    slope: Function
    count: float  # of eps
    size: Function = one
    slope_size: Function = one
    start: float | Tensor = -inf
    end: float | Tensor = inf
    blur: float | Tensor = 0.0  # how far start and end may be off
    touch: Function | None = None  # approximate point with a given slope; clamped to the piece


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
    """A function given by its pieces, or by a function that returns the pieces of intervals."""

    name: str
    function: Function  # in any precision
    derivative: Function  # for attacks; a straight-through estimate where the function is flat
    pieces: Sequence[Piece] | Callable[[Tensor, Tensor], Sequence[Piece]]
    range: tuple[float, float] = (-inf, inf)  # of all its values
    domain: tuple[float, float] = (-inf, inf)  # outside of which it has no bounds
    reads: float = -inf  # known lower bound on the argument, whatever its computed bounds are
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

    def envelope(self, lower: Tensor, upper: Tensor) -> Envelope:
        dtype = lower.dtype
        lower, upper = (end.double().clamp(min=self.reads) for end in (lower, upper))
        upper = torch.maximum(lower, upper)  # lower > upper in an empty bundle
        sides = []
        for sign in (1, -1):
            slopes = self._slopes(lower, upper, sign).to(dtype)
            # The last line is flat: its offset is a lower bound of the values.
            flat = torch.cat([slopes, torch.zeros_like(slopes[:1])])
            offsets = self.offset(lower, upper, flat.double(), sign)
            offsets[-1].clamp_(min=self.range[0] if sign > 0 else -self.range[1])
            offsets = rounded_down(offsets, dtype)
            sides.append((sign * slopes, sign * offsets[:-1], sign * offsets[-1]))
        (low, floor, least), (high, ceiling, greatest) = sides
        return or_flat(Envelope(low, floor, high, ceiling, below(least), above(greatest)))

    def offset(self, lower: Tensor, upper: Tensor, slope: Tensor, sign: int = 1) -> Tensor:
        """Offset c, proved: slope z + c <= sign f(z) over [lower, upper], per slope [k, ...]."""
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
        """Slopes [3, ...] of the convex hull below sampled values: at its ends and middle."""
        share = torch.linspace(0, 1, _POINTS, dtype=torch.float64, device=lower.device)
        share = share.reshape(-1, *(1 for _ in lower.shape))
        # The width does not overflow, and is positive even for a single point.
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
        steep = 1e100  # products with slopes up to this size do not overflow
        return slopes.nan_to_num(0.0, 0.0, 0.0).clamp(-steep, steep)


def of_piece(
    name: str,
    piece: Piece,
    range: tuple[float, float] = (-inf, inf),
    domain: tuple[float, float] = (-inf, inf),
    key: tuple[object, ...] = (),
) -> Curve:
    """The curve of a single piece; the other arguments are fields of `Curve`."""
    return Curve(name, piece.value, piece.slope, (piece,), range, domain, key=key)


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
    error = EPS * (piece.count * piece.size(end) + 8 * terms) + UNDERFLOW * (8 + end.abs())
    return sign * value - slope * end - error


def _by_tangent(piece: Piece, a: Tensor, b: Tensor, slope: Tensor, sign: int) -> Tensor:
    """The same bound on a convex piece, from the tangent at a point with roughly this slope."""
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
    small = UNDERFLOW * (8 + t.abs() + 2 * reach)
    return sign * value - slope * t + lesser - EPS * error - small
