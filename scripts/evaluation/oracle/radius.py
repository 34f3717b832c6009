"""The exact distance to the nearest input of another class, for small networks.

In l-infinity and l1 this is a mixed-integer program per class. In l2, all regions that may contain
a nearer input are visited. In each, the nearest point of another class is the solution of a least
distance problem (Lawson and Hanson, 1974), exact up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from scipy.optimize import nnls

from oracle.milp import Program, encode, layer_bounds
from oracle.network import Array, Chain

TOLERANCE = {"l2": 1e-9, "linf": 2e-5, "l1": 2e-5}  # relative, of the oracle's answers


def exact_radius(
    chain: Chain, x: Array, norm: str, maximum: float, clip: tuple[float, float] | None = None
) -> float:
    """The distance to the nearest input with another class or a tie; infinite past the maximum."""
    label = int(chain.pre_activations(x)[-1].argmax())
    low, high = x - maximum, x + maximum
    if clip is not None:
        low, high = np.maximum(low, clip[0]), np.minimum(high, clip[1])
    if norm == "l2":
        return _by_regions(chain, x, label, maximum, low, high)
    classes = [c for c in range(len(chain.layers[-1][1])) if c != label]
    distances = [_by_program(chain, x, label, c, norm, low, high) for c in classes]
    best = min(distances)
    return best if best <= maximum else math.inf


def _by_program(
    chain: Chain, x: Array, label: int, other: int, norm: str, low: Array, high: Array
) -> float:
    """min ||x' - x|| such that y_other >= y_label, with big-M ReLUs."""
    program, last = encode(chain, low, high, layer_bounds(chain, low, high))
    weight, bias = chain.layers[-1]
    margin = dict(zip(last, weight[other] - weight[label], strict=True))
    program.constrain(margin, bias[label] - bias[other], np.inf)
    sizes = len(x) if norm == "l1" else 1
    far = np.full(sizes, float(np.abs(np.stack([high - x, x - low])).max()))
    spread = program.variables(np.zeros(sizes), far)
    for i, value in enumerate(x):
        bound = spread[i if norm == "l1" else 0]
        program.constrain({i: 1.0, bound: -1.0}, -np.inf, value)
        program.constrain({i: 1.0, bound: 1.0}, value, np.inf)
    return _solved(program, spread)


def _solved(program: Program, spread: list[int]) -> float:
    cost = np.zeros(len(program.low))
    cost[spread] = 1.0
    solved = program.minimise(cost, mip_rel_gap=1e-7)
    if solved.status == 2:
        return math.inf
    if solved.status != 0:
        raise RuntimeError(f"HiGHS gave up: {solved.message}")
    return float(solved.fun)


def _by_regions(
    chain: Chain, x: Array, label: int, maximum: float, low: Array, high: Array
) -> float:
    """The minimum distance over all regions, without those that are too far away."""
    eye = np.eye(len(x))
    best, found = maximum, math.inf
    # Constraints are rows . u + values >= 0 with u = x' - x.
    box = np.vstack([eye, -eye]), np.concatenate([x - low, high - x])
    stack: list[tuple[int, Array, Array, Array, Array]] = [(0, eye, x, *box)]
    while stack:
        layer, form, value, rows, values = stack.pop()
        weight, bias = chain.layers[layer]
        form, value = weight @ form, weight @ value + bias
        if layer == len(chain.layers) - 1:
            for other in range(len(bias)):
                if other == label:
                    continue
                row, offset = form[other] - form[label], value[other] - value[label]
                distance = least_distance(np.vstack([rows, row]), np.append(values, offset))
                if distance <= best:
                    best = found = distance
            continue
        for signs in _patterns(value):
            more = np.vstack([rows, signs[:, None] * form])
            level = np.concatenate([values, signs * value])
            if least_distance(more, level) <= best:
                on = signs > 0
                stack.append((layer + 1, form * on[:, None], value * on, more, level))
    return found


def _patterns(value: Array) -> Iterator[Array]:
    """All patterns of a layer, the centre's pattern last, so that the stack takes it first."""
    own = np.where(value >= 0, 1.0, -1.0)
    for flips in product((-1.0, 1.0), repeat=len(value)):
        yield own * np.array(flips)


def least_distance(rows: Array, values: Array) -> float:
    """min |u| such that rows u + values >= 0; infinite if there is no such u.

    With w >= 0 the least-squares solution of E w = f, E = [rows^T; -values^T], f = (0, ..., 1), and
    r = E w - f, the nearest point is -r_u / r_last, and there is none if r = 0.
    """
    stacked = np.vstack([rows.T, -values])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    weights, length = nnls(stacked, target, maxiter=50 * len(values))
    rest = stacked @ weights - target
    if length < 1e-9 or abs(rest[-1]) < 1e-12:
        return math.inf
    return float(np.linalg.norm(rest[:-1] / rest[-1]))
