"""A plain implementation of the paper's algorithm: oracle and baseline for the walk.

One region at a time, distances without their sign, no bounds, no reduction, no batches; NumPy only.
Fully connected ReLU networks and l2 balls. `robust` is proved up to rounding; a projection is a
counterexample if the network itself gives another class, or a tie, at it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Layer = tuple[Array, Array]  # weight [outputs, inputs], bias [outputs]
TIE = 1e-9  # relative difference of two outputs that counts as a tie


@dataclass(frozen=True)
class Reference:
    """The result of the walk, and the number of regions it visited."""

    status: str  # robust, not_robust, unknown or timeout
    regions: int
    seconds: float
    counterexample: Array | None = None


def layers_of(network: Any) -> list[Layer]:
    """The matrices of a fully connected `fgp_vnn` network."""
    return [(m.weights[0].double().numpy(), m.bias.double().numpy()) for m in network.maps]


def forward(layers: Sequence[Layer], x: Array) -> list[Array]:
    """The values before every ReLU, then the outputs."""
    values: list[Array] = []
    for k, (weight, bias) in enumerate(layers):
        z = weight @ (x if k == 0 else np.maximum(values[-1], 0)) + bias
        values.append(z)
    return values


def region_forms(layers: Sequence[Layer], pattern: Sequence[NDArray[np.bool_]]) -> list[Layer]:
    """The affine forms z_k = A x + b of a region, for every layer and the outputs."""
    forms = [layers[0]]
    for k, (weight, bias) in enumerate(layers[1:]):
        a, b = forms[-1]
        on = pattern[k]
        forms.append((weight[:, on] @ a[on], weight[:, on] @ b[on] + bias))
    return forms


def reference_walk(
    layers: Sequence[Layer],
    x: Array,
    epsilon: float,
    *,
    full_queue: bool = True,
    seconds: float = np.inf,
    regions: float = np.inf,
) -> Reference:
    """Decide whether the class of x is the same in the l2 ball of radius epsilon around it."""
    begin = time.perf_counter()
    values = forward(layers, x)
    label = int(values[-1].argmax())
    widths = [len(z) for z in values[:-1]]
    start = np.concatenate([z >= 0 for z in values[:-1]]) if widths else np.zeros(0, bool)
    queue = deque([start])
    seen = {start.tobytes()}
    explored, unknown = 0, False
    while queue:
        if time.perf_counter() - begin > seconds or explored >= regions:
            return Reference("timeout", explored, time.perf_counter() - begin)
        pattern = queue.popleft()
        explored += 1
        forms = region_forms(layers, np.split(pattern, np.cumsum(widths)[:-1]))
        met, counterexample = _decision(layers, forms[-1], x, epsilon, label)
        if counterexample is not None:
            return Reference("not_robust", explored, time.perf_counter() - begin, counterexample)
        unknown |= met
        if met and not full_queue:
            break
        for u in _near(forms[:-1], x, epsilon):
            neighbour = pattern.copy()
            neighbour[u] ^= True
            if neighbour.tobytes() not in seen:
                seen.add(neighbour.tobytes())
                queue.append(neighbour)
    status = "unknown" if unknown else "robust"
    return Reference(status, explored, time.perf_counter() - begin)


def _near(forms: Sequence[Layer], x: Array, epsilon: float) -> list[int]:
    """The neurons whose hyperplanes intersect the ball."""
    if not forms:
        return []
    distance = [np.abs(a @ x + b) - epsilon * np.linalg.norm(a, axis=1) for a, b in forms]
    near: list[int] = np.nonzero(np.concatenate(distance) <= 0)[0].tolist()
    return near


def _decision(
    layers: Sequence[Layer], output: Layer, x: Array, epsilon: float, label: int
) -> tuple[bool, Array | None]:
    """Whether the ball meets a decision boundary, and a projection that is a counterexample."""
    a, b = output
    met = False
    for j in range(len(b)):
        row, value = a[label] - a[j], (a[label] - a[j]) @ x + b[label] - b[j]
        size = float(row @ row)
        if j == label or value > epsilon * np.sqrt(size):
            continue
        met = True
        point = x if size == 0 else x - row * (max(value, 0.0) / size)
        y = forward(layers, point)[-1]
        others = np.delete(y, label)
        if others.max() >= y[label] - TIE * max(1.0, np.abs(y).max()):
            return True, point
    return met, None
