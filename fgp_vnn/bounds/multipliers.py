"""Slopes and multipliers of linear bounds, per layer or concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Multipliers(NamedTuple):
    """Slopes of open neurons and multipliers of closed ones, [batch, rows, n_k] per layer."""

    alpha: tuple[Tensor, ...]  # in [0, 1]
    beta: tuple[Tensor, ...]  # nonnegative
    weights: Tensor | None = None  # [batch, m] nonnegative, if the weighted sum of rows is bounded

    def to(self, dtype: torch.dtype) -> Multipliers:
        """Copy in another precision; slopes stay in [0, 1], the others nonnegative."""
        return Multipliers(
            tuple(a.to(dtype) for a in self.alpha),
            tuple(b.to(dtype) for b in self.beta),
            None if self.weights is None else self.weights.to(dtype),
        )

    def storable(self) -> Multipliers:
        """Copy rounded to the precision of a certificate: slopes to 1/255, the others to
        float32."""
        return Multipliers(
            tuple((255 * a).round() / 255 for a in self.alpha),
            tuple(b.float().to(b.dtype) for b in self.beta),
            None if self.weights is None else self.weights.float().to(self.weights.dtype),
        )

    def mix(self, rows: Tensor) -> Tensor:
        """The weighted sum [batch, 1, outputs] of the rows [batch, m, outputs], or the rows
        themselves if there are no weights."""
        return rows if self.weights is None else self.weights.unsqueeze(-2) @ rows


class State(NamedTuple):
    """Slopes and multipliers of all layers below a target, concatenated."""

    alpha: Tensor  # [batch, rows, values]
    beta: Tensor  # [batch, rows, neurons]
    weights: Tensor | None  # [batch, m]

    def at(self, index: Tensor) -> State:
        """The state of the batch entries `index`."""
        weights = None if self.weights is None else self.weights[index]
        return State(self.alpha[index], self.beta[index], weights)

    def with_these(self, index: Tensor, some: State) -> State:
        """Copy with the batch entries `index` replaced by `some`."""
        alpha = self.alpha.index_copy(0, index, some.alpha)
        beta, weights = self.beta.index_copy(0, index, some.beta), self.weights
        if weights is not None and some.weights is not None:
            weights = weights.index_copy(0, index, some.weights)
        return State(alpha, beta, weights)


class Layout:
    """Positions of the layers in a concatenated `State`, so that a step takes a few operations
    however many layers there are."""

    def __init__(self, like: Multipliers, target: int) -> None:
        self._alpha, self._beta = like.alpha[:target], like.beta[:target]
        self._rest, self._weights = (like.alpha[target:], like.beta[target:]), like.weights
        self._widths = [[part.shape[-1] for part in side] for side in (self._alpha, self._beta)]

    @property
    def first(self) -> State:
        """The multipliers that the layout was made of, concatenated."""
        return State(_cat(self._alpha), _cat(self._beta), self._weights)

    def apart(self, state: State) -> Multipliers:
        """Split a state into one tensor per layer."""
        alpha, beta = (
            torch.split(part, widths, -1) if widths else ()
            for part, widths in zip((state.alpha, state.beta), self._widths, strict=True)
        )
        return Multipliers((*alpha, *self._rest[0]), (*beta, *self._rest[1]), state.weights)

    def of_values(self, parts: Sequence[Tensor | None]) -> Tensor:
        """Concatenate parts of each layer's values, with 0 in place of None."""
        return _cat([_or_zero(*pair) for pair in zip(parts, self._alpha, strict=True)])

    def of_neurons(self, parts: Sequence[Tensor | None]) -> Tensor:
        """Concatenate parts of each layer's neurons, with 0 in place of None."""
        return _cat([_or_zero(*pair) for pair in zip(parts, self._beta, strict=True)])

    def sizes(self, coefficients: dict[int, Tensor]) -> Tensor:
        """The mean absolute coefficient of each layer, repeated for each of its neurons."""
        found = {k: part.abs().mean(-1, keepdim=True) for k, part in coefficients.items()}
        return self.of_neurons(
            [
                found[k].expand(*found[k].shape[:-1], like.shape[-1]) if k in found else None
                for k, like in enumerate(self._beta, 1)
            ]
        )


def _cat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(parts), -1) if parts else torch.zeros(0)


def _or_zero(part: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if part is None else part
