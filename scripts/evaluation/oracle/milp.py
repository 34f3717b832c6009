"""A query as a mixed-integer program for HiGHS, with a big-M encoding of the ReLUs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, linprog, milp
from scipy.sparse import csr_matrix

from oracle.network import Array, Chain
from oracle.query import Query

# HiGHS works with tolerances of 1e-6; a bound is widened by more than that before it is used.
WIDENING = 1e-5


@dataclass
class Program:
    """Linear constraints lower <= A v <= upper, collected entry by entry."""

    low: list[float] = field(default_factory=list)  # of the variables
    high: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)  # 1 where a variable is an integer
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    sides: list[tuple[float, float]] = field(default_factory=list)  # of the constraints

    def variables(self, low: Array, high: Array, *, whole: bool = False) -> list[int]:
        first = len(self.low)
        self.low += list(low)
        self.high += list(high)
        self.whole += [int(whole)] * len(low)
        return list(range(first, len(self.low)))

    def constrain(self, terms: dict[int, float], low: float, high: float) -> None:
        self.entries += [(len(self.sides), v, c) for v, c in terms.items() if c != 0.0]
        self.sides.append((low, high))

    def matrix(self) -> csr_matrix:
        rows, columns, values = zip(*self.entries, strict=True) if self.entries else ((), (), ())
        return csr_matrix((values, (rows, columns)), shape=(len(self.sides), len(self.low)))

    def minimise(self, cost: Array, **options: float) -> OptimizeResult:
        """Minimise the cost with HiGHS; return its result."""
        sides = np.array(self.sides).reshape(-1, 2)
        return milp(
            cost,
            integrality=self.whole,
            bounds=Bounds(self.low, self.high),
            constraints=LinearConstraint(self.matrix(), *sides.T) if len(sides) else (),
            options=options,
        )


def layer_bounds(chain: Chain, lower: Array, upper: Array) -> list[tuple[Array, Array]]:
    """Bounds on the inputs of each ReLU layer, by intervals, then by LPs for unstable neurons."""
    result: list[tuple[Array, Array]] = []
    low, high = lower, upper
    for index, (weight, bias) in enumerate(chain.layers[:-1]):
        up, down = np.maximum(weight, 0.0), np.minimum(weight, 0.0)
        low, high = up @ low + down @ high + bias, up @ high + down @ low + bias
        low, high = low - WIDENING, high + WIDENING
        if index > 0:
            _tighten(chain, lower, upper, result, low, high)
        result.append((low, high))
        low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    return result


def _tighten(
    chain: Chain,
    lower: Array,
    upper: Array,
    known: list[tuple[Array, Array]],
    low: Array,
    high: Array,
) -> None:
    program, last = encode(chain, lower, upper, known)
    matrix = program.matrix()
    sides = np.array(program.sides)
    finite_low, finite_high = np.isfinite(sides[:, 0]), np.isfinite(sides[:, 1])
    rows = csr_matrix(np.vstack([matrix.toarray()[finite_high], -matrix.toarray()[finite_low]]))
    right = np.concatenate([sides[finite_high, 1], -sides[finite_low, 0]])
    box = np.stack([program.low, program.high], axis=1)
    weight, bias = chain.layers[len(known)]
    for neuron in np.flatnonzero((low < 0) & (high > 0)):
        for sign in (1.0, -1.0):
            cost = np.zeros(len(program.low))
            cost[last] = sign * weight[neuron]
            solved = linprog(cost, A_ub=rows, b_ub=right, bounds=box, method="highs")
            if solved.status == 0 and sign > 0:
                low[neuron] = max(low[neuron], solved.fun + bias[neuron] - WIDENING)
            elif solved.status == 0:
                high[neuron] = min(high[neuron], -solved.fun + bias[neuron] + WIDENING)


def encode(
    chain: Chain, lower: Array, upper: Array, bounds: list[tuple[Array, Array]]
) -> tuple[Program, list[int]]:
    """Encode the layers that have bounds; return also the variables of the last layer's outputs."""
    program = Program()
    inputs = program.variables(lower, upper)
    for (weight, bias), (low, high) in zip(chain.layers, bounds, strict=False):
        outputs = program.variables(np.zeros(len(bias)), np.maximum(high, 0.0))
        switches = program.variables((low >= 0).astype(float), (high > 0).astype(float), whole=True)
        for n, (output, switch) in enumerate(zip(outputs, switches, strict=True)):
            if high[n] <= 0:
                continue
            below = {output: 1.0} | {v: -c for v, c in zip(inputs, weight[n], strict=True)}
            if low[n] >= 0:
                program.constrain(below, bias[n], bias[n])
                continue
            program.constrain(below, bias[n], np.inf)  # a >= z
            program.constrain(below | {switch: -low[n]}, -np.inf, bias[n] - low[n])
            program.constrain({output: 1.0, switch: -high[n]}, -np.inf, 0.0)
        inputs = outputs
    return program, inputs


def solve(
    chain: Chain, query: Query, bounds: list[tuple[Array, Array]], *, slack: float, seconds: float
) -> tuple[bool | None, Array | None]:
    """Whether some input meets every output constraint up to the slack, and such an input.

    None instead of an answer means that the time was up.
    """
    program, last = encode(chain, query.lower, query.upper, bounds)
    weight, bias = chain.layers[-1]
    cost = np.zeros(len(program.low))
    for row, offset in zip(query.rows, query.offsets, strict=True):
        terms = dict(zip(last, row @ weight, strict=True))
        program.constrain(terms, -slack - offset - row @ bias, np.inf)
        cost[last] -= row @ weight
    solved = program.minimise(cost, time_limit=seconds)
    if solved.status == 2:
        return False, None
    if solved.x is not None:
        return True, solved.x[: len(query.lower)]
    if solved.status == 1:
        return None, None
    raise RuntimeError(f"HiGHS gave up: {solved.message}")
