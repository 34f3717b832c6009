"""Branches that cancel: the function is tiny compared with its terms."""

from __future__ import annotations

import numpy as np

from hostile_cases.case import Case
from hostile_cases.networks import ask, layer, random_box
from hostile_cases.numbers import entries, magnitude, single
from tests.helpers.network_models import Builder

PAIRS = 10  # layers: their product of weights overflows float64


def make(random: np.random.Generator) -> Case:
    """Branches that cancel once, or pairs of neurons that cancel in every layer."""
    if random.random() < 0.3:
        return pairs(random, int(random.choice([1, 2])), int(random.choice([2, 3, 5, PAIRS])))
    return branches(random)


def pairs(random: np.random.Generator, inputs: int, layers: int, rows: int | None = None) -> Case:
    """Layers of two equal neurons M (h - h) + b: separate bounds for the two are off by M each."""
    box = random_box(random, inputs, 1.0)
    builder = Builder([1, inputs])
    column = entries(random, 1.0, inputs, 1)
    at = builder.op("Gemm", "x", builder.const(np.repeat(column, 2, axis=1)))
    for _ in range(layers - 1):
        size = float(random.choice([1e3, 1e20, 1e30, 1e38, 3.4e38]))
        weight = np.array([[size, size], [-size, -size]])
        bias = np.repeat(entries(random, float(random.choice([1.0, 1e-30, 1e30])), 1), 2)
        at = builder.op("Gemm", builder.op("Relu", at), builder.const(weight), builder.const(bias))
    last = entries(random, float(random.choice([1.0, 1e-30, 1e-3])), 2, 1)
    output = builder.op("Gemm", builder.op("Relu", at), builder.const(last))
    return ask(random, "pairs", builder, output, box, rows=rows)


def branches(random: np.random.Generator) -> Case:
    """M h(x) + g(x) - M h(x), with the last M possibly a little off, by sums or by Concat."""
    inputs, width = int(random.choice([1, 2])), int(random.integers(1, 4))
    outputs = int(random.integers(1, 3))
    size = 10.0 ** random.uniform(-6, 6)
    box = random_box(random, inputs, size)
    builder = Builder([1, inputs])
    hidden = layer(random, builder, "x", inputs, width, magnitude(random) ** 0.5 / size, 1.0)
    hidden = builder.op("Relu", hidden)
    small = layer(random, builder, "x", inputs, outputs, 1.0 / size, 1.0)
    if random.random() < 0.5:
        small = layer(random, builder, builder.op("Relu", small), outputs, outputs, 1.0, 1.0)
    weight = entries(
        random, magnitude(random) ** 0.5 * 10.0 ** random.uniform(0, 12), width, outputs
    )
    back = -weight.astype(np.float64)
    if random.random() < 0.4:
        back = back * (1 + random.choice([0.0, 2.0**-23, -(2.0**-23)], size=back.shape))
    back = single(back)
    if random.random() < 0.5:
        first = builder.op("MatMul", hidden, builder.const(weight))
        second = builder.op("MatMul", hidden, builder.const(back))
        at = builder.op("Add", builder.op("Add", first, small), second)
    else:
        joined = builder.op("Concat", hidden, small, hidden, axis=1)
        parts = [weight, np.eye(outputs, dtype=np.float32), back]
        at = builder.op("MatMul", joined, builder.const(np.concatenate(parts)))
    if random.random() < 0.3:
        at = layer(random, builder, builder.op("Relu", at), outputs, outputs, 1.0, 1.0)
    return ask(random, "branches", builder, at, box)
