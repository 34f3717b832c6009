"""Split rule: the neuron whose children together gain most where the bound is least."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.bounds.lines import gap
from fgp_vnn.bounds.slopes import carry
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.search.bundles import BoundedBundles, BundleContext


def gains(context: BundleContext, bounded: BoundedBundles, at: Tensor) -> Tensor:
    """The gain of both children of each neuron [at, neurons], where the bound is least.

    With z the input of a neuron at that point, A the coefficient of its output and L the line that
    the bound uses, the bound loses A (relu(z) - L(z)) to the relaxation. An exact neuron gives A z
    in one child and 0 in the other: A z - 2 A L(z) more in both together. A smooth neuron is not
    exact in its children, and its loss at a point near a tangent is small: so half of |A| times the
    gap between its lines in the middle is added to A (f(z) - L(z)). The loss of a product counts
    for both of its neurons.
    """
    kept = bounded.bundles.at(at)
    network, _ = context.in_float32
    dtype, depth = network.dtype, len(context.widths)
    alpha = context.multipliers(kept).to(dtype).alpha
    bounds = bounded.bounds.at(at).to(dtype)
    lines = bounds.lines(alpha)
    found = bounded.result.coefficients.items()
    coefficients = {k: coefficient[at].to(dtype) for k, coefficient in found}
    points = bounded.result.points[at].to(dtype)
    arrived, passed_on, _ = carry(network, depth, points, lines, coefficients)
    gains = [kept.alpha[:, :0].to(dtype)]
    for k, width in enumerate(context.widths, 1):
        if k not in arrived:  # nothing after this layer reads it
            gains.append(points.new_zeros(len(at), width))
            continue
        activation = network.activations[k - 1]
        if activation is RELU:
            gain = coefficients[k] * (arrived[k] - 2 * passed_on[k])
        else:
            lost = coefficients[k] * (activation.value(arrived[k]) - passed_on[k])
            between = gap(activation, lines[k - 1], bounds.lower[k - 1], bounds.upper[k - 1])
            lost = lost + coefficients[k].abs() * between / 2
            gain = activation.gather(torch.cat([lost] * activation.operands, -1), width)
        gains.append(gain.squeeze(-2))
    return torch.cat(gains, -1)


RULE = gains
