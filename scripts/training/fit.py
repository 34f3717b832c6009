"""One training run: a recipe and a data set in, a network out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training.architectures import build, input_shape, is_convolutional
from training.ball import NORMS, Ball
from training.data import Dataset
from training.linear import samples_at_once
from training.methods import METHODS, Goal, attack

BATCH = 96
LEARNING_RATE = 3e-3


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a trained network, besides the data."""

    architecture: str
    method: str
    epsilon: float = 0.05
    epochs: int = 60
    seed: int = 0
    norm: str = "linf"
    box: float | None = None  # as in Goal; None: epsilon
    weight: float | None = None  # of the regulariser; None: the method's own
    l1: float = 0.0  # weight of the weights' l1 norm; falls to a tenth during training

    @property
    def name(self) -> str:
        shape = self.architecture
        return f"{shape if is_convolutional(shape) else f'dense_{shape}'}_{self.method}"

    def ball(self, data: Dataset) -> Ball:
        return Ball(self.norm, self.epsilon, *data.range)

    def goal(self, data: Dataset) -> Goal:
        box = self.epsilon if self.box is None else self.box
        weight = METHODS[self.method].weight if self.weight is None else self.weight
        return Goal(self.ball(data), box, weight)


def batches(data: Dataset) -> int:
    """The number of batches in an epoch."""
    return -(-len(data.train_x) // BATCH)


def train(
    recipe: Recipe, data: Dataset, *, on_batch: Callable[[], None] = lambda: None
) -> nn.Sequential:
    """Train with Adam and a cosine schedule; on one machine, a recipe gives the same network."""
    _check(recipe)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        model = build(recipe.architecture, data.shape, data.classes)
        inputs = data.train_x.reshape(-1, *input_shape(recipe.architecture, data.shape))
        optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
        steps = recipe.epochs * batches(data)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        for epoch in range(recipe.epochs):
            for chosen in torch.split(torch.randperm(len(inputs)), BATCH):
                optimiser.zero_grad()
                _backward(model, recipe, data, inputs, chosen, epoch / recipe.epochs)
                optimiser.step()
                schedule.step()
                on_batch()
    return model.eval()


def _check(recipe: Recipe) -> None:
    for kind, given, known in (
        ("method", recipe.method, METHODS.keys()),
        ("norm", recipe.norm, NORMS.keys()),
    ):
        if given not in known:
            raise ValueError(f"unknown {kind} {given!r}: one of {', '.join(known)}")
    if recipe.epsilon <= 0 or recipe.epochs < 1:
        raise ValueError("epsilon must be above 0, and there must be at least one epoch")


def _backward(
    model: nn.Sequential,
    recipe: Recipe,
    data: Dataset,
    inputs: Tensor,
    chosen: Tensor,
    progress: float,
) -> None:
    """Accumulate the gradients of a batch's mean loss, with as many samples at once as fit."""
    method, goal = METHODS[recipe.method], recipe.goal(data)
    size = samples_at_once(model, inputs[:1]) if method.gradients else len(chosen)
    for part in torch.split(chosen, size):
        loss = method.loss(model, inputs[part], data.train_y[part], goal, progress)
        torch.autograd.backward(loss * (len(part) / len(chosen)))
    if recipe.l1 > 0:
        weights = [p for p in model.parameters() if p.dim() > 1]
        total = torch.stack([weight.abs().sum() for weight in weights]).sum()
        torch.autograd.backward(recipe.l1 * 0.1**progress * total)


def accuracies(model: nn.Sequential, recipe: Recipe, data: Dataset) -> tuple[float, float]:
    """The share of test images that are classified correctly, without and under attack."""
    x = data.test_x.reshape(-1, *input_shape(recipe.architecture, data.shape))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        attacked = attack(model, x, data.test_y, recipe.ball(data))
    with torch.no_grad():
        plain, worst = (
            float((model(point).argmax(1) == data.test_y).float().mean()) for point in (x, attacked)
        )
    return plain, worst
