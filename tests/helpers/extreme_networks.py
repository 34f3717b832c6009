"""Networks of all magnitudes that a precision has, and exact arithmetic on what is stored.

Numbers are read by their bits: a processor that flushes small numbers would not convert them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

import torch
from torch import Tensor

from fgp_vnn.domain.sets import Box
from fgp_vnn.network.model import AffineMap, Combination, Dense, Network

Exact = list[Fraction]
DTYPES = (torch.float32, torch.float64)
_LAYOUT = {torch.float32: (torch.int32, 23, 127), torch.float64: (torch.int64, 52, 1023)}


def exact(values: Tensor) -> Exact:
    """The entries of a tensor as rational numbers, flat."""
    kind, digits, offset = _LAYOUT[values.dtype]
    result = []
    for bits in values.detach().contiguous().reshape(-1).view(kind).tolist():
        size = bits & ((1 << (digits + (8 if digits == 23 else 11))) - 1)
        power, mantissa = size >> digits, size & ((1 << digits) - 1)
        assert power < 2 * offset + 1, "not finite"
        whole = mantissa | (1 << digits) if power else mantissa
        place = max(power, 1) - offset - digits
        whole = -whole if bits < 0 else whole
        result.append(Fraction(whole << place) if place > 0 else Fraction(whole, 1 << -place))
    return result


def matrix(values: Tensor) -> list[Exact]:
    flat, width = exact(values), values.shape[-1]
    return [flat[i : i + width] for i in range(0, len(flat), width)]


def dot(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    """The sum of products, over one denominator: Fraction would cancel after each step."""
    pairs = list(zip(first, second, strict=True))
    parts = [a.denominator * b.denominator for a, b in pairs]
    whole = lcm(*parts)
    sides = zip(pairs, parts, strict=True)
    return Fraction(sum(a.numerator * b.numerator * (whole // p) for (a, b), p in sides), whole)


def apply(affine: AffineMap, values: Sequence[Exact]) -> Exact:
    """A map as the real numbers have it; `values` are x, a_1, a_2, ..."""
    if isinstance(affine, Combination):
        inner = apply(affine.inner, values)
        rows = zip(matrix(affine.rows), exact(affine.offset), strict=True)
        return [dot(row, inner) + offset for row, offset in rows]
    assert isinstance(affine, Dense)
    total = exact(affine.bias)
    for source, weight in zip(affine.sources, affine.weights, strict=True):
        parts = [dot(row, values[source]) for row in matrix(weight)]
        total = [a + b for a, b in zip(total, parts, strict=True)]
    return total


def evaluate(network: Network, x: Exact) -> tuple[list[Exact], list[Exact]]:
    """z_1, ..., z_K, y and x, a_1, ..., a_K."""
    values, before = [x], []
    for affine in network.maps:
        before.append(apply(affine, values))
        values.append([max(z, Fraction(0)) for z in before[-1]])
    return before, values[:-1]


def random_extreme(
    seed: int, dtype: torch.dtype, *, residual: bool = False, spread: float = 1.0
) -> tuple[Network, Box]:
    """A network and a box: values do not overflow, and may underflow, as coefficients may.

    Layer k is scaled by 10^p_k, with p_1 + ... + p_k as it comes.
    """
    source = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=source, dtype=torch.float64) * 2 - 1

    def power(low: float, high: float) -> float:
        return low + (high - low) * float(uniform(1)[0] + 1) / 2

    top = 30.0 if dtype == torch.float32 else 290.0
    bottom = -60.0 if dtype == torch.float32 else -340.0
    widths, level = (2, 3, 2, 2), power(-3, 3)
    box_scale = 10.0**level
    maps: list[Dense] = []
    sizes = (2, *widths[:-1])
    for k, width in enumerate(widths):
        wanted = max(min(power(bottom, top), level + top), level - top)
        step, level = wanted - level, wanted
        sources = (0, k) if residual and k == 2 else (k,)
        weights = [uniform(width, sizes[s]) * 10.0 ** (step + spread * uniform(width, sizes[s]))
                   for s in sources[-1:]]  # fmt: skip
        if len(sources) > 1:
            weights.insert(0, uniform(width, 2) * 10.0**level / box_scale)
        bias = uniform(width) * 10.0**level * (uniform(width) > 0)
        maps.append(Dense(sources, tuple(w.to(dtype) for w in weights), bias.to(dtype)))
    center, radius = uniform(2), uniform(2).abs() * 10.0 ** (-3 * (seed % 3))
    lower = (box_scale * (center - radius)).to(dtype)
    upper = torch.maximum(lower, (box_scale * (center + radius)).to(dtype))
    return Network(tuple(maps[:-1]), maps[-1], 2), Box(lower, upper)


def corners(box: Box) -> list[Exact]:
    """The corners of a box of two inputs, and a point inside."""
    low, high = exact(box.lower), exact(box.upper)
    sides = list(zip(low, high, strict=True))
    inside = [a + (b - a) / 3 for a, b in sides]
    return [inside, *([x, y] for x in sides[0] for y in sides[1])]
