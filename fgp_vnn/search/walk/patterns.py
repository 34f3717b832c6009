"""The patterns of a query's regions: packed sign bits of the neurons that can flip."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import positive
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.query import Query
from fgp_vnn.search.walk import seen_regions


class Neighbours(NamedTuple):
    """The neighbours of a batch of regions, some of them more than once."""

    parent: Tensor  # [neighbours] the region of the batch that it is next to
    neuron: Tensor  # [neighbours] the neuron that flips
    words: Tensor  # [neighbours, words] packed patterns


class Patterns:
    """Packs and unpacks patterns; stable neurons have the sign that the bounds give them."""

    def __init__(self, query: Query, bounds: LayerBounds) -> None:
        network, domain = query.network, query.domain
        center = network.preactivations(domain.center.unsqueeze(0))[:-1]
        none = torch.zeros(1, 0, dtype=torch.bool, device=network.device)
        base = torch.cat([none, *(z >= 0 for z in center)], -1)[0]
        # NaN as a bound does not make a neuron stable.
        surely_on = torch.cat([none, *(positive(lo, or_zero=True) for lo in bounds.lower)], -1)[0]
        surely_off = torch.cat([none, *(positive(-up, or_zero=True) for up in bounds.upper)], -1)
        crossing = ~(surely_on | surely_off[0])
        self._neurons: Tensor | None = None  # [unstable] positions; None if all may flip
        if not bool(crossing.all()):
            # The sign of a stable neuron comes from its bounds: the value at the centre is rounded.
            base = torch.where(crossing, base, surely_on)
            self._neurons = torch.nonzero(crossing).flatten()
        free = base if self._neurons is None else base[self._neurons]
        self.start = seen_regions.pack(free.unsqueeze(0))  # [1, words] the centre's region
        self._base = base.to(network.dtype).unsqueeze(1)  # [neurons, 1]
        self._flips = seen_regions.flip_words(len(free), network.device)  # [unstable, words]

    def unpack(self, words: Tensor) -> Tensor:
        """Packed patterns [regions, words] as numbers 0 and 1, [neurons, regions]."""
        bits = seen_regions.unpack(words, len(self._flips)).T.to(self._base.dtype)
        if self._neurons is None:
            return bits.contiguous()
        full = self._base.expand(-1, len(words)).clone()
        full[self._neurons] = bits
        return full

    def free(self, crossed: Tensor) -> Tensor:
        """The crossed neurons [neurons, regions] that may flip, as [regions, unstable]."""
        return (crossed if self._neurons is None else crossed[self._neurons]).T

    def neighbours(self, words: Tensor, parent: Tensor, place: Tensor) -> Neighbours:
        """The neighbours [neighbours] of regions, each across one neuron that may flip."""
        flipped = words[parent] ^ self._flips[place]
        neuron = place if self._neurons is None else self._neurons[place]
        return Neighbours(parent, neuron, flipped)
