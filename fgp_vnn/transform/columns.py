"""Linear bounds and removal of stable neurons in one forward pass, for networks of any shape with
few moving inputs (inputs that the domain does not fix).

As for a chain of matrices (`transform.chains`), every neuron is written as an affine form of the
moving inputs and of the unstable neurons before it, and back substitution of these neurons gives
the same linear bounds as a backward pass through the whole network. A map is applied to the forms
of all its sources at once, one column for each input and each unstable neuron. Where there are
fewer columns than neurons that intervals leave unstable, this costs less than a backward pass with
one row for each such neuron.

Rounding errors grow with the product of the |W|, as in an interval; a bound is never worse than
the interval of the layer, and networks too deep for that are left to backward passes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.budget.budget import Budget
from fgp_vnn.budget.capacity import cached_parts
from fgp_vnn.domain.sets import Box, Domain
from fgp_vnn.network.model import AffineMap, Dense
from fgp_vnn.query import Query
from fgp_vnn.strategy import Shrinking
from fgp_vnn.transform.chain_forms import BoundedForms, ChainForms
from fgp_vnn.transform.chains import Condensed

_COPIES = 4  # copies of a layer's forms held at once: for two layers, and for their bounds


class _Source(NamedTuple):
    """A source of a map (the input or a layer): the forms of all its entries, 0 for those off.

    Only `columns` are stored. The columns of the source's own unstable entries follow, each with a
    single 1 at its entry; all columns after these are 0.
    """

    columns: Tensor  # [columns, n]
    unstable: Tensor  # [m] entries
    error: Tensor  # [n]
    size: Tensor  # [n]

    def cut(self, some: slice) -> Tensor:
        """A slice of all columns, stored or not: [some, n]."""
        part = self.columns[some]
        if len(part) == some.stop - some.start:
            return part
        rest = part.new_zeros(some.stop - some.start - len(part), part.shape[1])
        first = max(0, some.start - len(self.columns))
        own = self.unstable[first : first + len(rest)]
        rest[torch.arange(len(own), device=own.device), own] = 1
        return torch.cat([part, rest]) if len(part) else rest


@dataclass(frozen=True, eq=False)
class Columns:
    """The result of one forward pass: the condensed query, or only bounds of the first layers."""

    condensed: Condensed | None
    known: LayerBounds  # of all neurons of the layers that were bounded


def moving(domain: Domain) -> Tensor:
    """The inputs [moving] that the domain does not fix."""
    if isinstance(domain, Box):
        return torch.nonzero(domain.upper > domain.lower).flatten()
    return torch.arange(len(domain.center), device=domain.center.device)


def condense_columns(query: Query, budget: Budget, shrinking: Shrinking) -> Columns:
    """Bound all layers and remove the stable neurons, as far as time and memory allow."""
    network = query.network
    work = _Work(query, budget, shrinking)
    lower: list[Tensor] = []
    upper: list[Tensor] = []
    for layer in network.layers:
        if budget.expired() or not work.fits(layer):
            break
        forms = work.through(layer)
        if forms is None:
            break
        low, high = work.layer_of(forms)
        lower.append(low.unsqueeze(0))
        upper.append(high.unsqueeze(0))
    known = LayerBounds(tuple(lower), tuple(upper))
    done = len(lower) == len(network.layers) and not budget.expired()
    output = work.through(network.output) if done and work.fits(network.output) else None
    if output is None:
        return Columns(None, known)
    return Columns(Condensed.of(query, work, output), known)


class _Work(ChainForms):
    """The columns found so far, and the forms of each layer that later maps read."""

    def __init__(self, query: Query, budget: Budget, shrinking: Shrinking) -> None:
        self.moving = moving(query.domain)
        self.whole = query.domain
        domain = query.domain
        if isinstance(domain, Box):
            domain = Box(domain.lower[self.moving], domain.upper[self.moving])
        super().__init__(domain, query.network.dtype, budget, shrinking, deep=False)
        last = len(query.network.maps) - 1
        self._last_read = {s: k for k in range(last + 1) for s in query.network.maps[k].sources}
        self._maps = 0  # how many maps have been applied
        self._read: list[_Source | None] = [self._input()]

    def _input(self) -> _Source:
        """The forms of the input: a column for each moving input, and one for the centre."""
        center = self.whole.center
        columns = center.new_zeros(self.inputs + 1, len(center))
        columns[torch.arange(self.inputs, device=center.device), self.moving] = 1
        columns[self.inputs] = center
        size = center.abs()
        size[self.moving] += self.sizes[: self.inputs]
        return _Source(columns, self.moving[:0], torch.zeros_like(size), size)

    def fits(self, affine: AffineMap) -> bool:
        """Whether the forms of a map fit into the memory."""
        entries = affine.outputs * len(self.sizes)
        return _COPIES * 8 * entries <= self.budget.at_once

    def through(self, affine: AffineMap) -> BoundedForms | None:
        """The forms of a map, from those of its sources; None if time is up."""
        read = [source for s in affine.sources if (source := self._read[s]) is not None]
        columns = len(self.sizes)
        widest = max(affine.outputs, *(source.columns.shape[1] for source in read))
        pushed = affine.bias.new_empty(columns, affine.outputs)
        for some in cached_parts(columns, widest, self.how.pushed, pushed.device):
            if self.budget.expired():
                return None
            pushed[some] = affine.linear([source.cut(some) for source in read])
        pushed[self.inputs] += affine.bias
        sizes = [source.size for source in read]
        offset = affine.magnitude([torch.zeros_like(size) for size in sizes])
        size = affine.magnitude(sizes)
        # A spread is computed as a difference, so it may be off by the roundings of the offset.
        carried = affine.spread([source.error for source in read])
        carried = carried + self.unit.share(4 * affine.operations + 8) * offset
        if affine.defect is not None:
            carried = carried + affine.defect
        most = torch.stack([size.amax() for size in sizes]).amax().clamp(min=1)
        small = (affine.underflows(sizes).forward + 4 + most) * (1 + self.sizes.sum())
        error = self.unit.grow(affine.operations + 8) * carried
        lost = 2 * self.unit.underflow * small
        error = error + self.unit.share(affine.operations + 8) * size + lost
        self._forget()
        return BoundedForms(pushed.T, error, size)

    def _forget(self) -> None:
        """Drop the forms that no later map reads."""
        self._maps += 1
        for s in range(len(self._read)):
            if self._last_read.get(s, -1) < self._maps:
                self._read[s] = None

    def layer_of(self, forms: BoundedForms) -> tuple[Tensor, Tensor]:
        """Bounds [n] of a layer; its unstable neurons become columns, those off become 0."""
        lower, upper = self.bound(forms)
        on, crossing, slack = self.sort(lower, upper)
        error = self.unit.grow(2) * (forms.error + slack)
        passes = torch.zeros_like(lower)
        passes[on] = 1
        size = passes * (self.terms(forms.rows) + error)
        if len(crossing):
            self.add_group(forms._replace(error=error).at(crossing), crossing, lower, upper)
            size[crossing] = upper[crossing]
        self.seen += len(lower)
        if len(self._read) in self._last_read:
            columns = forms.rows.T.mul_(passes)  # in place: they are not read again
            self._read.append(_Source(columns, crossing, error * passes, size))
        else:
            self._read.append(None)
        return lower, upper

    def dense(self, forms: BoundedForms) -> Dense:
        """The forms as a map of the condensed network, which reads the whole input."""
        small = super().dense(forms)
        weight = small.weights[0].new_zeros(small.outputs, len(self.whole.center))
        weight[:, self.moving] = small.weights[0]
        return replace(small, weights=(weight, *small.weights[1:]))
