"""The exact least value of a network's outputs over a polytope, by mixed-integer programming."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from fgp_vnn.domain.sets import Box, Domain, L1Ball
from fgp_vnn.network.model import AffineMap, Combination, Dense, Network
from fgp_vnn.query import Query

Array = NDArray[np.float64]
Polytope = tuple[Array, Array]  # the x with A x <= b

# HiGHS keeps constraints up to 1e-6: a least value is known up to about this much.
TOLERANCE = 1e-5


def polytope(domain: Domain) -> Polytope:
    """A box or an l1 ball as half-spaces."""
    if isinstance(domain, Box):
        eye = np.eye(domain.lower.shape[-1])
        return np.vstack([eye, -eye]), np.concatenate([domain.upper, -domain.lower])
    if isinstance(domain, L1Ball):
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(domain.center))))
        return signs, signs @ domain.center.numpy() + domain.radius
    raise TypeError(f"{type(domain).__name__} is not a polytope")


def polygon(center: Array, radius: float, *, outside: bool, corners: int = 48) -> Polytope:
    """A regular polygon around a disc, or one inside it."""
    angles = 2 * np.pi * np.arange(corners) / corners
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    reach = radius if outside else radius * np.cos(np.pi / corners)
    return normals, normals @ center + reach


def least_worst(query: Query, where: Polytope) -> float:
    """The least over x of the greatest row of the best disjunct: at most 0 where it is met."""
    per_disjunct = [
        least(query.network, where, rows=query.rows_of(d)) for d in range(query.disjuncts)
    ]
    return min(per_disjunct, default=np.inf)


def least(
    network: Network,
    where: Polytope,
    *,
    rows: Sequence[int],
    target: int | None = None,
    signs: Sequence[torch.Tensor] | None = None,
) -> float:
    """The least of max(z_j for j in rows) of map `target`, the output unless said otherwise.

    `signs` [n_k] of -1 and +1 close neurons; infinity where no point is left.
    """
    last = len(network.layers) if target is None else target
    program = _Program(network.inputs, where)
    for k in range(last):
        program.add_relu(network.maps[k], None if signs is None else signs[k].numpy())
    return program.minimise(network.maps[last], rows)


class _Program:
    """Variables x, then a_k and its switches for each layer; constraints A v <= b."""

    def __init__(self, inputs: int, where: Polytope) -> None:
        matrix, right = where
        self.rows: list[Array] = list(matrix)
        self.right: list[float] = list(right)
        self.switches: list[bool] = [False] * inputs
        self.places = [slice(0, inputs)]
        self.radius = float(np.abs(right).max()) * 4 + 4
        self.low = [-self.radius] * inputs
        self.high = [self.radius] * inputs

    def form(self, affine: AffineMap) -> tuple[Array, Array]:
        """z as a matrix on the variables so far, and its constant part."""
        if isinstance(affine, Combination):
            matrix, bias = self.form(affine.inner)
            rows = affine.rows.numpy()
            return rows @ matrix, rows @ bias + affine.offset.numpy()
        assert isinstance(affine, Dense)
        matrix = np.zeros((affine.outputs, len(self.low)))
        for source, weight in zip(affine.sources, affine.weights, strict=True):
            matrix[:, self.places[source]] += weight.numpy()
        return matrix, affine.bias.numpy()

    def add_relu(self, affine: AffineMap, signs: Array | None) -> None:
        matrix, bias = self.form(affine)
        middle = (np.array(self.high) + self.low) / 2
        spread = (np.array(self.high) - self.low) / 2
        reach = np.abs(matrix) @ spread + 1
        low, high = matrix @ middle + bias - reach, matrix @ middle + bias + reach
        first, count = len(self.low), len(bias)
        self.places.append(slice(first, first + count))
        self.low += [0.0] * (2 * count)
        self.high += [max(h, 0.0) for h in high] + [1.0] * count
        self.switches += [False] * count + [True] * count
        for j in range(count):
            z = np.append(matrix[j], np.zeros(2 * count))
            a, switch = np.zeros_like(z), np.zeros_like(z)
            a[first + j], switch[first + count + j] = 1.0, 1.0
            self.constrain(z - a, -bias[j])  # a >= z
            self.constrain(a - z - low[j] * switch, bias[j] - low[j])  # a <= z - low (1 - s)
            self.constrain(a - high[j] * switch, 0.0)
            if signs is not None and signs[j]:
                self.constrain(-signs[j] * z, signs[j] * bias[j])

    def constrain(self, row: Array, right: float) -> None:
        self.rows.append(row)
        self.right.append(right)

    def minimise(self, affine: AffineMap, rows: Sequence[int]) -> float:
        matrix, bias = self.form(affine)
        if not len(rows):
            rows, matrix, bias = [0], np.zeros((1, len(self.low))), np.full(1, -1.0)
        size = len(self.low) + 1
        whole = [np.append(matrix[j], -1.0) for j in rows]  # z_j <= t
        right = [*self.right, *(-bias[j] for j in rows)]
        padded = np.array([np.append(r, np.zeros(size - len(r))) for r in self.rows] + whole)
        solved = milp(
            np.append(np.zeros(size - 1), 1.0),
            integrality=[*map(int, self.switches), 0],
            bounds=Bounds([*self.low, -np.inf], [*self.high, np.inf]),
            constraints=LinearConstraint(padded, -np.inf, right),
        )
        if solved.status == 2:
            return float("inf")
        assert solved.status == 0, solved.message
        return float(solved.fun)
