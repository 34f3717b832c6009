"""The neuron that loses most where its triangle is highest, the usual score of branch and bound."""

from __future__ import annotations

import torch
from torch import Tensor

from fgp_vnn.network.activations.base import RELU
from fgp_vnn.search.bundles import Bounded, Setting


def heights(setting: Setting, bounded: Bounded, at: Tensor) -> Tensor:
    """|A| (-l u) / (u - l) of each neuron [at, neurons], with A the coefficient of its output and
    l, u the bounds of its input; [at, 0] of a network without neurons."""
    scores = [bounded.bundles.alpha[at, :0]]
    count = len(bounded.bundles.signs)
    for k, (low, up) in enumerate(zip(bounded.bounds.lower, bounded.bounds.upper, strict=True), 1):
        lower, upper = (side.expand(count, -1)[at] for side in (low, up))
        height = -lower * upper / (upper - lower)
        coefficient = bounded.result.coefficients.get(k)
        if coefficient is None or bounded.bounds.activations[k - 1] is not RELU:
            # Nothing after this layer reads it, or it has no signs.
            scores.append(torch.zeros_like(height))
        else:
            scores.append(coefficient[at].squeeze(-2).to(height.dtype).abs() * height)
    return torch.cat(scores, -1)


RULE = heights
