"""Bounds of the layers, and the linear relaxations of the activations that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fgp_vnn.bounds.lines import Lines, middle, mixed
from fgp_vnn.network.activations.base import RELU, Activation, Envelope


@dataclass(frozen=True, eq=False)
class LayerBounds:
    """lower <= z_k <= upper for each layer, [batch or 1, n_k] each; all activations are ReLUs by
    default."""

    lower: tuple[Tensor, ...]
    upper: tuple[Tensor, ...]
    activations: tuple[Activation, ...] = ()

    def __post_init__(self) -> None:
        if not self.activations:
            object.__setattr__(self, "activations", (RELU,) * len(self.lower))
        if len(self.activations) != len(self.lower):
            raise ValueError("each layer has one activation")

    def within(
        self, pattern: Sequence[Tensor], ends: Sequence[Tensor] | None = None
    ) -> LayerBounds:
        """The bounds in a bundle. The signs [batch, n_k] -1 and +1 of ReLUs cut one side off at 0;
        finite `ends` [batch, 2, n_k] of smooth neurons cut off both sides."""
        lower, upper = list(self.lower), list(self.upper)
        for k, (activation, sign) in enumerate(zip(self.activations, pattern, strict=True)):
            if activation is RELU:
                lower[k] = torch.where(sign > 0, lower[k].clamp(min=0), lower[k])
                upper[k] = torch.where(sign < 0, upper[k].clamp(max=0), upper[k])
        result = self._with(lower, upper, lambda envelope: envelope)
        return result if ends is None else result._cut(ends)

    def _cut(self, ends: Sequence[Tensor]) -> LayerBounds:
        """The bounds in bundles that cut the intervals of smooth neurons to `ends`; recomputes the
        lines of the neurons with a finite end."""
        lower, upper, envelopes = list(self.lower), list(self.upper), list(self.envelopes)
        layers = [k for k, envelope in enumerate(envelopes) if envelope is not None]
        cut = [ends[k].isfinite().any(-2) for k in layers]  # [batch, n_k] each
        some = torch.stack([mask.any() for mask in cut]).tolist()
        for k, mask, found in zip(layers, cut, some, strict=True):
            if found:
                low, up = (ends[k][:, side].to(lower[k].dtype) for side in (0, 1))
                lower[k], upper[k] = torch.maximum(lower[k], low), torch.minimum(upper[k], up)
                envelopes[k] = _made_anew(
                    self.activations[k], envelopes[k], lower[k], upper[k], mask
                )
        result = replace(self, lower=tuple(lower), upper=tuple(upper))
        result.__dict__["envelopes"] = tuple(envelopes)
        return result

    def uncrossed(self) -> LayerBounds:
        """The same bounds; where lower > upper (an empty bundle), upper is raised to lower."""
        pairs = zip(self.lower, self.upper, strict=True)
        upper = [torch.maximum(low, up) for low, up in pairs]
        return self._with(self.lower, upper, lambda envelope: envelope)

    def to(self, dtype: torch.dtype) -> LayerBounds:
        """The bounds rounded to another precision, for a search only: they prove nothing."""
        lower, upper = ([bound.to(dtype) for bound in side] for side in (self.lower, self.upper))
        return self._with(
            lower, upper, lambda envelope: Envelope(*(part.to(dtype) for part in envelope))
        )

    def at(self, index: Tensor) -> LayerBounds:
        """The bounds of the bundles `index`."""
        lower, upper = ([_some(bound, index) for bound in s] for s in (self.lower, self.upper))
        result = self._with(lower, upper, lambda envelope: _envelope_at(envelope, index))
        if "_lines" in self.__dict__:
            result.__dict__["_lines"] = [line.at(index) for line in self._lines]
        return result

    def _with(
        self,
        lower: Sequence[Tensor],
        upper: Sequence[Tensor],
        change: Callable[[Envelope], Envelope],
    ) -> LayerBounds:
        """Copy with other bounds; each envelope of a smooth layer becomes `change(envelope)`."""
        result = replace(self, lower=tuple(lower), upper=tuple(upper))
        if any(activation is not RELU for activation in self.activations):
            envelopes = tuple(
                None if envelope is None else change(envelope) for envelope in self.envelopes
            )
            result.__dict__["envelopes"] = envelopes
        return result

    def with_layer(self, k: int, lower: Tensor, upper: Tensor) -> LayerBounds:
        """Copy with other bounds [batch or 1, n_k] of one layer."""
        lowers, uppers = list(self.lower), list(self.upper)
        lowers[k], uppers[k] = lower, upper
        return replace(self, lower=tuple(lowers), upper=tuple(uppers))

    def first(self, count: int) -> LayerBounds:
        """The bounds of the first `count` layers."""
        return LayerBounds(self.lower[:count], self.upper[:count], self.activations[:count])

    @classmethod
    def of_signs(
        cls,
        signs: Sequence[Tensor],
        dtype: torch.dtype,
        activations: tuple[Activation, ...] = (),
    ) -> LayerBounds:
        """The bounds implied by the signs [batch, n_k] -1 and +1 of ReLUs alone; all signs of
        smooth neurons are 0."""
        if not signs:
            return cls((), ())
        whole, widths = torch.cat(list(signs), -1), [sign.shape[-1] for sign in signs]
        endless = torch.full_like(whole, torch.inf, dtype=dtype)
        sides = (-endless).masked_fill(whole > 0, 0.0), endless.masked_fill(whole < 0, 0.0)
        lower, upper = (torch.split(side, widths, -1) for side in sides)
        return cls(lower, upper, activations)

    def unstable(self) -> tuple[Tensor, ...]:
        """Which neurons are not affine between their bounds, [batch or 1, n_k] per layer."""
        return self._unstable

    @cached_property
    def _unstable(self) -> tuple[Tensor, ...]:
        triples = zip(self.activations, self.lower, self.upper, strict=True)
        return tuple(unsteady(activation, lo, up) for activation, lo, up in triples)

    def signs(self, batch: int) -> Tensor:
        """+1 and -1 [batch, neurons] for ReLUs that are on and off between their bounds, else 0."""
        lower, upper = self.joined(batch)
        on, widths = lower >= 0, [bound.shape[-1] for bound in self.lower]
        signs = on.to(torch.int8) - ((upper <= 0) & ~on).to(torch.int8)
        for activation, part in zip(self.activations, torch.split(signs, widths, -1), strict=True):
            if activation is not RELU:
                part.zero_()
        return signs

    def most_unstable(self) -> list[int]:
        """For each layer, the largest number of unstable neurons in a bundle; one read from the
        device for all layers."""
        if any(activation is not RELU for activation in self.activations):
            counts = torch.stack([mask.sum(-1).amax() for mask in self.unstable()])
        else:
            widths, batch = [b.shape[-1] for b in self.lower], max(len(b) for b in self.lower)
            masks = torch.split(self.signs(batch) == 0, widths, -1)
            counts = torch.stack([mask.sum(-1) for mask in masks]).amax(-1)
        found: list[int] = counts.tolist()
        return found

    def joined(self, batch: int) -> tuple[Tensor, Tensor]:
        """The lower and the upper bounds [batch, neurons] of all layers side by side; there must be
        at least one layer."""
        sides = (self.lower, self.upper)
        lower, upper = (torch.cat([part.expand(batch, -1) for part in s], -1) for s in sides)
        return lower, upper

    def sizes(self, begin: int = 0) -> tuple[Tensor, ...]:
        """Upper bounds on |z_k|, from layer index `begin` on."""
        pairs = zip(self.lower[begin:], self.upper[begin:], strict=True)
        return tuple(torch.maximum(-lo, up).clamp(min=0) for lo, up in pairs)

    @cached_property
    def values(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """Lower and upper bounds of a_k for each layer."""
        return tuple(
            (lo.clamp(min=0), up.clamp(min=0))
            if envelope is None
            else (envelope.least, envelope.greatest)
            for lo, up, envelope in zip(self.lower, self.upper, self.envelopes, strict=True)
        )

    def lines(self, alpha: Sequence[Tensor | None] | None = None) -> list[Lines]:
        """The lines of each layer; `alpha` chooses the lines of the unstable neurons."""
        if alpha is None:
            return self._lines
        result = []
        for slope, mask, line, envelope in zip(
            alpha, self.unstable(), self._lines, self.envelopes, strict=True
        ):
            if slope is None:
                result.append(line)
            elif envelope is None:
                low = torch.where(mask.unsqueeze(-2), slope, line.low)
                result.append(line._replace(low=low))
            else:
                result.append(mixed(envelope, slope))
        return result

    @cached_property
    def envelopes(self) -> tuple[Envelope | None, ...]:
        """The lines that alpha can choose from, for each layer; None for ReLUs."""
        triples = zip(self.activations, self.lower, self.upper, strict=True)
        return tuple(None if f is RELU else f.envelope(lo, up) for f, lo, up in triples)

    @cached_property
    def _lines(self) -> list[Lines]:
        return [
            _relax(lo, up) if envelope is None else middle(envelope)
            for lo, up, envelope in zip(self.lower, self.upper, self.envelopes, strict=True)
        ]

    def followed_by(
        self, lower: Tensor, upper: Tensor, activation: Activation = RELU
    ) -> LayerBounds:
        """These bounds, followed by those of one more layer."""
        last = LayerBounds((lower,), (upper,), (activation,))
        result = LayerBounds(
            (*self.lower, lower), (*self.upper, upper), (*self.activations, activation)
        )
        result.__dict__["envelopes"] = (*self.envelopes, *last.envelopes)
        result.__dict__["values"] = (*self.values, *last.values)
        result.__dict__["_lines"] = [*self._lines, *last._lines]
        return result


def _some(bound: Tensor, index: Tensor) -> Tensor:
    """The bounds `index` of a batch [batch, n]; shared bounds [1, n] are expanded."""
    return bound[index] if len(bound) > 1 else bound.expand(len(index), -1)


def _envelope_at(envelope: Envelope, index: Tensor) -> Envelope:
    """The envelope of the bundles `index`; an envelope shared by all bundles stays as it is."""
    if len(envelope.least) == 1:
        return envelope
    low, floor, high, ceiling = (part[:, index] for part in envelope[:4])
    return Envelope(low, floor, high, ceiling, envelope.least[index], envelope.greatest[index])


def _made_anew(
    activation: Activation, envelope: Envelope | None, lower: Tensor, upper: Tensor, changed: Tensor
) -> Envelope:
    """The envelope with the lines of the neurons `changed` [batch, n] recomputed for the intervals
    lower, upper [batch, n]."""
    if envelope is None or activation.operands > 1:
        return activation.envelope(lower, upper)
    batch, at = len(changed), torch.nonzero(changed).unbind(-1)
    new = activation.envelope(lower[at].unsqueeze(0), upper[at].unsqueeze(0))
    lines = [part.expand(-1, batch, -1).clone() for part in envelope[:4]]
    sides = [part.expand(batch, -1).clone() for part in envelope[4:]]
    for part, found in zip(lines, new[:4], strict=True):
        part[:, at[0], at[1]] = found[:, 0]
    for part, found in zip(sides, new[4:], strict=True):
        part[at] = found[0]
    return Envelope(*lines, *sides)


def unsteady(activation: Activation, lower: Tensor, upper: Tensor) -> Tensor:
    """Which neurons are not affine between their bounds; for smooth functions, all but constant
    ones."""
    return _open(lower, upper) if activation is RELU else ~(lower >= upper)


def _open(lower: Tensor, upper: Tensor) -> Tensor:
    """Which neurons have an unknown sign; NaN bounds leave it unknown."""
    return ~((lower >= 0) | (upper <= 0))


def _relax(lower: Tensor, upper: Tensor) -> Lines:
    """The lines of ReLUs. Rounding of the chord's slope s is harmless: for any s in [0, 1] the
    line s z + t is above relu(z) at both ends of the interval, so also in between."""
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
