"""Decide whether an answer is wrong, with onnxruntime on the file and with rational arithmetic.

`unsat` is a claim about the network over the real numbers: a rational point of the box whose exact
output is unsafe refutes it. With float32 semantics it is a claim about float32 programs:
onnxruntime's own output at a float32 point refutes it. `sat` is a claim about onnxruntime's
program: the point has to lie in the box, and its output has to equal onnxruntime's and be unsafe,
all with no tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, product

import numpy as np
import onnxruntime

from hostile_cases.case import Array, Ball, Case
from hostile_cases.exact import Evaluation, ExactNetwork, rational
from hostile_cases.formula import Formula
from hostile_cases.tool import Answer

onnxruntime.set_default_logger_severity(4)
LINES = 4  # segments searched in rational arithmetic, in more than one dimension


class Program:
    """The file as onnxruntime runs it."""

    def __init__(self, network: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            network, options, providers=["CPUExecutionProvider"]
        )
        (entry,) = self._session.get_inputs()
        self._name, self._shape = entry.name, entry.shape

    def __call__(self, x: Array | Sequence[float]) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            single = np.asarray(x, np.float64).astype(np.float32)
        (y,) = self._session.run(None, {self._name: single.reshape(self._shape)})
        return np.asarray(y, np.float32).reshape(-1)


class Oracle:
    """Searches a case for points that refute answers."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.formula = Formula.of(case.property)
        self.program = Program(case.network)

    def fault(self, answer: Answer, *, float32: bool = False) -> str:
        """The fault of an answer to the property; empty if none is found."""
        if answer.status == "crash":
            return answer.reason
        if answer.status == "sat":
            return self._sat_fault(answer)
        if answer.status != "unsat":
            return ""
        if self.case.planted:
            return f"unsat, but onnxruntime has given {self.case.planted}"
        if float32:
            if self.deployed is not None:
                return f"unsat, but onnxruntime gives {shown(*self.deployed)}"
            return ""
        return f"unsat, but in real arithmetic {shown(*self.real)}" if self.real else ""

    @cached_property
    def real(self) -> Evaluation | None:
        """A point of the box at which the network over the real numbers is unsafe."""
        exact = ExactNetwork(self.case.network)
        for start, end in _segments(self.case.points):
            if found := exact.point_where(self.formula, rational(start), rational(end)):
                return found
        return None

    @cached_property
    def deployed(self) -> tuple[Array, Array] | None:
        """A point of the box, in float32, at which onnxruntime's output is unsafe."""
        tried = [np.array(point) for point in self.case.points]
        if self.real is not None:
            tried.insert(0, np.array([float(v) for v in self.real[0]]))
        for point in tried:
            x = point.astype(np.float32).astype(np.float64)
            y = self.program(x)
            if np.isfinite(y).all() and self.formula.holds(rational(x), rational(y)):
                return x, y
        return None

    def _sat_fault(self, answer: Answer) -> str:
        if answer.x is None or answer.y is None:
            return "sat without values"
        if not (np.isfinite(answer.x).all() and np.isfinite(answer.y).all()):
            return "sat with values that are not finite"
        y = self.program(answer.x)
        if not np.array_equal(y, answer.y):
            return f"sat, but onnxruntime does not give {shown(answer.x, answer.y)}: {y.tolist()}"
        if not self.formula.holds(rational(answer.x), rational(y)):
            return f"sat, but not unsafe or not in the box: {shown(answer.x, y)}"
        return ""

    def ball_fault(self, ball: Ball, answer: Answer) -> str:
        """The fault of an answer about a ball; empty if none is found."""
        if answer.status == "crash":
            return answer.reason
        y = self.program(ball.center)
        label, others = int(y.argmax()), [k for k in range(len(y)) if k != int(y.argmax())]
        if answer.status == "not_robust":
            return self._counterexample_fault(ball, answer, label)
        if answer.status != "robust" or not others:
            return ""
        rows = " ".join(f"(>= Y_{k} Y_{label})" for k in others)
        formula = Formula.of(f"(assert (or {rows}))".encode())
        exact, center = ExactNetwork(self.case.network), rational(ball.center)
        planted = [(center, rational(p)) for p in self.case.points if in_ball(np.array(p), ball)]
        for start, end in [*planted, *ball_segments(ball)]:
            if found := exact.point_where(formula, start, end):
                return f"robust with class {label}, but in real arithmetic {shown(*found)}"
        return ""

    def radius_fault(self, ball: Ball, answer: Answer) -> str:
        """The fault of the bounds of a radius; empty if none is found. No point nearer than the
        lower bound may have another class over the real numbers, and the counterexample at the
        upper bound must have another class in float32."""
        if answer.status == "crash":
            return answer.reason
        lower, upper = answer.ends
        if not 0 <= lower <= upper:
            return f"the ends are {lower!r} and {upper!r}"
        if lower > 0:
            inside = replace(ball, epsilon=float(np.nextafter(lower, 0)))
            if fault := self.ball_fault(inside, Answer("robust")):
                return f"the lower end is {lower!r}: {fault}"
        if upper == np.inf:
            return ""
        label = int(self.program(ball.center).argmax())
        return self._counterexample_fault(replace(ball, epsilon=upper), answer, label)

    def _counterexample_fault(self, ball: Ball, answer: Answer, label: int) -> str:
        if answer.x is None or answer.y is None:
            return "not robust without a counterexample"
        y = self.program(answer.x)
        if not np.array_equal(y, answer.y):
            return f"onnxruntime does not give {shown(answer.x, answer.y)}: {y.tolist()}"
        if not np.isfinite(y).all() or not (np.delete(y, label) >= y[label]).any():
            return f"the counterexample has class {label} as well: {shown(answer.x, y)}"
        if in_ball(answer.x, ball):
            return ""
        return f"the counterexample is not in the ball: {answer.x}"


def in_ball(x: Array, ball: Ball) -> bool:
    pairs = zip(rational(x), rational(ball.center), strict=True)
    offsets, epsilon = [abs(a - b) for a, b in pairs], Fraction(ball.epsilon)
    if ball.norm == "linf":
        return max(offsets) <= epsilon
    if ball.norm == "l1":
        return sum(offsets, Fraction(0)) <= epsilon
    return sum((v * v for v in offsets), Fraction(0)) <= epsilon**2


def ball_segments(ball: Ball) -> Iterator[tuple[list[Fraction], list[Fraction]]]:
    """Segments through the centre that lie in the ball, along rational directions of norm 1."""
    center, epsilon = rational(ball.center), Fraction(ball.epsilon)
    size = len(center)
    directions = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    if ball.norm == "linf":
        directions = [[Fraction(s) for s in signs] for signs in product((1, -1), repeat=size)]
        directions = directions[: len(directions) // 2]
    else:
        sides = {"l1": Fraction(1, 2), "l2": Fraction(3, 5)}[ball.norm]
        rest = {"l1": Fraction(1, 2), "l2": Fraction(4, 5)}[ball.norm]
        for i, j in combinations(range(size), 2):
            for sign in (1, -1):
                direction = [Fraction(0)] * size
                direction[i], direction[j] = sides, sign * rest
                directions.append(direction)
    for direction in directions:
        ends = [[c + s * epsilon * d for c, d in zip(center, direction, strict=True)]
                for s in (-1, 1)]  # fmt: skip
        yield ends[0], ends[1]


def _segments(
    points: Sequence[tuple[float, ...]],
) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """In one dimension the whole range; in more dimensions a path through the points."""
    if not points:
        return
    if len(points[0]) == 1:
        yield min(points), max(points)
    elif len(points) == 1:
        yield points[0], points[0]
    else:
        yield from list(pairwise(points))[:LINES]


def shown(x: Sequence[Fraction] | Array, y: Sequence[Fraction] | Array) -> str:
    """x and y as floats, clipped to the range of float64 and shortened to fit a line."""
    return f"y = {_short(y)} at x = {_short(x)}"


def _short(values: Sequence[Fraction] | Array) -> list[float]:
    top = Fraction(10) ** 300
    first = rational(values[:8]) if isinstance(values, np.ndarray) else values[:8]
    return [float(min(max(v, -top), top)) for v in first]
