"""Counterexamples planted by training, as in SoundnessBench (Zhou et al., 2024).

The loss asks for the wrong class at one planted point of each box, and for the right class, by a
margin, at all points that an attack has recently found: the window of perturbations. The trained
network has counterexamples, but gradients do not lead to them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from planting.instance import Planted
from training.architectures import build
from training.ball import Ball
from training.methods import attack

DEPTH = 0.7  # of the radius: how far out the planted points may be
MARGIN = 0.2  # by which the right class should lead at attacked points, the wrong one at planted
CAUTION = 0.3  # weight of attacked points relative to planted ones
WINDOW = 100  # perturbations of each box that are remembered
RESTARTS = 8  # of the attack, in each epoch


def train_planted(
    seed: int,
    *,
    architecture: str = "128x3",
    shape: tuple[int, ...] = (8,),
    boxes: int = 2,
    radius: float = 0.2,
    epochs: int = 1500,
    on_epoch: Callable[[], None] = lambda: None,
) -> list[Planted]:
    """Train a network on a few boxes; return the planted points that are counterexamples."""
    torch.manual_seed(seed)
    model = build(architecture, shape, 2)
    center = radius + (1 - 2 * radius) * torch.rand(boxes, *shape)
    label = torch.arange(boxes) % 2
    point = center + DEPTH * radius * (2 * torch.rand(boxes, *shape) - 1)
    window = center.unsqueeze(1)  # [boxes, remembered, *shape]
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, epochs)
    ball = Ball("linf", radius)
    for _ in range(epochs):
        many, labels = _each(center, RESTARTS), _each(label, RESTARTS)
        found = attack(model, many, labels, ball).reshape(boxes, RESTARTS, *shape)
        window = torch.cat([found, window], 1)[:, :WINDOW].detach()
        around = _hinge(model(window.flatten(0, 1)), _each(label, window.shape[1]))
        loss = _hinge(model(point), 1 - label) + CAUTION * around
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        on_epoch()
    model.eval()
    return _kept(f"trained_{architecture}_{seed}", model, center, point, label, radius)


def _kept(
    name: str, model: nn.Sequential, center: Tensor, point: Tensor, label: Tensor, radius: float
) -> list[Planted]:
    """The planted points with the wrong class, each with its box."""
    with torch.no_grad():
        value = model(point)
    kept = []
    for i, (mine, got) in enumerate(zip(label.tolist(), value.argmax(1).tolist(), strict=True)):
        lower, upper = ((center[i] + side).flatten().numpy() for side in (-radius, radius))
        if got != mine:
            flat = point[i].flatten().numpy().clip(lower, upper)
            shape = tuple(center.shape[1:])
            kept.append(Planted(f"{name}_{i}", model, shape, lower, upper, flat, mine, got))
    return kept


def _each(values: Tensor, times: int) -> Tensor:
    return values.repeat_interleave(times, 0)


def _hinge(logits: Tensor, wanted: Tensor) -> Tensor:
    """The mean shortfall of the wanted class from leading by the margin, where it falls short."""
    index = wanted.unsqueeze(1)
    others = logits.scatter(1, index, -torch.inf).amax(1)
    missing = (others - logits.gather(1, index).squeeze(1) + MARGIN).clamp(min=0)
    return missing.sum() / (missing > 0).sum().clamp(min=1)
