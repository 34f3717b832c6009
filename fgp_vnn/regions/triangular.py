"""The affine forms of many regions at once, as one triangular system.

In a region z = B t + b + L D z, with t = x - center, D the 0/1 diagonal of the pattern and L
strictly triangular by layers. So the forms of a batch follow layer by layer, each by one product.
Neurons are the first dimension of every tensor, so that the product of a layer writes to a
contiguous slice and all earlier layers are one operand. The rows of the output follow the neurons.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from fgp_vnn.base.rounding import unit
from fgp_vnn.domain.clipped import Clipped
from fgp_vnn.domain.sets import Domain
from fgp_vnn.network.model import AffineMap
from fgp_vnn.query import Query


class Block(NamedTuple):
    """One map: its rows are first..last, and it reads the neurons begin..first."""

    begin: int
    first: int
    last: int
    weight: Tensor  # [last - first, first - begin]
    rows: Tensor  # [last - first, inputs] its coefficients of t
    values: Tensor  # [last - first] its value at the centre when all neurons are off


class RegionForms(NamedTuple):
    """z_u = rows[u] . (x - center) + values[u] in each region; the output's rows come last."""

    rows: Tensor  # [neurons + outputs, regions, inputs]
    values: Tensor  # [neurons + outputs, regions]
    reach: Tensor  # [neurons + outputs, regions] bounds of |row . t|; for outputs, of -row . t


@dataclass(frozen=True, eq=False)
class Triangular:
    """A query's network as blocks, with a bound on the rounding error of its forms.

    `error[u]` bounds, in all regions, how far the computed form of z_u is from the true one
    anywhere in the domain, the rounding of its support included.
    """

    blocks: tuple[Block, ...]
    domain: Domain
    error: Tensor  # [neurons + outputs]
    floor: Tensor  # [] upper bound on the underflow of a sum over all rows, in the domain
    neurons: int
    first_reach: Tensor | None  # [first layer] supports of the first layer, if kept

    def forms(self, on: Tensor) -> RegionForms:
        """The forms in regions with the patterns on [neurons, regions], 0 or 1 as numbers."""
        regions, inputs = on.shape[1], self.blocks[0].rows.shape[1]
        total = self.blocks[-1].last
        rows = on.new_empty(total, regions, inputs)
        values = on.new_empty(total, regions)
        reach = on.new_empty(total, regions)
        passed = on.new_empty(self.neurons, regions, inputs)  # D z
        passed_values = on.new_empty(self.neurons, regions)
        for block in self.blocks:
            begin, first, last = block[:3]
            mine, mine_values = rows[first:last], values[first:last]
            if first > begin:
                flat = (-1, regions * inputs)
                torch.mm(block.weight, passed[begin:first].view(flat), out=mine.view(flat))
                mine += block.rows.unsqueeze(1)
                torch.mm(block.weight, passed_values[begin:first], out=mine_values)
                mine_values += block.values.unsqueeze(1)
            else:
                mine.copy_(block.rows.unsqueeze(1))
                mine_values.copy_(block.values.unsqueeze(1))
            if last <= self.neurons:
                torch.mul(mine, on[first:last].unsqueeze(-1), out=passed[first:last])
                torch.mul(mine_values, on[first:last], out=passed_values[first:last])
        at = 0
        if self.first_reach is not None:
            at = len(self.first_reach)
            reach[:at] = self.first_reach.unsqueeze(1)
        reach[at : self.neurons] = self.domain.reach(rows[at : self.neurons])
        reach[self.neurons :] = self.domain.support(-rows[self.neurons :])
        return RegionForms(rows, values, reach)


def triangular(query: Query, *, cache_first: bool = True) -> Triangular:
    """The blocks of a query; with `cache_first` the first layer's supports are computed once."""
    network, domain = query.network, query.domain
    starts, maps = list(accumulate(network.widths, initial=0)), enumerate(network.maps)
    blocks = tuple(_block(affine, domain.center, starts, k, network.inputs) for k, affine in maps)
    first = domain.reach(blocks[0].rows) if cache_first and network.layers else None
    rows, size_of = network.neurons + network.outputs, unit(network.dtype)
    floor = size_of.underflow * 8 * (rows + 2) * (1 + farthest(domain).sum())
    return Triangular(blocks, domain, _error(query), floor, network.neurons, first)


def _block(affine: AffineMap, center: Tensor, starts: list[int], k: int, inputs: int) -> Block:
    """Map number k, with its matrices side by side."""
    eye = torch.eye(affine.outputs, dtype=center.dtype, device=center.device)
    parts = dict(zip(affine.sources, affine.adjoint(eye), strict=True))
    earlier = [s for s in affine.sources if s > 0]
    begin = starts[min(earlier) - 1] if earlier else starts[k]
    weight = center.new_zeros(affine.outputs, starts[k] - begin)
    for s in earlier:
        weight[:, starts[s - 1] - begin : starts[s] - begin] = parts[s]
    rows = parts.get(0, center.new_zeros(affine.outputs, inputs))
    values = affine.bias + rows @ center
    return Block(begin, starts[k], starts[k] + affine.outputs, weight, rows, values)


def _error(query: Query) -> Tensor:
    """The rounding error of every row in any region, by a running analysis of the worst pattern.

    With size_k at least |z_k(center)| + sum |A_k,i| |x_i - c_i| in every region, the terms of the
    next map sum to at most |W| size + |bias|, and |W| propagates the errors made before. Switching
    neurons off makes both smaller, so the pattern with all neurons on is the worst.

    A term of a form is rounded in the map's own operations, when its matrix is made and when that
    is applied to all earlier neurons; twice in `spread`; then in a support, and in a weighted sum
    of a region's constraints over all rows.
    """
    network = query.network
    # Unit rows give |x_i - c_i|; a bound of row . (x - c) is then at most |row| . that.
    far = farthest(query.domain)
    sizes = [query.domain.center.abs() + far]
    errors = [torch.zeros_like(sizes[0])]
    size_of, rows = unit(network.dtype), network.neurons + network.outputs
    for affine in network.maps:
        read = [sizes[s] for s in affine.sources]
        size = affine.magnitude(read)
        gone = affine.underflows([sizes[s] + errors[s] for s in affine.sources])
        error = affine.spread([errors[s] for s in affine.sources])
        error = error if affine.defect is None else error + affine.defect
        steps = 3 * affine.operations + network.inputs + 2 * rows + 20
        error = size_of.grow(steps) * error + size_of.share(steps) * size
        small = (gone.forward + 2 * rows + 4) * (1 + far.sum()) + gone.backward
        errors.append(error + size_of.underflow * small)
        sizes.append(size)
    return torch.cat(errors[1:]).nan_to_num(torch.inf, torch.inf, torch.inf)


def farthest(domain: Domain) -> Tensor:
    """Upper bound on |x_i - center_i| in the domain, and on its support along an axis."""
    box = domain.ball.box() if isinstance(domain, Clipped) else domain.box()
    return torch.maximum(box.upper - domain.center, domain.center - box.lower)
