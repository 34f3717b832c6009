"""Second-order forms (quadratics with an error) propagated forward; they keep terms that cancel
later, which linear bounds lose.

Over a box with centre c and radii r, every value of a network is written as

    a = v + g . s + sum b_ij y_i y_j + sum m_ki h_k y_i + e,   |e| <= error,

where x = c + r y and s = (y, h) in [-1, 1]^(n + k). A symbol h_k is the scaled deviation of an
unstable ReLU from its line, so that values that depend on the same ReLU share its deviation. An
affine map is exact. A product of two forms is truncated after degree 2, and the truncated terms go
into the error. A function of one variable is expanded to second order if its second derivative is
known (see `bends`), or replaced by a line and an error, whichever has the smaller error.

*Rounding*, by the theorem in `base.rounding`: every monomial is at most 1 in absolute value, so an
error of a coefficient counts as it is, and the sum of the terms' sizes bounds all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, unit
from fgp_vnn.bounds.intervals import interval_map
from fgp_vnn.bounds.quadratics import Shape
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.base import Activation, Envelope
from fgp_vnn.network.activations.bends import Bend, bend_of
from fgp_vnn.network.activations.powers import SQUARE
from fgp_vnn.network.activations.product import Product
from fgp_vnn.network.model import AffineMap, Combination, Dense


@dataclass(frozen=True, eq=False)
class Forms:
    """The second-order forms of n values in each box."""

    flat: Tensor  # [boxes, 1 + s, n] the value v at the centre, then slopes g along y and symbols
    bend: Tensor | None  # [boxes, pairs + products, n] of y_i y_j for i <= j, then of h_k y_i
    error: Tensor  # [boxes, n]
    span: tuple[Tensor, Tensor] | None = None  # [boxes, n] interval bounds of the values, if wanted

    @cached_property
    def sizes(self) -> tuple[Tensor, Tensor, Tensor]:
        """|v|, |g|_1 and |b|_1 + |m|_1, [boxes, n] each."""
        value, slopes = self.flat[:, 0].abs(), self.flat[:, 1:].abs().sum(1)
        return value, slopes, value * 0 if self.bend is None else self.bend.abs().sum(1)

    @cached_property
    def size(self) -> Tensor:
        """|v| + |g|_1 + |b|_1 + |m|_1, [boxes, n]."""
        value, slopes, bends = self.sizes
        return value + slopes + bends


def of_input(box: Box, shape: Shape, *, spans: bool) -> Forms:
    """The forms of the inputs; with `spans` all forms computed from them carry intervals too."""
    count, inputs = box.lower.shape
    flat = box.lower.new_zeros(count, shape.flat, inputs)
    flat[:, 0] = box.center
    flat[:, 1 : 1 + inputs] = torch.diag_embed(reach(box))
    span = (box.lower, box.upper) if spans else None
    return Forms(flat, None, torch.zeros_like(box.lower), span)


def reach(box: Box) -> Tensor:
    """The radii r [boxes, inputs], rounded up."""
    size_of = unit(box.lower.dtype)
    return size_of.grow(2) * box.radius + size_of.underflow


def ranges(form: Forms, shape: Shape) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds [boxes, n] of the values that the forms describe."""
    size_of, (value, slopes, bends) = unit(form.flat.dtype), form.sizes
    spread = slopes + bends + form.error
    spread = spread + size_of.share(shape.columns + 8) * (spread + value) + 8 * size_of.underflow
    lower, upper = form.flat[:, 0] - spread, form.flat[:, 0] + spread
    if form.span is None:
        return lower, upper
    least, greatest = form.span
    return torch.maximum(below(lower), least), torch.minimum(above(upper), greatest)


def through_map(
    affine: AffineMap, read: Sequence[Forms], shape: Shape, bent: AffineMap | None = None
) -> Forms:
    """The forms of an affine map's results; `bent` is the map restricted to the results that may
    have quadratic terms (None: all)."""
    flat = affine.linear([form.flat for form in read])
    flat[:, 0] += affine.bias
    bends = {s: f.bend for s, f in zip(affine.sources, read, strict=True) if f.bend is not None}
    bend = _partly(bent or affine, bends) if bends else None
    # A matrix that is rounded itself acts on what the sources are, not on their forms alone.
    size_of, sizes = unit(flat.dtype), [form.size + form.error for form in read]
    # A map's spread may be computed as a difference, with the roundings of its bias in both parts.
    steps = 2 * affine.operations + shape.columns + 8
    error = size_of.grow(steps) * affine.spread([form.error for form in read])
    error = error + size_of.share(steps) * affine.magnitude(sizes)
    error = error + size_of.underflow * shape.columns * (affine.underflows(sizes).forward + 8)
    if affine.defect is not None:
        error = error + size_of.grow(4) * affine.defect
    spans = [form.span for form in read if form.span is not None]
    span = None
    if len(spans) == len(read):
        sizes = [torch.maximum(-low, high) for low, high in spans]
        span = interval_map(affine, spans, sizes)
    return Forms(flat, bend, error, span)


def _partly(affine: AffineMap, values: Mapping[int, Tensor]) -> Tensor:
    """The linear part of a map applied to some of its sources, with the others at 0."""
    if isinstance(affine, Combination):
        return _partly(affine.inner, values) @ affine.rows.T
    if not isinstance(affine, Dense):
        raise TypeError("forms are carried through matrices only")
    weights = dict(zip(affine.sources, affine.weights, strict=True))
    parts = [value @ weights[source].T for source, value in values.items()]
    return reduce(torch.add, parts)


def through_relu(z: Forms, sign: Tensor, slots: slice | None, shape: Shape) -> tuple[Forms, Tensor]:
    """The forms of relu(z) and the signs (0 if unstable); with `slots`, each ReLU gets a symbol.

    With any slope t in [0, 1], relu(z) - t z is between 0 and the larger of (1 - t) u and -t l.
    """
    size_of, (lower, upper) = unit(z.flat.dtype), ranges(z, shape)
    lower = torch.where(sign > 0, lower.clamp(min=0), lower)
    upper = torch.where(sign < 0, upper.clamp(max=0), upper)
    on, off = lower >= 0, (upper <= 0) & ~(lower >= 0)
    half = upper / 2  # so that the width does not overflow
    chord = (half / (half - lower / 2).clamp(min=size_of.tiny)).clamp(0, 1)
    slope = torch.where(on, 1.0, torch.where(off, 0.0, chord))
    height = torch.maximum((1 - chord) * upper, -chord * lower)
    height = size_of.grow(4) * height + 4 * size_of.underflow
    height = torch.where(on | off, 0.0, height / 2)  # the middle, and the radius around it
    flat = z.flat * slope.unsqueeze(1)
    flat[:, 0] += height
    bend = None if z.bend is None else z.bend * slope.unsqueeze(1)
    error = slope * z.error
    if slots is None:
        error = error + height
    else:
        flat[:, slots] = torch.diag_embed(height)
    total = slope * z.size + height
    spare = size_of.share(shape.columns + 8) * total + 8 * shape.columns * size_of.underflow
    error = torch.where(off, 0.0, torch.where(on, z.error, size_of.grow(8) * error + spare))
    span = None if z.span is None else (lower.clamp(min=0), upper.clamp(min=0))
    return Forms(flat, bend, error, span), on.to(torch.int8) - off.to(torch.int8)


def through(activation: Activation, z: Forms, shape: Shape) -> Forms:
    """The forms of a smooth activation's values."""
    if isinstance(activation, Product):
        made = times(_chosen(z, activation.left), _chosen(z, activation.right), shape)
    elif activation is SQUARE:
        made = times(z, z, shape)
    else:
        made = _of_curve(activation, z, shape)
    if z.span is None:
        return made
    return _or_span(made, activation.envelope(*ranges(z, shape)))


def quadratic(activation: Activation) -> bool:
    """Whether the activation, applied to affine forms, is exactly a second-order form."""
    return isinstance(activation, Product) or activation is SQUARE


def _or_span(form: Forms, envelope: Envelope) -> Forms:
    """The forms, replaced by the middle of the envelope's range where the range's radius is smaller
    than the form's error."""
    size_of, (least, greatest) = unit(form.flat.dtype), (envelope.least, envelope.greatest)
    middle, radius = least / 2 + greatest / 2, greatest / 2 - least / 2
    radius = radius.clamp(min=0) + size_of.share(4) * (least.abs() + greatest.abs())
    radius = radius + 8 * size_of.underflow
    keep = form.error <= radius
    flat = torch.where(keep.unsqueeze(1), form.flat, 0.0)
    flat[:, 0] = torch.where(keep, form.flat[:, 0], middle)
    bend = None if form.bend is None else torch.where(keep.unsqueeze(1), form.bend, 0.0)
    return Forms(flat, bend, torch.where(keep, form.error, radius), (least, greatest))


def _chosen(form: Forms, which: Tensor) -> Forms:
    bend = None if form.bend is None else form.bend[..., which]
    return Forms(form.flat[..., which], bend, form.error[..., which])


def times(u: Forms, v: Forms, shape: Shape) -> Forms:
    """The products of two forms."""
    inputs, (i, j) = shape.inputs, shape.pairs
    flat = u.flat[:, :1] * v.flat + v.flat[:, :1] * u.flat
    flat[:, 0] /= 2
    along, other = u.flat[:, 1 : 1 + inputs], v.flat[:, 1 : 1 + inputs]
    symbols, others = u.flat[:, 1 + inputs :], v.flat[:, 1 + inputs :]
    squares = (along[:, i] * other[:, j] + along[:, j] * other[:, i]) * shape.halves
    mixed = symbols.unsqueeze(2) * other.unsqueeze(1) + others.unsqueeze(2) * along.unsqueeze(1)
    bend = torch.cat([squares, mixed.flatten(1, 2)], 1)
    for form, factor in ((u, v), (v, u)):
        if form.bend is not None:
            bend = bend + form.bend * factor.flat[:, :1]
    (_, g, b), (_, h, d), first, second = u.sizes, v.sizes, u.size, v.size
    rest = symbols.abs().sum(1) * others.abs().sum(1) + g * d + b * h + b * d
    rest = rest + u.error * (second + v.error) + v.error * first
    size_of, steps = unit(flat.dtype), shape.columns + 16
    error = size_of.grow(steps) * rest + size_of.share(steps) * first * second
    return Forms(flat, bend, error + size_of.underflow * 8 * shape.columns * (1 + first + second))


def _of_curve(activation: Activation, z: Forms, shape: Shape) -> Forms:
    """The function's second-order expansion or its line, whichever has the smaller error."""
    line, bend = _by_line(activation, z, shape), bend_of(activation)
    return line if bend is None else _lesser(line, _expanded(bend, z, shape), shape)


def _by_line(activation: Activation, z: Forms, shape: Shape) -> Forms:
    """The form of a line with the slope of the middle line below the function; the error includes
    the distance between line and function."""
    lower, upper = ranges(z, shape)
    envelope, size_of = activation.envelope(lower, upper), unit(lower.dtype)
    slope, floor, tilt = envelope.low[1], envelope.floor[1], envelope.high[1] - envelope.low[1]
    top = torch.maximum(tilt * lower, tilt * upper) + envelope.ceiling[1]
    sizes = (envelope.high[1].abs() + slope.abs()) * torch.maximum(lower.abs(), upper.abs())
    sizes = sizes + floor.abs() + envelope.ceiling[1].abs()
    flat = z.flat * slope.unsqueeze(1)
    flat[:, 0] += floor / 2 + top / 2
    bend = None if z.bend is None else z.bend * slope.unsqueeze(1)
    total = slope.abs() * z.size + sizes
    error = size_of.grow(8) * (slope.abs() * z.error + (top / 2 - floor / 2).clamp(min=0))
    error = error + size_of.share(shape.columns + 16) * total
    return Forms(flat, bend, error + size_of.underflow * 8 * shape.columns * (1 + slope.abs()))


def _expanded(bend: Bend, z: Forms, shape: Shape) -> Forms:
    """The Taylor expansion f(c) + f'(c) (z - c) + f''(t) (z - c)^2 / 2 around the centre c of each
    form, for some t between c and z."""
    center, (lower, upper) = z.flat[:, 0], ranges(z, shape)
    size_of, envelope = unit(center.dtype), bend.of.envelope(center, center)
    slope = bend.of.derivative(center)
    low, high = bend.range(torch.minimum(lower, center), torch.maximum(upper, center))
    half, spread = low / 4 + high / 4, high / 4 - low / 4  # middle and radius of f'' / 2
    around = Forms(torch.cat([torch.zeros_like(z.flat[:, :1]), z.flat[:, 1:]], 1), z.bend, z.error)
    square = times(around, around, shape)
    flat = z.flat * slope.unsqueeze(1)
    flat[:, 0] = envelope.least / 2 + envelope.greatest / 2
    bends = _bends(square, shape) * half.unsqueeze(1)
    if z.bend is not None:
        bends = bends + z.bend * slope.unsqueeze(1)
    reach = around.size + z.error
    off = (envelope.greatest / 2 - envelope.least / 2).clamp(min=0) + slope.abs() * z.error
    off = off + half.abs() * square.error + spread.clamp(min=0) * reach * reach
    off = off + 16 * size_of.eps * bend.slope_size(center) * reach
    steps, sizes = shape.columns + 16, (low.abs() + high.abs()) * reach * reach
    total = envelope.least.abs() + envelope.greatest.abs() + slope.abs() * around.size + sizes
    error = size_of.grow(steps) * off + size_of.share(steps) * total
    largest = 1 + slope.abs() + half.abs() + reach * (1 + reach)
    return Forms(flat, bends, error + size_of.underflow * 16 * shape.columns * largest)


def _lesser(line: Forms, curve: Forms, shape: Shape) -> Forms:
    """For each value, the one of its two forms that has the smaller error."""
    better = (curve.error < line.error).unsqueeze(1)
    flat = torch.where(better, curve.flat, line.flat)
    bend = torch.where(better, _bends(curve, shape), _bends(line, shape))
    return Forms(flat, bend, torch.where(better.squeeze(1), curve.error, line.error))


def _bends(form: Forms, shape: Shape) -> Tensor:
    if form.bend is not None:
        return form.bend
    count, _, width = form.flat.shape
    return form.flat.new_zeros(count, shape.columns - shape.flat, width)
