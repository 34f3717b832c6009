"""Bounds of the layers, and the lines around ReLUs that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor


class Lines(NamedTuple):
    """The lines around the ReLUs of one layer, each [batch or 1, rows or 1, n_k]."""

    low: Tensor  # slope of the line through the origin below
    chord: Tensor  # slope of the line above
    intercept: Tensor  # of the line above


@dataclass(frozen=True, eq=False)
class LayerBounds:
    """lower <= z_k <= upper for each ReLU layer, [batch or 1, n_k] each."""

    lower: tuple[Tensor, ...]
    upper: tuple[Tensor, ...]

    def within(self, pattern: Sequence[Tensor]) -> LayerBounds:
        """The bounds in a bundle: signs [batch, n_k] of -1 and +1 cut off one side."""
        pairs = list(zip(self.lower, self.upper, pattern, strict=True))
        lower = tuple(torch.where(sign > 0, low.clamp(min=0), low) for low, _, sign in pairs)
        upper = tuple(torch.where(sign < 0, up.clamp(max=0), up) for _, up, sign in pairs)
        return LayerBounds(lower, upper)

    def to(self, dtype: torch.dtype) -> LayerBounds:
        """Rounded to another precision: good for a search, not for a proof."""
        lower = tuple(bound.to(dtype) for bound in self.lower)
        return LayerBounds(lower, tuple(bound.to(dtype) for bound in self.upper))

    @classmethod
    def of_signs(cls, signs: Sequence[Tensor], dtype: torch.dtype) -> LayerBounds:
        """What signs [batch, n_k] of -1 and +1 say by themselves."""
        anything = [torch.full_like(sign, torch.inf, dtype=dtype) for sign in signs]
        return cls(tuple(-a for a in anything), tuple(anything)).within(signs)

    def unstable(self) -> tuple[Tensor, ...]:
        """Which neurons can have either sign, [batch or 1, n_k] per layer."""
        return tuple(_open(lo, up) for lo, up in zip(self.lower, self.upper, strict=True))

    def sizes(self) -> tuple[Tensor, ...]:
        """Bounds of |z_k|, and so of |a_k|."""
        pairs = zip(self.lower, self.upper, strict=True)
        return tuple(torch.maximum(-lo, up).clamp(min=0) for lo, up in pairs)

    def lines(self, alpha: Sequence[Tensor | None] | None = None) -> list[Lines]:
        """The lines of each layer; alpha gives lower slopes of the unstable neurons."""
        if alpha is None:
            return self._lines
        result = []
        for slope, mask, line in zip(alpha, self.unstable(), self._lines, strict=True):
            chosen = None if slope is None else torch.where(mask.unsqueeze(-2), slope, line.low)
            result.append(line if chosen is None else line._replace(low=chosen))
        return result

    @cached_property
    def _lines(self) -> list[Lines]:
        return [_relax(lo, up) for lo, up in zip(self.lower, self.upper, strict=True)]

    def followed_by(self, lower: Tensor, upper: Tensor) -> LayerBounds:
        """These bounds and those of one more layer."""
        result = LayerBounds((*self.lower, lower), (*self.upper, upper))
        result.__dict__["_lines"] = [*self._lines, _relax(lower, upper)]
        return result


def _open(lower: Tensor, upper: Tensor) -> Tensor:
    """Which signs are not known; a bound that is no number tells none."""
    return ~((lower >= 0) | (upper <= 0))


def _relax(lower: Tensor, upper: Tensor) -> Lines:
    """Lines with any chord s in [0, 1]: s z + t is above relu(z) at both ends, so in between."""
    lower, upper = lower.unsqueeze(-2), upper.unsqueeze(-2)  # [batch, 1, n_k]
    crossing = _open(lower, upper)
    on = (lower >= 0).to(lower.dtype)
    half = upper / 2  # so that the width does not overflow
    width = (half - lower / 2).clamp(min=torch.finfo(lower.dtype).tiny)
    chord = torch.where(crossing, half / width, on)
    ends = torch.maximum(-chord * lower, (1 - chord) * upper)
    intercept = torch.where(crossing, ends, torch.zeros_like(lower))
    slope = (upper > -lower).to(lower.dtype)
    return Lines(torch.where(crossing, slope, on), chord, intercept)
