"""Evaluate a piecewise-linear ONNX file in rational numbers, at a point and along a segment.

Along a segment every value is a piecewise-linear function of one number t. It is stored as its
values at the knots: t = 0, t = 1 and wherever a ReLU changes its sign. This is exact in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hostile_cases.formula import Formula, Point

Vector = list[Fraction]
Evaluation = tuple[Vector, Vector]  # an input, and the network's output at it
ZERO = Fraction(0)


class ExactNetwork:
    """Gemm, MatMul, Add, Sub, Mul, Neg, Concat, Identity, Relu of vectors; others are refused."""

    def __init__(self, data: bytes) -> None:
        graph = onnx.load_from_string(data).graph
        self._constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self._nodes = list(graph.node)
        self._input, self._output = graph.input[0].name, graph.output[0].name
        self._matrices = {
            name: [[Fraction(float(v)) for v in row] for row in np.atleast_2d(array)]
            for name, array in self._constants.items()
        }
        if strange := {n.op_type for n in self._nodes} - set(_RULES) - {"Relu"}:
            raise ValueError(f"no exact rule for {sorted(strange)}")

    def __call__(self, x: Point) -> Vector:
        return self._along([list(x)])[1][0]

    def point_where(self, formula: Formula, start: Point, end: Point) -> Evaluation | None:
        """A point of the segment where the formula holds; None proves that there is none."""
        xs, ys = self._along([list(start), list(end)])
        for left, right in pairwise(_pairs(xs, ys)):
            for t in _candidates(formula, left, right):
                x, y = (_between(a, b, t) for a, b in zip(left, right, strict=True))
                if formula.holds(x, y):
                    return x, y
        return None

    def knots(self, start: Point, end: Point) -> list[Evaluation]:
        """Inputs and outputs at both ends and at all kinks in between."""
        return _pairs(*self._along([list(start), list(end)]))

    def _along(self, xs: list[Vector]) -> tuple[list[Vector], list[Vector]]:
        values: dict[str, list[Vector]] = {self._input: xs}
        for node in self._nodes:
            if node.op_type == "Relu":
                _insert_kinks(values, node.input[0])
                result = [[max(v, ZERO) for v in z] for z in values[node.input[0]]]
            else:
                result = self._affine(node, values)
            values[node.output[0]] = result
        return values[self._input], values[self._output]

    def _affine(self, node: Any, values: dict[str, list[Vector]]) -> list[Vector]:
        count = len(values[self._input])
        operands = [
            values[name] if name in values else self._matrices[name] for name in node.input if name
        ]
        constant = [name not in values for name in node.input if name]
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        rule = _RULES[node.op_type]
        return [
            rule([o if c else o[i] for o, c in zip(operands, constant, strict=True)], attributes)
            for i in range(count)
        ]


def _gemm(operands: list[Any], attributes: dict[str, Any]) -> Vector:
    x, matrix, *bias = operands
    if attributes.get("transB"):
        matrix = list(zip(*matrix, strict=True))
    total = list(bias[0][0]) if bias else [ZERO] * len(matrix[0])
    for value, row in zip(x, matrix, strict=True):
        if value:
            total = [t + value * w if w else t for t, w in zip(total, row, strict=True)]
    return total


def _flat(operand: Any) -> Vector:
    return list(operand[0]) if operand and isinstance(operand[0], list) else list(operand)


def _entrywise(function: Callable[[Fraction, Fraction], Fraction]) -> Callable[..., Vector]:
    def apply(operands: list[Any], attributes: dict[str, Any]) -> Vector:
        left, right = map(_flat, operands)
        size = max(len(left), len(right))
        left, right = (v * size if len(v) < size else v for v in (left, right))
        return [function(a, b) for a, b in zip(left, right, strict=True)]

    return apply


_RULES: dict[str, Callable[[list[Any], dict[str, Any]], Vector]] = {
    "Gemm": _gemm,
    "MatMul": _gemm,
    "Add": _entrywise(lambda a, b: a + b),
    "Sub": _entrywise(lambda a, b: a - b),
    "Mul": _entrywise(lambda a, b: a * b),
    "Neg": lambda operands, attributes: [-v for v in operands[0]],
    "Concat": lambda operands, attributes: [v for part in operands for v in _flat(part)],
    "Identity": lambda operands, attributes: list(operands[0]),
}


def _insert_kinks(values: dict[str, list[Vector]], name: str) -> None:
    """Add knots where an entry of the value `name` changes its sign between two knots."""
    z = values[name]
    for at in range(len(z) - 2, -1, -1):
        signs = zip(z[at], z[at + 1], strict=True)
        ts = sorted({a / (a - b) for a, b in signs if (a < 0 < b) or (b < 0 < a)}, reverse=True)
        for other in values.values():
            left, right = other[at], other[at + 1]
            other[at + 1 : at + 1] = [_between(left, right, t) for t in reversed(ts)]


def _candidates(formula: Formula, left: Evaluation, right: Evaluation) -> list[Fraction]:
    """Numbers in [0, 1], one of which meets the formula if any does: the ends, the points where a
    comparison changes, and one point in each gap."""
    pairs = zip(formula.gaps(*left), formula.gaps(*right), strict=True)
    crossed = {a / (a - b) for a, b in pairs if (a < 0 < b) or (b < 0 < a)}
    ends = sorted({ZERO, Fraction(1)} | crossed)
    middles = [(a + b) / 2 for a, b in pairwise(ends)]
    return [*ends, *middles]


def _between(a: Point, b: Point, t: Fraction) -> Vector:
    return [u + t * (v - u) if u != v else u for u, v in zip(a, b, strict=True)]


def _pairs(xs: list[Vector], ys: list[Vector]) -> list[Evaluation]:
    return list(zip(xs, ys, strict=True))


def rational(values: Sequence[float] | np.ndarray[Any, Any]) -> Vector:
    return [Fraction(float(v)) for v in values]
