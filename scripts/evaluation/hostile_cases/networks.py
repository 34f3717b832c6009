"""Boxes, properties and balls around small networks of any magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from hostile_cases.case import Array, Ball, Case, Norm, box_property
from hostile_cases.exact import ExactNetwork, rational
from hostile_cases.numbers import entries, magnitude, near, single
from hostile_cases.oracle import Program
from tests.helpers.network_models import Builder

TRIES = 50
TOP = Fraction(17, 10) * Fraction(10) ** 308
NORMS: tuple[Norm, ...] = ("linf", "l2", "l1")
Generator = np.random.Generator


class Redraw(Exception):
    """The random draw is unusable, for instance because onnxruntime overflows."""


def layer(
    random: Generator, builder: Builder, at: str, before: int, after: int, gain: float, size: float
) -> str:
    """A Gemm with weights of size `gain` and biases of size `size`, or 0 in half of the cases."""
    weight = builder.const(entries(random, gain, before, after))
    bias = entries(random, size, after) if random.random() < 0.5 else np.zeros(after)
    return str(builder.op("Gemm", at, weight, builder.const(bias)))


def random_box(random: Generator, inputs: int, size: float) -> tuple[Array, Array]:
    """A box with float32 bounds: wide, narrow, a few float32 values wide, or a point."""
    center = entries(random, size, inputs).astype(np.float64) * (random.random() < 0.9)
    width = size * 10.0 ** random.uniform(-7, 0, size=inputs) * (random.random(inputs) < 0.85)
    with np.errstate(under="ignore"):
        lower, upper = single(center - width), single(center + width)
    return lower.astype(np.float64), upper.astype(np.float64)


def box_points(random: Generator, lower: Array, upper: Array) -> list[tuple[float, ...]]:
    """Corners, the middle and random float32 points of a box."""
    ends = [sorted({float(a), float(b)}) for a, b in zip(lower, upper, strict=True)]
    corners = list(product(*ends))
    random.shuffle(corners)
    inside = lower / 2 + upper / 2, lower + random.random(len(lower)) * (upper / 2 - lower / 2) * 2
    middles = [tuple(np.clip(single(p).astype(np.float64), lower, upper)) for p in inside]
    return [*corners[:2], *middles, *corners[2:]]


def ask(
    random: Generator,
    name: str,
    builder: Builder,
    output: str,
    box: tuple[Array, Array],
    points: Sequence[tuple[float, ...]] = (),
    rows: int | None = None,
) -> Case:
    """A case: a property with limits near values of the network, and balls in the box."""
    lower, upper = box
    network = builder.model(output).SerializeToString()
    program = Program(network)
    points = [*points, *box_points(random, lower, upper)]
    if not all(np.isfinite(program(point)).all() for point in points):
        raise Redraw("onnxruntime overflows")
    exact = ExactNetwork(network)
    start, end = rational(points[0]), rational(points[1 % len(points)])
    knots = [y for _, y in exact.knots(start, end)] + [rational(program(p)) for p in points]
    outputs = len(knots[0])
    count = rows or int(random.choice([1, 1, 2]))
    extreme = 0.3 if rows is None else 0.7
    unsafe = [_row(random, knots, outputs, extreme) for _ in range(count)]
    if len(unsafe) > 1 and random.random() < 0.5:
        unsafe = [f"(or {' '.join(unsafe)})"]
    prop = box_property(lower.tolist(), upper.tolist(), outputs, *unsafe)
    return Case(name, network, prop, tuple(points), balls=_balls(random, lower, upper, outputs))


def _row(random: Generator, knots: list[list[Fraction]], outputs: int, extreme: float = 0.3) -> str:
    """One comparison with a limit close to its minimum or maximum at the knots; `extreme` is the
    probability of a factor of any size up to the largest float64."""
    k = int(random.integers(outputs))
    term, coefficients = f"Y_{k}", {k: 1.0}
    if random.random() < max(0.3, extreme):
        factor = float(single(magnitude(random)) * random.choice([-1.0, 1.0]))
        if random.random() < extreme:
            factor = _top(random, [y[k] for y in knots])
        term, coefficients = f"(* {factor!r} Y_{k})", {k: factor}
    if outputs > 1 and random.random() < 0.4:
        other = (k + 1) % outputs
        term, coefficients = f"(- {term} Y_{other})", {**coefficients, other: -1.0}
    values = sorted(sum((Fraction(c) * y[i] for i, c in coefficients.items()), Fraction(0))
                    for y in knots)  # fmt: skip
    least = random.random() < 0.5
    value = values[0 if least else -1]
    if random.random() < 0.2:
        value = values[int(random.integers(len(values)))]
    if max(abs(v) for v in values) > TOP:
        raise Redraw("the limit is no float64")
    limit = near(random, float(value), float(max(abs(v) for v in values)))
    sign = ("<=" if least else ">=") if random.random() < 0.8 else ("<" if least else ">")
    return f"({sign} {term} {limit!r})"


def _top(random: Generator, values: list[Fraction]) -> float:
    """A factor that scales the values to the end of the range of float64, or somewhere below."""
    size = max(abs(v) for v in values)
    wanted = TOP / (1 if random.random() < 0.5 else Fraction(10) ** int(random.integers(1, 600)))
    return float(min(wanted / size if size else wanted, TOP) * random.choice([-1, 1]))


def _balls(random: Generator, lower: Array, upper: Array, outputs: int) -> tuple[Ball, ...]:
    """A ball of each norm at the centre of the box, if there are classes to compare."""
    if outputs < 2 or random.random() < 0.5:
        return ()
    center = single(lower / 2 + upper / 2)
    epsilon = float(np.max(upper / 2 - lower / 2)) * float(random.choice([0.01, 0.5, 1.0]))
    if not epsilon > 0 or not np.isfinite(single(np.abs(center).max() + epsilon)):
        return ()
    return tuple(Ball(tuple(map(float, center)), epsilon, norm) for norm in NORMS)
