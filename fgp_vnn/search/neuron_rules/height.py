"""Split rule: the neuron that loses most where its triangle is highest, the usual score of branch
and bound; for a smooth neuron, where its lines are farthest apart."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.bounds.lines import gap
from fgp_vnn.network.activations.base import RELU
from fgp_vnn.search.bundles import BoundedBundles, BundleContext


def heights(context: BundleContext, bounded: BoundedBundles, at: Tensor) -> Tensor:
    """|A| (-l u) / (u - l) of each neuron [at, neurons], with A the coefficient of its output and
    l, u the bounds of its input; for a smooth neuron |A| times the gap between its lines in the
    middle. [at, 0] for a network without neurons."""
    scores = [bounded.bundles.alpha[at, :0]]
    bounds = bounded.bounds.at(at)
    for k, (lower, upper) in enumerate(zip(bounds.lower, bounds.upper, strict=True), 1):
        coefficient, activation = bounded.result.coefficients.get(k), bounds.activations[k - 1]
        if coefficient is None:  # nothing after this layer reads it
            scores.append(lower.new_zeros(len(at), lower.shape[-1]))
            continue
        size = coefficient[at].squeeze(-2).to(lower.dtype).abs()
        if activation is RELU:
            scores.append(size * (-lower * upper / (upper - lower)))
        else:
            lost = size * gap(activation, bounds.lines()[k - 1], lower, upper).squeeze(-2)
            parts = torch.cat([lost] * activation.operands, -1)
            scores.append(activation.gather(parts, lower.shape[-1]))
    return torch.cat(scores, -1)


RULE = heights
