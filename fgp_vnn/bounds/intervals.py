"""Interval bounds of an affine map's results, rounding included."""

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

    The value in the middle has `operations` roundings, and how far it moves to either side twice
    as many; middle and spread themselves have two each, and a support has those of `unsure`.
    """
    affine, box = network.maps[index], domain.box()
    if not (isinstance(affine, Dense) and affine.sources == (0,)):
        values = bounds.values()
        pairs = [(box.lower, box.upper), *values]
        lowers, uppers = ([pairs[s][side] for s in affine.sources] for side in (0, 1))
        return interval_map(affine, lowers, uppers)
    center = affine([domain.center])  # [..., n_k]
    reach = domain.reach(affine.weights[0])
    reach = reach + domain.unsure(affine.weights[0], reach)
    return _widened(affine, center, reach, [torch.maximum(box.lower.abs(), box.upper.abs())])


def interval_map(
    affine: AffineMap, lowers: Sequence[Tensor], uppers: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Interval bounds of a map's results from those of what it reads."""
    lost, pairs = unit(affine.bias.dtype).lost, list(zip(lowers, uppers, strict=True))
    center = affine([(up + lo) / 2 for lo, up in pairs])
    reach = affine.spread([(up - lo) / 2 + lost for lo, up in pairs])
    sizes = [torch.maximum(lo.abs(), up.abs()) for lo, up in pairs]
    return _widened(affine, center, reach, sizes)


def _widened(
    affine: AffineMap, center: Tensor, reach: Tensor, sizes: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """The interval around a value in the middle, with what rounding may have moved its ends by,
    for sources of these sizes."""
    size_of = unit(affine.bias.dtype)
    share, lost = size_of.share(2 * affine.operations + 12), size_of.lost
    error = share * affine.magnitude(sizes) + lost * (3 * affine.lost(sizes).forward + 8)
    if affine.defect is not None:
        error = error + size_of.grow(8) * affine.defect
    return below(center - reach - error), above(center + reach + error)
