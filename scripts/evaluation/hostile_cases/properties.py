"""Unusual but valid property texts, on networks that float32 computes exactly."""

from __future__ import annotations

from itertools import product

import numpy as np

from hostile_cases.case import Case
from hostile_cases.formula import Formula
from hostile_cases.networks import Redraw
from hostile_cases.property_text import FIRST, SECOND, Dialect, line_end, literal, separated
from tests.helpers.network_models import Builder

Random = np.random.Generator
GRID = (-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0)
LITTLE = 2.0**-30


def make(random: Random) -> Case:
    """A random box and formula, in a form that the standards allow."""
    inputs = int(random.choice([1, 1, 2]))
    network, outputs = _network(random, inputs)
    dialect = SECOND if random.random() < 0.3 else FIRST
    lower = random.choice(GRID, size=inputs)
    upper = lower + random.choice([0.0, 0.5, 1.0, 4.0, 4.0], size=inputs)
    bounds = [_bounds(random, dialect, i, lower[i], upper[i]) for i in range(inputs)]
    parts = [part for bound in bounds for part in bound]
    parts += [_formula(random, dialect, outputs, 2) for _ in range(int(random.integers(1, 3)))]
    random.shuffle(parts)
    text = dialect.head(random, inputs, outputs)
    text += "".join(f"(assert {part}){line_end(random)}" for part in parts)
    data = separated(random, text, dialect)
    try:
        formula = Formula.of(data)
        formula.holds([0] * inputs, [0] * outputs)  # type: ignore[list-item]
    except (OverflowError, ZeroDivisionError, ValueError) as error:
        raise Redraw(f"the text means nothing: {error}") from None
    ends = [(a, b) for a, b in zip(lower, upper, strict=True)]
    corners = [tuple(map(float, corner)) for corner in product(*ends)]
    inside = [tuple(map(float, lower + (upper - lower) * random.random(inputs).round(2)))]
    return Case("properties", network, data, (*corners, *inside))


def _network(random: Random, inputs: int) -> tuple[bytes, int]:
    """A network that uses few bits, so that onnxruntime and rational arithmetic agree."""
    outputs = int(random.integers(1, 3))
    builder = Builder([1, inputs])
    at, before = "x", inputs
    if random.random() < 0.7:
        first = random.integers(-2, 3, size=(inputs, 3)).astype(np.float32)
        bias = builder.const(random.integers(-2, 3, size=3) / 2)
        at, before = builder.op("Relu", builder.op("Gemm", at, builder.const(first), bias)), 3
    last = random.integers(-2, 3, size=(before, outputs)).astype(np.float32)
    bias = builder.const(random.integers(-2, 3, size=outputs) / 2)
    at = builder.op("Gemm", at, builder.const(last), bias)
    return builder.model(at).SerializeToString(), outputs


def _bounds(random: Random, dialect: Dialect, index: int, low: float, high: float) -> list[str]:
    """Both bounds of an input: plain, scaled, with sides swapped, repeated or as an equation."""
    x = dialect.input(index)
    if low == high and random.random() < 0.5:
        return [f"({dialect.equal} {x} {literal(random, low, dialect)})"]
    pair = [("<=", high), (">=", low)]
    if random.random() < 0.2:
        pair.append((">=", low - 1) if random.random() < 0.5 else ("<=", high + 1))
    if random.random() < 0.05:
        pair.append(("<=", low - LITTLE))  # an empty box
    if random.random() < 0.1:
        pair = [(sign[:1], value) for sign, value in pair]
    result = []
    for sign, value in pair:
        number = literal(random, value, dialect)
        kind = random.integers(6)
        if kind == 0:
            result.append(f"({_turned(sign)} {number} {x})")
        elif kind == 1:
            result.append(f"({sign} (* 4.0 {x}) {literal(random, 4 * value, dialect)})")
        elif kind == 2:
            result.append(f"({_turned(sign)} (* -2.0 {x}) {literal(random, -2 * value, dialect)})")
        elif kind == 3:
            shifted = literal(random, value + 8, dialect)
            result.append(f"({sign} (+ {x} 8.0) {shifted})")
        else:
            result.append(f"({sign} {x} {number})")
    return result


def _formula(random: Random, dialect: Dialect, outputs: int, depth: int) -> str:
    if depth and random.random() < 0.6:
        word = str(random.choice(["and", "or"]))
        count = int(random.integers(1, 4))
        parts = [_formula(random, dialect, outputs, depth - 1) for _ in range(count)]
        return f"({word} {' '.join(parts)})"
    sign = str(random.choice(["<=", ">=", "<", ">", dialect.equal]))
    left, right = (_term(random, dialect, outputs) for _ in range(2))
    if random.random() < 0.5:
        right = literal(random, float(random.integers(-8, 9)) / 4, dialect)
    return f"({sign} {left} {right})"


def _term(random: Random, dialect: Dialect, outputs: int) -> str:
    y = [dialect.output(int(k)) for k in random.integers(outputs, size=3)]
    small = literal(random, float(random.integers(-8, 9)) / 4, dialect)
    huge = literal(random, float(random.choice([1e300, 1e308, -1e308, 1.7e308, 1e-300, 5e-324])),
                   dialect)  # fmt: skip
    patterns = [
        y[0],
        small,
        f"(* {small} {y[0]})",
        f"(+ {y[0]} {y[1]})",
        f"(- {y[0]} {y[1]} {y[2]})",
        f"(- {y[0]})",
        f"(+ {y[0]} {small} (* {small} {y[1]}))",
        f"(* 2.0 3.0 {y[0]})",
    ]
    extreme = [
        f"(* {huge} {y[0]})",
        f"(+ (* {huge} {y[0]}) (* {huge} {y[1]}))",
        f"(- (* {huge} {y[0]}) {huge})",
        f"(* 1e200 (* 1e200 {y[0]}))" if dialect.exponents else y[0],
        f"(- (+ (* {huge} {y[0]}) {y[1]}) (* {huge} {y[0]}))",
    ]
    patterns = extreme if random.random() < 0.12 else patterns
    return str(patterns[int(random.integers(len(patterns)))])


def _turned(sign: str) -> str:
    return sign.replace("<", "!").replace(">", "<").replace("!", ">")
