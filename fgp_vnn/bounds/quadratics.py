"""Lower bounds of quadratic forms v + g . s + sum b_ij y_i y_j + sum m_ki h_k y_i with s = (y, h),
for y and symbols h in [-1, 1].

A symbol's factor t = g_k + m_k . y lies between l = g_k - |m_k|_1 and u = g_k + |m_k|_1, and

    h t >= -|t| >= -alpha t - max((1 - alpha) u, -(1 + alpha) l, 0)

for any alpha in [-1, 1]. This eliminates the symbols, and without loss if t keeps its sign. With
B = P + N + E, P positive semidefinite, N negative semidefinite, and with d_i = sum_j |N_ij|, the
matrix P + N + diag(d) is positive semidefinite too, so its form is above its tangent at any q:

    y' B y >= 2 q' (B + diag(d)) y - q' (B + diag(d)) q - sum_i d_i - 4 sum |E_ij|.

So P, N and q, from an eigenvalue routine and a gradient descent, need no proof.

*Rounding*, by the theorem in `base.rounding`: each bound is a sum of terms whose sizes are added up
beside it.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import below, unit


class Shape:
    """The order of a form's columns: 1, y_i, h_k, then y_i y_j for i <= j, then h_k y_i."""

    def __init__(self, inputs: int, symbols: int, device: torch.device) -> None:
        self.inputs, self.symbols = inputs, symbols
        self.flat = 1 + inputs + symbols
        first, second = torch.triu_indices(inputs, inputs, device=device)
        self.pairs = first, second
        self.columns = self.flat + len(first) + symbols * inputs
        self._device = device

    @cached_property
    def halves(self) -> Tensor:
        """Factors [pairs, 1]: 1/2 for y_i^2, 1 for y_i y_j."""
        first, second = self.pairs
        return torch.where(first == second, 0.5, 1.0).double().unsqueeze(-1)

    @cached_property
    def _places(self) -> tuple[Tensor, Tensor]:
        """For each entry of the matrix [n, n], its column among the pairs and the factor 1 or
        1/2."""
        first, second = self.pairs
        count = self.inputs
        places = torch.zeros(count, count, dtype=torch.long, device=self._device)
        numbers = torch.arange(len(first), device=self._device)
        places[first, second] = places[second, first] = numbers
        parts = torch.full((count, count), 0.5, dtype=torch.float64, device=self._device)
        return places, parts.fill_diagonal_(1.0)

    def matrix(self, bend: Tensor) -> Tensor:
        """The matrix B [..., n, n] of the columns [..., pairs + products]."""
        places, parts = self._places
        return bend[..., places] * parts

    def mixed(self, bend: Tensor) -> Tensor:
        """The coefficients m [..., symbols, n] of the columns [..., pairs + products]."""
        rest = bend[..., len(self.pairs[0]) :]
        return rest.reshape(*rest.shape[:-1], self.symbols, self.inputs)


class Curved(NamedTuple):
    """v + w . y + y' B y - error, without symbols."""

    value: Tensor  # [...]
    slope: Tensor  # [..., n]
    matrix: Tensor  # [..., n, n]
    error: Tensor  # [...]
    lost: Tensor  # [..., symbols] upper bound on the loss by eliminating each symbol


class FormBounds(NamedTuple):
    """Lower bounds of forms."""

    bound: Tensor  # [...] proved, for y in [-1, 1]^n
    level: Tensor  # [...] w . y + level, the tangent at 0, is a lower bound as well
    point: Tensor  # [..., n] an approximate minimiser y
    sag: Tensor  # [..., n] d, the loss by each input


def without_symbols(flat: Tensor, bend: Tensor, error: Tensor, shape: Shape) -> Curved:
    """Lower bounds of the forms, with the symbols eliminated."""
    value, slope, symbols = torch.split(flat, [1, shape.inputs, shape.symbols], -1)
    size_of, mixed = unit(flat.dtype), shape.mixed(bend)
    reach = mixed.abs().sum(-1)
    alpha = (symbols / reach).nan_to_num(0.0).clamp(-1, 1)
    top = (1 - alpha) * (symbols + reach).clamp(min=0)
    lost = alpha * symbols + torch.maximum(top, (1 + alpha) * (reach - symbols).clamp(min=0))
    size = flat.abs().sum(-1) + reach.sum(-1)
    share = 4 * size_of.share(shape.columns + 16)
    error = size_of.grow(4) * error + share * size + size_of.underflow * 16 * shape.columns
    slope = slope - (alpha.unsqueeze(-2) @ mixed).squeeze(-2)
    return Curved(value.squeeze(-1) - lost.sum(-1), slope, shape.matrix(bend), error, lost)


def straight(flat: Tensor, error: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """Slopes w and proved levels v such that w . y + v is a lower bound of forms without quadratic
    terms."""
    value, slope, symbols = torch.split(flat, [1, shape.inputs, shape.symbols], -1)
    size_of, size = unit(flat.dtype), flat.abs().sum(-1)
    level = value.squeeze(-1) - symbols.abs().sum(-1) - error
    spare = size_of.share(shape.flat + 8) * (size + error) + 8 * shape.flat * size_of.underflow
    return slope, below(level - spare)


def bottom(slope: Tensor, level: Tensor) -> Tensor:
    """Proved lower bound of w . y + v, for y in [-1, 1]^n."""
    size_of, reach = unit(slope.dtype), slope.abs().sum(-1)
    spare = size_of.share(slope.shape[-1] + 8) * (reach + level.abs()) + 8 * size_of.underflow
    return below(level - reach - spare)


def least(form: Curved, rounds: int, start: Tensor | None = None) -> FormBounds:
    """Lower bounds of forms, by the tangent at the best point of `rounds` gradient steps."""
    size_of, count = unit(form.value.dtype), form.slope.shape[-1]
    sag, gap = _split(form.matrix)
    convex = form.matrix + torch.diag_embed(sag)
    point = _descend(convex, form.slope, rounds, start)
    pulled = _apply(convex, point)
    slope, bent = form.slope + 2 * pulled, (point * pulled).sum(-1)
    reach, sizes = slope.abs().sum(-1), convex.abs().sum(-1).sum(-1)
    dropped = sag.sum(-1) + gap
    total = form.value.abs() + form.slope.abs().sum(-1) + 4 * sizes + dropped + form.error
    spare = size_of.share(4 * count + 16) * total + size_of.underflow * 32 * count * count
    level = below(form.value - dropped - form.error - spare)
    return FormBounds(below(level - bent - reach), level, point, sag)


def _split(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """d [..., n] and an upper bound [...] on 4 sum |E_ij|, NaN if the matrix is not finite."""
    size_of, count = unit(matrix.dtype), matrix.shape[-1]
    values, vectors, off, spare = decomposed(matrix)
    down = (vectors * values.clamp(max=0).unsqueeze(-2)) @ vectors.mT
    sag = size_of.grow(count + 8) * (down.abs() + spare).sum(-1)
    return sag, size_of.grow(count * count + 8) * 4 * off


def decomposed(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Eigenvalues [..., n] and eigenvectors [..., n, n] of symmetric matrices, the sum [...] of the
    entries' absolute errors, NaN if a matrix is not finite, and the part [..., n, n] of an entry's
    error that rounding may add."""
    size_of, count = unit(matrix.dtype), matrix.shape[-1]
    fine = matrix.isfinite().all(-1).all(-1)
    matrix = torch.where(fine[..., None, None], matrix, 0.0)
    values, vectors = torch.linalg.eigh(matrix)
    made = (vectors * values.unsqueeze(-2)) @ vectors.mT
    sizes = (vectors.abs() * values.abs().unsqueeze(-2)) @ vectors.mT.abs() + matrix.abs()
    spare = size_of.share(count + 8) * sizes + size_of.underflow * 8 * count
    off = ((matrix - made).abs() + spare).sum(-1).sum(-1)
    return values, vectors, torch.where(fine, off, torch.nan), spare


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _descend(matrix: Tensor, slope: Tensor, rounds: int, start: Tensor | None) -> Tensor:
    """The point [..., n] with the best bound among the iterates of Nesterov's accelerated gradient
    method, for a convex form."""
    steep = 2 * matrix.abs().sum(-1).amax(-1, keepdim=True) + 1e-300
    before = torch.zeros_like(slope) if start is None else start
    here, best, chosen, pace = before, torch.full_like(slope[..., :1], -torch.inf), before, 1.0
    for _ in range(rounds):
        pulled = _apply(matrix, here)
        gradient = slope + 2 * pulled
        bound = -(here * pulled + gradient.abs()).sum(-1, keepdim=True)
        better = bound > best
        best, chosen = torch.where(better, bound, best), torch.where(better, here, chosen)
        after = (here - gradient / steep).clamp(-1, 1)
        next_pace = (1 + (1 + 4 * pace * pace) ** 0.5) / 2
        here = (after + (pace - 1) / next_pace * (after - before)).clamp(-1, 1)
        before, pace = after, next_pace
    return chosen
