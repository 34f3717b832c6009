"""Split rule: the input that causes the greatest loss of the relaxation."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.bounds.backward import Backward
from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.lines import gap
from fgp_vnn.domain.sets import Box
from fgp_vnn.query import Query
from fgp_vnn.strategy import Inputs


def losses(
    query: Query,
    box: Box,
    bounds: LayerBounds,
    passed: Backward,
    weights: Tensor,
    numbers: Inputs,
) -> Tensor:
    """The loss of the relaxation, divided among the inputs [boxes, inputs] that cause it.

    A neuron loses up to (its coefficient) times the height of its triangle. It is unstable because
    inputs move it; the slopes near the centre tell the share of each input. A neuron that these
    hardly move (`Inputs.moves`) counts for less. The reach of the rows at the input counts a little
    (`Inputs.corners`).
    """
    network = query.network
    inputs = box.lower.shape[-1]
    eye = torch.eye(inputs, dtype=box.lower.dtype, device=box.lower.device)
    columns = [eye * box.radius.unsqueeze(-2)]  # [boxes, inputs, n]
    # Slightly off the centre: it may lie on a kink at which the box was cut, without a slope.
    before = network.preactivations(box.center + numbers.aside * box.radius)
    # Even where nothing is lost, rows that are least at different corners keep a box open.
    corners = numbers.corners if network.piecewise_linear else numbers.smooth_corners
    total = corners * (passed.weight.abs() * box.radius.unsqueeze(-2)).sum(-2)
    lost = _lost(query, bounds, passed)
    if query.conjunctions:
        weights = _of_every_row(query, weights, lost, numbers.every)
    for k, layer in enumerate(network.layers):
        moved = layer.linear([columns[s] for s in layer.sources])  # [boxes, inputs, n_k]
        if k in lost:
            mixed = weights.unsqueeze(-2) @ lost[k]
            share = network.activations[k].expand(moved).abs()
            width = (bounds.upper[k] - bounds.lower[k]).unsqueeze(-2)
            if share.shape[-1] != mixed.shape[-1]:
                share = share.reshape(*share.shape[:-1], -1, mixed.shape[-1]).sum(-2)
                width = torch.zeros_like(mixed)
            # A neuron that hardly moves near the centre tells nothing: its slopes may be noise.
            moves = torch.maximum(share.sum(-2, keepdim=True), numbers.moves * width)
            each = mixed / moves.clamp(min=1e-30)
            # Neurons without finite bounds tell nothing about where to split.
            total = total + (share @ each.mT).squeeze(-1).nan_to_num(0.0, 0.0, 0.0)
        columns.append(network.activations[k].push(before[k].unsqueeze(-2), moved))
    return total


def _lost(query: Query, bounds: LayerBounds, passed: Backward) -> dict[int, Tensor]:
    """The greatest loss of each row by each neuron [boxes, rows, n_k] of the layers that are
    read."""
    lost, lines = {}, bounds.lines()
    for k, f in enumerate(query.network.activations):
        if k + 1 in passed.coefficients:
            height = gap(f, lines[k], bounds.lower[k], bounds.upper[k])
            lost[k] = passed.coefficients[k + 1].abs() * height
    return lost


def _of_every_row(query: Query, weights: Tensor, lost: dict[int, Tensor], every: float) -> Tensor:
    """The weights [boxes, rows] of the rows in each sum, with every row of an open conjunction
    raised by as much as adds a part `every` of what the sums lose.

    Otherwise a row whose minimum is 0 in every box takes all the weight, and the others have no
    influence on where to split, although only they can contradict it.
    """
    several = torch.bincount(query.disjunct, minlength=query.disjuncts) > 1
    sums = weights.new_zeros(len(weights), query.disjuncts).index_add(1, query.disjunct, weights)
    each = torch.zeros_like(weights)
    for part in lost.values():
        each = each + part.sum(-1).nan_to_num(0.0, 0.0, 0.0)
    more = every * (weights * each).sum(-1, keepdim=True) / each.clamp(min=1e-30)
    raised = ((sums > 0) & several)[:, query.disjunct] & (each > 0)
    return weights + torch.where(raised, more, 0.0)


RULE = losses
