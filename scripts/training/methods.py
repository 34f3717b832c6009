"""Training losses, each a function of (model, inputs, classes, epsilon, progress)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.linear import affine_forms, interval_bounds

Loss = Callable[[nn.Sequential, Tensor, Tensor, float, float], Tensor]

PGD_STEPS = 7
MMR_WEIGHT = 0.5
STABILITY_WEIGHT = 0.01


def standard(model: nn.Sequential, x: Tensor, y: Tensor, epsilon: float, progress: float) -> Tensor:
    """Cross entropy."""
    return functional.cross_entropy(model(x), y)


def pgd(model: nn.Sequential, x: Tensor, y: Tensor, epsilon: float, progress: float) -> Tensor:
    """Cross entropy at adversarial inputs of the l-infinity ball (Madry et al. 2018)."""
    return functional.cross_entropy(model(attack(model, x, y, _ramp(epsilon, progress))), y)


def mmr(model: nn.Sequential, x: Tensor, y: Tensor, epsilon: float, progress: float) -> Tensor:
    """Cross entropy and the maximum-margin regulariser (Croce et al. 2019), l-infinity.

    The distance of x to a hyperplane w.x = b is |w.x - b| / |w|_1. Both the nearest boundaries
    of its region and the decision boundaries are pushed out to a margin.
    """
    *hidden, (logits, gradient) = affine_forms(model, x)
    distances = torch.cat([_distance(value.abs(), rows) for value, rows in hidden], 1)
    # As in the paper, the share of hyperplanes that counts falls during training.
    nearest = max(1, round(distances.shape[1] * (0.2 - 0.15 * progress)))
    region = distances.topk(nearest, 1, largest=False).values
    index = y[:, None]
    gap = logits.gather(1, index) - logits  # [batch, classes]
    rows = gradient.gather(1, index[:, :, None].expand(-1, 1, gradient.shape[2])) - gradient
    others = functional.one_hot(y, logits.shape[1]) == 0
    decision = _distance(gap, rows)[others].reshape(len(y), -1).amin(1)
    penalty = _hinge(region, epsilon) + _hinge(decision, epsilon)
    return functional.cross_entropy(logits, y) + _ramp(MMR_WEIGHT, progress) * penalty


def stable(model: nn.Sequential, x: Tensor, y: Tensor, epsilon: float, progress: float) -> Tensor:
    """PGD training and the ReLU stability regulariser (Xiao et al. 2019): -tanh(1 + l u)."""
    lower, upper = (x - epsilon).clamp(min=0), (x + epsilon).clamp(max=1)
    bounds = interval_bounds(model, lower, upper)
    unstable = torch.stack([-torch.tanh(1 + low * up).sum(1).mean() for low, up in bounds]).sum()
    return pgd(model, x, y, epsilon, progress) + STABILITY_WEIGHT * unstable


METHODS: dict[str, Loss] = {"standard": standard, "pgd": pgd, "mmr": mmr, "stable": stable}


def attack(model: nn.Sequential, x: Tensor, y: Tensor, epsilon: float) -> Tensor:
    """Projected gradient ascent of the loss in the l-infinity ball, clipped to [0, 1]."""
    parameters = list(model.parameters())
    for parameter in parameters:
        parameter.requires_grad_(False)
    point = (x + epsilon * (2 * torch.rand_like(x) - 1)).clamp(0, 1)
    for _ in range(PGD_STEPS):
        point.requires_grad_(True)
        (gradient,) = torch.autograd.grad(functional.cross_entropy(model(point), y), point)
        step = point.detach() + epsilon * 2.5 / PGD_STEPS * gradient.sign()
        point = torch.max(torch.min(step, x + epsilon), x - epsilon).clamp(0, 1)
    for parameter in parameters:
        parameter.requires_grad_(True)
    return point


def _distance(value: Tensor, rows: Tensor) -> Tensor:
    return value / rows.abs().sum(2).clamp(min=1e-6)


def _hinge(distance: Tensor, margin: float) -> Tensor:
    return (1 - distance / margin).clamp(min=0).mean()


def _ramp(value: float, progress: float) -> float:
    """From 0 to the value over the first half of training."""
    return value * min(1.0, 2 * progress)
