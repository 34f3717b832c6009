"""Bounds on the rounding error of a backward pass, which make its result a proof."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fgp_vnn.domain import Domain
from fgp_vnn.network.model import Network

if TYPE_CHECKING:
    from fgp_vnn.bounds import LayerBounds


class Rounding:
    """Bounds on the rounding error of a backward pass, by a running error analysis.

    With u the unit roundoff, a result of T operations on terms whose absolute values sum to S is
    off by at most 2 T u S. A coefficient of a_k or z_k that is off by e moves the bound by at most
    e |z_k|, and |z_k| is bounded by the layer bounds: so an error made at one layer is weighed
    with the bounds of the layer below it, and never grows with depth.
    """

    def __init__(self, network: Network, domain: Domain, bounds: LayerBounds) -> None:
        box = domain.box()
        self._unit = torch.finfo(network.dtype).eps  # twice the unit roundoff
        self._sizes = [torch.maximum(box.lower.abs(), box.upper.abs()), *bounds.sizes()]
        known = len(self._sizes)
        self._terms: list[Tensor] = []
        for affine in network.maps:
            if any(source >= known for source in affine.sources):
                break
            # What a map adds to the constant passes through two sums per layer after that.
            steps = (affine.operations + affine.outputs + 2 * len(network.maps) + 4) * self._unit
            terms = steps * affine.magnitude([self._sizes[s] for s in affine.sources])
            self._terms.append(terms if affine.defect is None else terms + affine.defect)

    def of_map(self, index: int, rows: Tensor) -> Tensor:
        """Of applying map number `index` to rows [batch, rows, outputs]."""
        return dot(rows.abs(), _wide(self._terms[index]))

    def of_neurons(self, index: int, neurons: Tensor) -> Tensor:
        """Of the rows [batch, m] of single neurons."""
        terms = self._terms[index]
        terms = terms.reshape(-1, terms.shape[-1]).expand(len(neurons), -1)
        return terms.gather(-1, neurons)

    def of_layer(self, layer: int, size: Tensor) -> Tensor:
        """Of the ReLUs of a layer and of the map below it, for coefficients of this size.

        Slopes are at most 1, so what goes through a ReLU is no larger than what came to it.
        """
        steps = (size.shape[-1] + 10) * self._unit
        return dot(size, _wide(self._terms[layer - 1] + steps * self._sizes[layer]))

    def of_input(self, weight: Tensor) -> Tensor:
        steps = (2 * weight.shape[-1] + 10) * self._unit
        return steps * dot(weight.abs(), _wide(self._sizes[0]))


def _wide(vectors: Tensor) -> Tensor:
    """[n] or [batch, n] as [batch or 1, 1, n]."""
    return vectors.reshape(-1, 1, vectors.shape[-1])


def dot(rows: Tensor, vector: Tensor) -> Tensor:
    """row . vector for rows [batch, rows, n] and one vector [batch or 1, 1, n] for each batch."""
    return (rows @ vector.transpose(-1, -2)).squeeze(-1)
