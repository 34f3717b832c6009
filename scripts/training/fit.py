"""One training run: a recipe and a data set in, a network out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from training.architectures import build, input_shape
from training.data import Dataset
from training.methods import METHODS, attack

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

    @property
    def name(self) -> str:
        shape = self.architecture
        return f"{shape if shape.startswith('conv') else f'dense_{shape}'}_{self.method}"


def train(
    recipe: Recipe, data: Dataset, *, on_epoch: Callable[[], None] = lambda: None
) -> nn.Sequential:
    """Adam with a cosine schedule; the same recipe on the same machine gives the same network."""
    if recipe.method not in METHODS:
        raise ValueError(f"unknown method {recipe.method!r}: one of {', '.join(METHODS)}")
    loss = METHODS[recipe.method]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        model = build(recipe.architecture, data.shape, data.classes)
        inputs = data.train_x.reshape(-1, *input_shape(recipe.architecture, data.shape))
        optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
        batches = -(-len(inputs) // BATCH)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, recipe.epochs * batches)
        for epoch in range(recipe.epochs):
            for chosen in torch.split(torch.randperm(len(inputs)), BATCH):
                optimiser.zero_grad()
                x, y = inputs[chosen], data.train_y[chosen]
                loss(model, x, y, recipe.epsilon, epoch / recipe.epochs).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
            on_epoch()
    return model.eval()


def accuracies(model: nn.Sequential, recipe: Recipe, data: Dataset) -> tuple[float, float]:
    """The share of test images that is classified right, plain and under attack."""
    x = data.test_x.reshape(-1, *input_shape(recipe.architecture, data.shape))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        attacked = attack(model, x, data.test_y, recipe.epsilon)
    with torch.no_grad():
        plain, worst = (
            float((model(point).argmax(1) == data.test_y).float().mean()) for point in (x, attacked)
        )
    return plain, worst
