"""Rounding errors of a backward pass, by the theorem in `base.rounding`."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.bounds.lines import dot as dot
from fgp_vnn.bounds.lines import highest, steepest
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.activations.base import Envelope
from fgp_vnn.network.model import Charge, Network

if TYPE_CHECKING:
    from fgp_vnn.bounds.layers import LayerBounds


# Takes a vector [batch or 1, n] over the neurons of a layer and returns the weights of the rows'
# entries: [batch or 1, 1, n] for rows over all neurons, or the part in each window for patches.
Window = Callable[[Tensor], Tensor]


def _wide(vectors: Tensor) -> Tensor:
    """Reshape [n] or [batch, n] to [batch or 1, 1, n]."""
    return vectors.reshape(-1, 1, vectors.shape[-1])


class Rounding:
    """Upper bounds on the rounding error of a backward pass.

    After each step the computed coefficients count as exact, and the effect of their errors on the
    bound is charged at once: a coefficient of a_k or z_k that is off by e moves the bound by at
    most e |a_k| or e |z_k|, and the layer bounds limit these. So an error made at one layer never
    grows with depth.
    """

    def __init__(
        self,
        network: Network,
        domain: Domain,
        bounds: LayerBounds,
        before: Rounding | None = None,
    ) -> None:
        """`before` is a `Rounding` for the bounds of fewer layers, whose results are reused."""
        self._unit = unit(network.dtype)
        self.domain = domain
        if bounds.activations != network.activations[: len(bounds.activations)]:
            raise AssertionError("bounds of other activations")
        self._activations, self._envelopes = bounds.activations, bounds.envelopes
        lost = self._unit.underflow
        if before is None:
            box = domain.box()
            size = box.sizes
            self._arrive = [size.reshape(-1, size.shape[-1]) + lost]
            self._sizes = [self._arrive[0]]  # upper bounds on |source| for the maps' sources
        else:
            self._arrive, self._sizes = [*before._arrive], [*before._sizes]
        for size in bounds.sizes(len(self._arrive) - 1):
            self._arrive.append(size.reshape(-1, size.shape[-1]) + lost)
            envelope = self._envelopes[len(self._sizes) - 1]
            if envelope is not None:
                size = torch.maximum(envelope.least.abs(), envelope.greatest.abs()) + lost
            self._sizes.append(self._arrive[-1] if envelope is None else size)
        self._through: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # of envelopes, made on demand
        self._input: tuple[Tensor, Tensor] | None = None if before is None else before._input
        self._charges: list[Charge] = [] if before is None else [*before._charges]
        # Of ReLU layers by their numbers, made on demand.
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}
        if before is not None:
            self._layers |= before._layers
        self._charge(network)

    def _charge(self, network: Network) -> None:
        """Compute the charges of the maps whose sources are bounded."""
        read_by = [0] * len(network.maps)  # how many maps read each source
        for source in (s for affine in network.maps for s in affine.sources):
            read_by[source] += 1
        for index, affine in enumerate(network.maps):
            if index < len(self._charges):
                continue
            if any(source >= len(self._sizes) for source in affine.sources):
                break
            # A coefficient is later added to those of other maps, and a map's contribution to the
            # constant passes through two sums for each layer below it and four at the input.
            merged = max(read_by[s] for s in affine.sources)
            steps = affine.operations + affine.outputs + max(merged, 2 * index + 4)
            read = [self._sizes[s] for s in affine.sources]
            self._charges.append(affine.charge(read, self._unit.share(steps)))

    def over(self, domain: Domain) -> Rounding:
        """Copy for a domain inside the same box with bounds no wider than these. The sizes of the
        whole domain stay valid upper bounds there."""
        result = copy(self)
        result.domain = domain
        return result

    def of_map(self, index: int, rows: Tensor) -> Tensor:
        """Error of pulling rows [batch, rows, outputs] back through map number `index`."""
        terms, floor = self._charges[index]
        return dot(rows.abs(), _wide(terms)) + floor

    def of_neurons(self, index: int, neurons: Tensor) -> Tensor:
        """Error of the rows of single neurons [batch, m] of map number `index`."""
        terms, floor = self._charges[index]
        return terms.expand(len(neurons), -1).gather(-1, neurons) + floor

    def of_layer(
        self,
        layer: int,
        coefficient: Tensor,
        multiplier: Tensor | None = None,
        window: Window = _wide,
        onto: Tensor | None = None,
    ) -> Tensor:
        """Error of passing through the activations of a layer and the map below it, for given
        coefficients of its values and multipliers of its neurons; plus `onto` [batch or 1, rows] if
        given.

        The slopes of ReLUs are at most 1, so a coefficient does not grow: it has three roundings,
        weighted by |z|. Intercepts are at most |z| as well; each takes three operations, and their
        product with the coefficients has 2 n operations. The charge has room for what all of these
        lose to underflow and for terms that are weighted again.
        """
        size, envelope = coefficient.abs(), self._envelopes[layer - 1]
        if envelope is not None:
            error = self._of_envelope(layer, size, multiplier, envelope)
            return error if onto is None else onto + error
        size = size if multiplier is None else size + multiplier.abs()
        terms, floor = self._of_relus(layer)
        return dot(size, window(terms), onto) + floor

    def _of_relus(self, layer: int) -> tuple[Tensor, Tensor]:
        """Error of a ReLU layer and its map: terms [batch or 1, n], to be weighted by the
        coefficients, and a floor to be added."""
        if layer not in self._layers:
            lost, sizes = self._unit.underflow, self._arrive[layer]
            width = sizes.shape[-1]  # at least a window's
            share = self._unit.share(width + 2 * layer + 8)
            terms, floor = self._charges[layer - 1]
            terms = torch.add(terms, sizes, alpha=share + lost)
            self._layers[layer] = terms, torch.add(floor, _sum(sizes), alpha=6 * lost)
        return self._layers[layer]

    def _of_envelope(
        self, layer: int, size: Tensor, multiplier: Tensor | None, envelope: Envelope
    ) -> Tensor:
        """Error of a layer whose lines have arbitrary slopes and offsets, and of its map."""
        if layer not in self._through:
            self._through[layer] = self._terms_of_envelope(layer, envelope)
        terms, each_z, floor = self._through[layer]
        error = dot(size, _wide(terms)) + floor
        return error if multiplier is None else error + dot(multiplier.abs(), _wide(each_z))

    def _terms_of_envelope(self, layer: int, envelope: Envelope) -> tuple[Tensor, Tensor, Tensor]:
        """Error weights for the coefficients of values and for those of neurons, and a floor to be
        added.

        A slope interpolated by alpha has eight roundings, of at most the steepest slope's size, and
        so has an offset. With products, a neuron's coefficient may be the sum of as many as there
        are values; its error is charged to the coefficients that it comes from.
        """
        lost, arrive, width = self._unit.underflow, self._arrive[layer], envelope.least.shape[-1]
        activation, steep = self._activations[layer - 1], steepest(envelope)
        share = self._unit.share(3 * width + 2 * layer + 24)
        below, under = self._charges[layer - 1]
        each_z = (share + lost) * arrive + 4 * lost + below
        read, through = (
            part.reshape(part.shape[0], -1, width).sum(-2)
            for part in (activation.expand(arrive), activation.expand(each_z) * steep)
        )
        own = share * highest(envelope) + lost * (8 + 8 * read)
        count = 8 * _sum(read) + 8 * (width + arrive.shape[-1]) + _sum(each_z) + _sum(own)
        floor = lost * count + under
        return own + self._unit.grow(width + 8) * through, each_z, floor

    def of_input(self, weight: Tensor, reach: Tensor, window: Window = _wide) -> Tensor:
        """Error of the value at the domain's centre and of the support `reach` [batch, rows]."""
        if self._input is None:
            inputs = self._sizes[0].shape[-1]  # at least a window's
            lost = self._unit.underflow
            terms = self._unit.share(inputs + 6) * self._sizes[0] + lost
            self._input = terms, lost * (4 * inputs + 4 + _sum(terms))
        terms, floor = self._input
        return dot(weight.abs(), window(terms)) + self.domain.unsure(weight, reach) + floor


def _sum(vectors: Tensor) -> Tensor:
    return vectors.sum(-1, keepdim=True)
