"""Training losses, each a function of (model, inputs, classes, goal, progress)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.ball import Ball
from training.linear import affine_forms, interval_bounds

PGD_STEPS = 7


@dataclass(frozen=True)
class Goal:
    """The robustness that a loss trains for."""

    ball: Ball  # in which the class should not change
    box: float  # l-infinity radius in which ReLUs should keep their sign
    weight: float  # of the regulariser


Loss = Callable[[nn.Sequential, Tensor, Tensor, Goal, float], Tensor]


@dataclass(frozen=True)
class Method:
    """A loss, the weight of its regulariser, and whether it needs the gradients of all neurons."""

    loss: Loss
    weight: float = 0.0
    gradients: bool = False


def standard(model: nn.Sequential, x: Tensor, y: Tensor, goal: Goal, progress: float) -> Tensor:
    """Cross entropy."""
    return functional.cross_entropy(model(x), y)


def pgd(model: nn.Sequential, x: Tensor, y: Tensor, goal: Goal, progress: float) -> Tensor:
    """Cross entropy at adversarial inputs of the ball (Madry et al. 2018)."""
    ball = replace(goal.ball, epsilon=_ramp(goal.ball.epsilon, progress))
    return functional.cross_entropy(model(attack(model, x, y, ball)), y)


def mmr(model: nn.Sequential, x: Tensor, y: Tensor, goal: Goal, progress: float) -> Tensor:
    """Cross entropy and the maximum-margin regulariser (Croce et al. 2019).

    The distance of x to a hyperplane w.x = b is |w.x - b| over the dual norm of w. The nearest
    boundaries of its region and the decision boundaries are both pushed out to a margin.
    """
    ball = goal.ball
    *hidden, (logits, gradient) = affine_forms(model, x)
    distances = torch.cat([ball.distance(value.abs(), rows) for value, rows in hidden], 1)
    # As in the paper, the share of hyperplanes that count decreases during training.
    nearest = max(1, round(distances.shape[1] * (0.2 - 0.15 * progress)))
    region = distances.topk(nearest, 1, largest=False).values
    index = y[:, None]
    gap = logits.gather(1, index) - logits  # [batch, classes]
    rows = gradient.gather(1, index[:, :, None].expand(-1, 1, gradient.shape[2])) - gradient
    others = functional.one_hot(y, logits.shape[1]) == 0
    decision = ball.distance(gap, rows)[others].reshape(len(y), -1).amin(1)
    penalty = _hinge(region, ball.epsilon) + _hinge(decision, ball.epsilon)
    return functional.cross_entropy(logits, y) + _ramp(goal.weight, progress) * penalty


def stable(model: nn.Sequential, x: Tensor, y: Tensor, goal: Goal, progress: float) -> Tensor:
    """PGD training and the ReLU stability regulariser (Xiao et al. 2019): -tanh(1 + l u)."""
    ball = goal.ball
    lower, upper = (x - goal.box).clamp(min=ball.low), (x + goal.box).clamp(max=ball.high)
    bounds = interval_bounds(model, lower, upper)
    unstable = torch.stack([-torch.tanh(1 + low * up).sum(1).mean() for low, up in bounds]).sum()
    return pgd(model, x, y, goal, progress) + goal.weight * unstable


METHODS = {
    "standard": Method(standard),
    "pgd": Method(pgd),
    "mmr": Method(mmr, weight=0.5, gradients=True),
    "stable": Method(stable, weight=0.01),
}


def attack(model: nn.Sequential, x: Tensor, y: Tensor, ball: Ball) -> Tensor:
    """Projected gradient ascent of the loss in the ball."""
    parameters = list(model.parameters())
    for parameter in parameters:
        parameter.requires_grad_(False)
    point = ball.random(x)
    for _ in range(PGD_STEPS):
        point.requires_grad_(True)
        (gradient,) = torch.autograd.grad(functional.cross_entropy(model(point), y), point)
        point = ball.project(ball.ascend(point.detach(), gradient, 2.5 / PGD_STEPS), x)
    for parameter in parameters:
        parameter.requires_grad_(True)
    return point


def _hinge(distance: Tensor, margin: float) -> Tensor:
    return (1 - distance / margin).clamp(min=0).mean()


def _ramp(value: float, progress: float) -> float:
    """Increases from 0 to the value over the first half of training."""
    return value * min(1.0, 2 * progress)
