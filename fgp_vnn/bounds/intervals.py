"""Interval bounds of one map from interval bounds of its sources."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fgp_vnn.base.rounding import above, below, unit
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.model import AffineMap, Dense, Network


def interval_step(
    network: Network, domain: Domain, bounds: LayerBounds, index: int
) -> tuple[Tensor, Tensor]:
    """Interval bounds of map number `index` from the bounds of the layers before it.

    The value at the middle has `operations` roundings, and the distance to either side has five
    more than that; middle and radius themselves have three each, and a support has those of
    `unsure`.
    """
    affine, box = network.maps[index], domain.box()
    if not (isinstance(affine, Dense) and affine.sources == (0,)):
        sides, envelopes = [(box.lower, box.upper), *bounds.values], (box, *bounds.envelopes)
        read = [sides[s] for s in affine.sources]
        sizes = [
            high if envelopes[s] is None else torch.maximum(-low, high)
            for s, (low, high) in zip(affine.sources, read, strict=True)
        ]
        return interval_map(affine, read, sizes)
    reach = domain.reach(affine.weights[0])
    reach = reach + domain.unsure(affine.weights[0], reach)
    share = unit(network.dtype).share(2 * affine.operations + 12)
    reach = reach + affine.charge([box.sizes], share, 3).terms
    center = affine([domain.center])  # [..., n_k]
    return _around(center, reach)


def interval_map(
    affine: AffineMap, read: Sequence[tuple[Tensor, Tensor]], sizes: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Interval bounds of a map's results from the bounds `read` of its sources, and upper bounds
    `sizes` on the sources' absolute values."""
    size_of = unit(affine.bias.dtype)
    share = size_of.share(2 * affine.operations + 12)
    center = affine([torch.lerp(low, high, 0.5) for low, high in read])
    width = [(high - low) + 2 * size_of.underflow for low, high in read]
    if isinstance(affine, Dense) and affine.terms is not None:  # terms are larger than its entries
        reach = affine.spread(width) / 2 + affine.charge(sizes, share, 3).terms
    else:  # the spread |W| radius is part of the charge: share |W| (size + radius / share)
        pairs = zip(sizes, width, strict=True)
        far = [size.add(part, alpha=0.5 / share) for size, part in pairs]
        reach = affine.charge(far, share, 3).terms
    return _around(center, reach)


def _around(center: Tensor, reach: Tensor) -> tuple[Tensor, Tensor]:
    return below(center - reach), above(center + reach)
