"""Small ReLU networks with numbers from 1e-45 to 3e38."""

from __future__ import annotations

import numpy as np

from hostile_cases.case import Case
from hostile_cases.networks import ask, layer, random_box
from hostile_cases.numbers import magnitude
from tests.helpers.network_models import Builder

DEEP = 9  # layers: the product of this many large float32 weights overflows float64
WILD = 0.15  # share of layers whose weights are unrelated to the values around them


def make(random: np.random.Generator) -> Case:
    """A chain of random widths."""
    widths = [int(w) for w in random.integers(1, 5, size=int(random.integers(0, 3)))]
    if random.random() < 0.05:
        widths = [1] * DEEP
    widths.append(int(random.integers(1, 4)))
    relus = float(random.choice([1.0, 1.0, 0.5]))
    return chain(random, int(random.choice([1, 1, 2, 3])), widths, relus=relus)


def chain(
    random: np.random.Generator,
    inputs: int,
    widths: list[int],
    *,
    relus: float = 1.0,
    rows: int | None = None,
) -> Case:
    """A network whose layers have values of unrelated sizes; each hidden layer is followed by
    ReLUs with probability `relus`."""
    size = magnitude(random)
    box = random_box(random, inputs, size)
    builder, at, before = Builder([1, inputs]), "x", inputs
    for k, after in enumerate(widths):
        target = magnitude(random)
        with np.errstate(over="ignore"):
            gain = min(target / max(size, 1e-45), 3.4e38)
        if random.random() < WILD:
            gain = magnitude(random)
        at = layer(random, builder, at, before, after, gain, target)
        if k < len(widths) - 1 and random.random() < relus:
            at = builder.op("Relu", at)
        size, before = target, after
    return ask(random, "magnitudes", builder, at, box, rows=rows)
