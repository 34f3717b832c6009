"""Quadratic forms x' M x of one variable as sums of squares, where they are convex or concave.

Bounding each product of x' M x over a box is loose on both sides; a convex function loses nothing
below, where each square has its tangents. With S = (M + M')/2 and the Cholesky factor L of S or -S,

    x' M x = (sum_k (L_k x)^2 + x' E x) times 1 or -1.

This is exact: the entries of L are rounded to so few digits that the entries of E are float64
numbers, which is checked in rational arithmetic. E is so small that it hardly counts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
_DIGITS = 22  # bits of the entries of L: products of two and their sums are float64 numbers
_MOST = 64  # variables: the check takes cubic time


class Squares(NamedTuple):
    """x' M x = sign (sum_k (factor_k x)^2 + x' rest x)."""

    sign: int
    factor: Doubles  # [n, n]
    rest: Doubles  # [n, n], small


def squares_of(matrix: Doubles) -> Squares | None:
    """A form as sum of squares; None if neither convex nor concave, or not exact in float64."""
    size = len(matrix)
    if matrix.shape != (size, size) or size > _MOST or not np.isfinite(matrix).all():
        return None
    sign = 1 if np.trace(matrix) > 0 else -1
    try:
        factor = np.linalg.cholesky(sign * (matrix / 2 + matrix.T / 2)).T
    except np.linalg.LinAlgError:
        return None
    unit = 2.0 ** (np.floor(np.log2(np.abs(factor).max())) - _DIGITS)
    factor = np.round(factor / unit) * unit
    rest = _rest(sign * matrix, factor)
    return None if rest is None else Squares(sign, factor, rest)


def _rest(matrix: Doubles, factor: Doubles) -> Doubles | None:
    """(M + M')/2 - L' L, if its entries are float64 numbers."""
    rows = [[Fraction(entry) for entry in row] for row in matrix.tolist()]
    columns = [[Fraction(entry) for entry in column] for column in factor.T.tolist()]
    result = np.zeros_like(matrix)
    for i, first in enumerate(columns):
        for j, second in enumerate(columns):
            product = sum((a * b for a, b in zip(first, second, strict=True)), Fraction(0))
            exact = (rows[i][j] + rows[j][i]) / 2 - product
            result[i, j] = float(exact)
            if Fraction(result[i, j]) != exact:
                return None
    return result
