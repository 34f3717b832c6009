"""Narrow spikes that no attack finds, built from numbers of any magnitude."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from hostile_cases.case import Case, box_property
from hostile_cases.exact import ExactNetwork, rational
from hostile_cases.networks import Redraw, ask
from hostile_cases.numbers import magnitude, single
from tests.helpers.network_models import Builder


def make(random: np.random.Generator) -> Case:
    """relu(r - |x - p|) with every layer scaled, in a box far wider than r."""
    inputs = int(random.choice([1, 1, 2, 3]))
    size = float(10.0 ** random.uniform(-10, 10))
    point = single(random.uniform(-1, 1, size=inputs) * size)
    lower, upper = (single(np.full(inputs, s * size)).astype(np.float64) for s in (-1, 1))
    builder = Builder([1, inputs])
    first = magnitude(random) / size
    sides = np.concatenate([np.eye(inputs), -np.eye(inputs)]).T * first
    bias = np.concatenate([-point, point]).astype(np.float64) * first
    at = builder.op("Gemm", "x", builder.const(single(sides)), builder.const(single(bias)))
    at = builder.op("Relu", at)
    radius = first * size * 10.0 ** random.uniform(-6, -1)
    second = magnitude(random) / max(radius, 1e-45)
    down = single(np.full((2 * inputs, 1), -second))
    at = builder.op(
        "Gemm", at, builder.const(down), builder.const(single(np.array([second * radius])))
    )
    at = builder.op("Relu", at)
    third = magnitude(random)
    outputs = int(random.integers(1, 3))
    last = np.array([[third, -third][:outputs]])
    at = builder.op("Gemm", at, builder.const(single(last)), builder.const(np.zeros(outputs)))
    case = ask(random, "spikes", builder, at, (lower, upper), [tuple(map(float, point))])
    exact = ExactNetwork(case.network)
    height = exact(rational(point))[0]
    if not 0 < height < Fraction(10) ** 300:
        raise Redraw("there is no spike")
    share = float(random.choice([0.25, 0.5, 1.0, 1.0 + 1e-9, 2.0]))
    limit = float(height) * share
    if not 0 < limit < np.inf:
        raise Redraw("the spike is no float64")
    prop = box_property(lower.tolist(), upper.tolist(), outputs, f"(>= Y_0 {limit!r})")
    return replace(case, property=prop)
