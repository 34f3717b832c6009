"""Which hidden neurons are worth tighter bounds: those whose relaxation costs open rows the most.

It pays in large smooth networks. In convolutions with ReLUs the loss is spread too evenly: on
yolo_2023 the 200 worst neurons, of 1,316 and of 576 in the last two layers, cause 42 % and 65 % of
the loss, and with only these bounded the lowest row is -156, while bounding all proves it.
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
    """Masks [n_k] of the `count` or so neurons, over all layers, that cost the rows most, given the
    coefficients [1, rows, values of layer k] of the rows' backward pass."""
    losses = [_loss(network, bounds, coefficients.get(k + 1), k) for k in range(len(bounds.lower))]
    every = torch.cat(losses)
    least = every.topk(min(count, len(every))).values[-1]
    return [(loss >= least) & (loss > 0) for loss in losses]


def _loss(network: Network, bounds: LayerBounds, coefficient: Tensor | None, k: int) -> Tensor:
    """Upper bound on the loss that each neuron's relaxation [n_k] causes in the row it affects
    most. A neuron that several products read gets the sum, and one without bounds the largest
    possible loss."""
    if coefficient is None:
        return bounds.lower[k].new_zeros(network.widths[k])
    activation, lines = network.activations[k], bounds.lines()[k]
    height = gap(activation, lines, bounds.lower[k], bounds.upper[k])
    loss = (coefficient.abs() * height)[0].amax(0).nan_to_num(torch.inf)
    times = lines.chord.shape[-1] // len(loss)
    return activation.gather(torch.cat([loss] * times), network.widths[k])
