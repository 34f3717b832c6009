"""Which hidden neurons are worth tighter bounds: those at which open rows lose most.

It pays in large smooth networks. Convolutions with ReLUs lose too evenly: on yolo_2023 the 200
neurons at which the rows lose most, of 1,316 and of 576 in the last two layers, make up 42 % and
65 % of what is lost, and with these bounded the least row is -156, where all of them prove it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.bounds.layers import LayerBounds
from fgp_vnn.bounds.lines import gap
from fgp_vnn.network.model import Network


def worthwhile(
    network: Network, bounds: LayerBounds, coefficients: dict[int, Tensor], count: int
) -> list[Tensor]:
    """Masks [n_k] of about so many neurons of all layers together, for the coefficients of values
    [1, rows, values of layer k] that a backward pass of the rows has met."""
    losses = [_loss(network, bounds, coefficients.get(k + 1), k) for k in range(len(bounds.lower))]
    every = torch.cat(losses)
    least = every.topk(min(count, len(every))).values[-1]
    return [(loss >= least) & (loss > 0) for loss in losses]


def _loss(network: Network, bounds: LayerBounds, coefficient: Tensor | None, k: int) -> Tensor:
    """Upper bound on what the relaxation of each neuron [n_k] costs the row that it costs most; a
    neuron that several products read has the sum, and one without bounds the largest loss."""
    if coefficient is None:
        return bounds.lower[k].new_zeros(network.widths[k])
    activation, lines = network.activations[k], bounds.lines()[k]
    height = gap(activation, lines, bounds.lower[k], bounds.upper[k])
    loss = (coefficient.abs() * height)[0].amax(0).nan_to_num(torch.inf)
    times = lines.chord.shape[-1] // len(loss)
    return activation.gather(torch.cat([loss] * times), network.widths[k])
