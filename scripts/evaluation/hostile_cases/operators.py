"""Operators with every combination of attributes, read as onnxruntime runs them.

The unsafe set is a small box around onnxruntime's output at one point of the input box, so `unsat`
is wrong. This box is wider than any rounding error: inputs and weights are at most 2 in size and a
sum has at most n = 128 terms, so float32 is off by at most gamma(n) * n * 4 < 4e-3 in any order of
addition. Reading a wrong element of a window nearly always changes the output by a multiple of 1/8.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hostile_cases.case import Array, Case, box_property
from hostile_cases.networks import Redraw
from hostile_cases.operator_table import OPERATORS, Sizes
from hostile_cases.oracle import Program, shown
from tests.helpers.network_models import Builder
from tests.helpers.operator_cases import CASES

ROUNDING = 4e-3
SCALES = (1.0, 1e-4)
Build = Callable[[Builder], str]


def make(random: np.random.Generator) -> Case:
    """An operator alone, scaled down, or beside a branch with large values and weight 0."""
    name, shape, opset, build = _draw(random)
    builder = Builder(shape, opset, seed=int(random.integers(1 << 31)))
    scale = float(random.choice(SCALES))
    try:
        output = build(builder)
        if random.random() < 0.3:
            output = builder.op("Relu", output)
        if scale != 1:
            output = builder.op("Mul", output, builder.const(scale))
        output = _flat(random, builder, output)
        network = builder.model(output).SerializeToString()
        program = Program(network)
        point = np.round(random.uniform(-2, 2, size=int(np.prod(shape))) * 8) / 8
        y = program(point)
    except Exception as error:  # onnxruntime has no common base class for its errors
        raise Redraw(f"onnxruntime refuses {name}: {error}") from None
    if not y.size or not np.isfinite(y).all() or y.size > 2000 or np.abs(y).max() > 1e4:
        raise Redraw(f"{name} has no use as a network")
    lower, upper = point.copy(), point.copy()
    if random.random() < 0.3:
        wide = random.random(len(point)) < random.choice([0.02, 0.3, 1.0])
        lower, upper = point - wide * random.random(), point + wide * random.random()
    prop = box_property(lower.tolist(), upper.tolist(), y.size, *_around(random, y, scale))
    planted = f"{shown(point, y)} ({name}, opset {opset})"
    return Case(name, network, prop, (tuple(point.tolist()),), planted)


def _draw(random: np.random.Generator) -> tuple[str, Sizes, int, Build]:
    opset = int(random.integers(7, 24))
    if random.random() < 0.25:
        name, shape, opsets, build = CASES[int(random.integers(len(CASES)))]
        return name, shape, int(random.choice(opsets)) if random.random() < 0.5 else opset, build
    name = str(random.choice(list(OPERATORS)))
    shape, built = OPERATORS[name](random, opset)
    return name, shape, opset, built


def _flat(random: np.random.Generator, builder: Builder, output: str) -> str:
    """The output as a vector, possibly plus 0 times a branch with values of a million or more."""
    flat = str(builder.op("Reshape", output, builder.ints(1, -1)))
    if random.random() < 0.6:
        million = builder.const(random.choice([1e6, 1e9]))
        huge = builder.op("Relu", builder.op("Mul", flat, million))
        flat = str(builder.op("Add", flat, builder.op("Mul", huge, builder.const(0.0))))
    return flat


def _around(random: np.random.Generator, y: Array, scale: float) -> list[str]:
    """Constraints that keep all outputs, or one, as close to y as rounding allows."""
    chosen = range(y.size) if random.random() < 0.7 else [int(random.integers(y.size))]
    slack = ROUNDING * scale
    return [
        f"({sign} Y_{k} {float(y[k]) + side * slack!r})"
        for k in chosen
        for sign, side in ((">=", -1), ("<=", 1))
    ]
