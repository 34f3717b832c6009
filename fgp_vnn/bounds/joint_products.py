"""Joint relaxation loss of all products of a layer, for networks with few inputs.

The McCormick planes of a product u v are off by up to r s, for radii r and s of its factors around
the middles q and p. With linear forms u = q + U y + e and v = p + V y + f over a box, y in
[-1, 1]^n, the sum of all products in a row is

    sum A (u - q)(v - p) = y' Q y + sum A (e (v - p) + f U y),    Q = sum A U' V,

and much cancels in Q: if a controller is stable, Q is negative in all directions, and then the
planes above lose only the terms with e and f. For any decomposition Q = sum_k d_k w_k w_k' + E, the
form y' Q y is at least the sum of d_k |w_k|_1^2 over the negative d_k, minus the sum of |E_ij|. Any
d and w are sound, so the output of an eigenvalue routine needs no proof.

*Rounding*, by the theorem in `base.rounding`: each bound below is a sum of terms whose sizes are
added up beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import below, unit
from fgp_vnn.bounds.backward import Backward, backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.quadratics import decomposed
from fgp_vnn.bounds.rounding import Rounding
from fgp_vnn.domain.sets import Box
from fgp_vnn.network.activations.product import Product, middle
from fgp_vnn.network.model import Network

_WORTH = 1e-4  # a row is treated only if its products lose more than this fraction of its bound


class _Lines(NamedTuple):
    """z_j = middle + U_j y + e_j with |e_j| <= error, for y in [-1, 1]^n, in each box."""

    slope: Tensor  # [boxes, m, n]
    error: Tensor  # [boxes, m]
    reach: Tensor  # [boxes, m] upper bound on |U_j y|
    radius: Tensor  # [boxes, m] upper bound on |z_j - middle|


def regain(
    network: Network, box: Box, bounds: LayerBounds, passed: Backward, rounding: Rounding
) -> tuple[Backward, Backward]:
    """The backward pass with its bounds raised, because products lose less together than one by
    one; and, for choosing a split, a copy whose coefficients of products are scaled down in
    proportion to their loss."""
    if not any(isinstance(activation, Product) for activation in network.activations):
        return passed, passed
    total, seen = torch.zeros_like(passed.least), dict(passed.coefficients)
    for k, activation in enumerate(network.activations):
        coefficient = passed.coefficients.get(k + 1)
        if coefficient is None or not isinstance(activation, Product):
            continue
        coefficient = coefficient.expand(len(total), -1, -1)
        used = torch.where(_parallel(activation, bounds, k), coefficient, 0.0)
        lost, spare = _lost(bounds, k, used)
        rows = torch.nonzero((lost > _WORTH * passed.least.abs()).any(0)).flatten()
        if not len(rows):
            continue
        lines = _operands(network, box, bounds, k, rounding)
        kept = _kept(activation, lines, used[:, rows])
        gain = lost[:, rows] - spare[:, rows] - kept
        gain = torch.where((gain > 0) & (gain < torch.inf), gain, 0.0)
        total = total.index_add(1, rows, gain)
        left = (1 - gain / lost[:, rows].clamp(min=1e-30)).clamp(0, 1).unsqueeze(-1)
        seen[k + 1] = coefficient.index_copy(1, rows, coefficient[:, rows] * left)
    # Roundings of the three sums below, and of the difference of two of them that callers take.
    sizes = passed.constant.abs() + passed.nominal.abs() + passed.least.abs()
    total = total - unit(total.dtype).share(8) * (sizes + total)
    total = torch.where((total > 0) & (total < torch.inf), total, 0.0)
    better = passed._replace(
        constant=passed.constant + total,
        least=passed.least + total,
        nominal=passed.nominal + total,
    )
    return better, better._replace(coefficients=seen)


def _parallel(activation: Product, bounds: LayerBounds, k: int) -> Tensor:
    """Which products [boxes, 1, n] have planes, below and above, with the slopes of the tangent
    plane at the middle."""
    envelope, centre = bounds.envelopes[k], _centre(bounds, k)
    if envelope is None:
        raise AssertionError("products have planes")
    wanted = torch.cat([centre[:, activation.right], centre[:, activation.left]], -1)
    same = (envelope.low[1] == wanted) & (envelope.high[1] == wanted)
    return same.view(len(same), 2, -1).all(-2).unsqueeze(-2)


def _centre(bounds: LayerBounds, k: int) -> Tensor:
    lower, upper = bounds.lower[k], bounds.upper[k]
    return middle(lower, torch.maximum(lower, upper), lower.dtype)


def _lost(bounds: LayerBounds, k: int, coefficient: Tensor) -> tuple[Tensor, Tensor]:
    """The sum [boxes, rows] of A (-p q - c) over the planes p u + q v + c that a backward pass
    used, and its rounding error."""
    envelope = bounds.envelopes[k]
    if envelope is None:
        raise AssertionError("products have planes")
    first, second = envelope.low[1].chunk(2, -1)
    corner = (first * second).unsqueeze(-2)
    offset = torch.where(
        coefficient > 0, envelope.floor[1].unsqueeze(-2), envelope.ceiling[1].unsqueeze(-2)
    )
    offset = torch.where(coefficient == 0, 0.0, offset)
    size_of, count = unit(coefficient.dtype), coefficient.shape[-1]
    lost = (coefficient * (-corner - offset)).sum(-1)
    sizes = (coefficient.abs() * (corner.abs() + offset.abs())).sum(-1)
    spare = size_of.underflow * (8 * count + coefficient.abs().sum(-1))
    return lost, size_of.share(count + 8) * sizes + spare


def _operands(
    network: Network, box: Box, bounds: LayerBounds, k: int, rounding: Rounding
) -> _Lines:
    """Linear forms of the neurons of a layer, halfway between their lower and upper linear bounds
    from a backward pass."""
    width, dtype = network.widths[k], box.lower.dtype
    eye = torch.eye(width, dtype=dtype, device=box.lower.device)
    rows = torch.cat([eye, -eye]).unsqueeze(0)
    passed = backward(network, box, k, rows, bounds.lines(), rounding=rounding)
    count, size_of = len(box.lower), unit(dtype)
    weight, constant, least, nominal = (p.expand(count, *p.shape[1:]) for p in passed[:4])
    (low, high), (under, over) = weight.chunk(2, 1), constant.chunk(2, 1)
    slope = (low - high) / 2  # the rows of the second half are those of -z
    centre = _centre(bounds, k)
    sides = []
    for part, value, off, sign in zip(
        (low, high), (under, over), (nominal - least).chunk(2, 1), (1, -1), strict=True
    ):
        apart = box.support(part - sign * slope)
        sides.append(apart - (value - sign * centre) + off)
    scaled = slope * box.radius.unsqueeze(-2)
    reach = scaled.abs().sum(-1)
    sizes = box.support(low) + box.support(high) + under.abs() + over.abs() + centre.abs() + reach
    steps, inputs = box.lower.shape[-1] + 16, box.lower.shape[-1]
    spare = size_of.share(steps) * (sizes + nominal.abs().amax(-1, keepdim=True))
    lost = size_of.underflow * (8 * inputs + 16 + box.radius.sum(-1, keepdim=True))
    error = torch.maximum(*sides).clamp(min=0) + spare + lost
    radius = torch.maximum(bounds.upper[k] - centre, centre - bounds.lower[k]).clamp(min=0)
    radius = radius + size_of.share(4) * (radius + centre.abs()) + lost
    return _Lines(scaled, error, size_of.grow(steps) * reach + lost, radius.expand_as(error))


def _kept(activation: Product, lines: _Lines, coefficient: Tensor) -> Tensor:
    """Upper bound on the loss of all products together, [boxes, rows]."""
    left, right = activation.left, activation.right
    size_of, (count, inputs) = unit(coefficient.dtype), (len(left), lines.slope.shape[-1])
    u, v = lines.slope[:, left], lines.slope[:, right]  # [boxes, t, n]
    weighed = coefficient.unsqueeze(-1) * u.unsqueeze(1)  # [boxes, rows, t, n]
    form = weighed.transpose(-1, -2) @ v.unsqueeze(1)
    form = form / 2 + form.transpose(-1, -2) / 2
    e, f, s, t = (lines.error[:, left], lines.error[:, right], lines.reach, lines.radius)
    first = e * t[:, right] + f * s[:, left]
    second = f * t[:, left] + e * s[:, right]
    size, both = coefficient.abs(), s[:, left] * s[:, right]
    rest = torch.minimum(first, second).unsqueeze(-2)
    grow, share = size_of.grow(count + inputs + 16), size_of.share(count + 16)
    kept = grow * (size * (rest + share * both.unsqueeze(-2))).sum(-1)
    sizes = 1 + size.sum(-1) + s.sum(-1, keepdim=True)
    lost = size_of.underflow * (8 * count * inputs * inputs) * sizes
    return grow * (kept - _least(form)) + lost


def _least(form: Tensor) -> Tensor:
    """Lower bound of y' Q y over [-1, 1]^n for each symmetric Q [..., n, n]; at most 0."""
    size_of, count = unit(form.dtype), form.shape[-1]
    values, vectors, off, _ = decomposed(form)
    spread = vectors.abs().sum(-2).square()  # |w_k|_1^2
    loss = (values.clamp(max=0).abs() * spread).sum(-1) + off
    loss = size_of.grow(count * count + 8) * loss + size_of.underflow * 8 * count * count
    return below(-loss)
