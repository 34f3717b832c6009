"""Rewrite piecewise-linear operators as ReLUs and sums, by max(a, b) = b + relu(a - b).

This happens once, at loading time: no later step knows these operators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from fgp_vnn.network.onnx.graph import Array, Graph
from fgp_vnn.network.onnx.groups import ABSENT, pool_groups, reduction_groups
from fgp_vnn.network.onnx.writer import Rule, Writer, write_by_rules

_NO_BOUND = float(np.finfo(np.float32).max)  # a clip at the largest float32 clips nothing


def _relu(w: Writer, x: str) -> str:
    return w.put("Relu", x)


def _maximum(w: Writer, a: str, b: str) -> str:
    return w.put("Add", b, _relu(w, w.put("Sub", a, b)))


def _minimum(w: Writer, a: str, b: str) -> str:
    return w.put("Sub", a, _relu(w, w.put("Sub", a, b)))


def _largest(w: Writer, x: str, groups: Array) -> str:
    """The maximum of each column of `groups` [members, results], flat indices into x.

    ABSENT members do not count. All pairs of a round share one ReLU layer, so there are
    log2(members) layers; a pair that occurs in several columns is compared once.
    """
    current = w.put("Reshape", x, [-1])
    while len(groups) > 1:
        current, groups = _round(w, current, groups)
    taken = w.put("Gather", current, groups[0], axis=0)
    return w.put("Reshape", taken, w.result_shape)


def _round(w: Writer, x: str, groups: Array) -> tuple[str, Array]:
    """One round: the pairwise maxima of the first and the second half of the members, with unpaired
    members, as one flat tensor; and the new groups, which are indices into it."""
    half = len(groups) // 2
    first, second = groups[: len(groups) - half], groups[len(groups) - half :]
    second = np.concatenate([second, first[half:]])  # an odd one is its own partner
    first, second = np.where(first < 0, second, first), np.where(second < 0, first, second)
    base = int(groups.max()) + 2  # a pair as one number: sorting columns would be slow
    both, number = np.unique((first + 1) * base + second + 1, return_inverse=True)
    pairs = np.stack(np.divmod(both, base)) - 1  # [2, pairs]
    single = pairs[0] == pairs[1]
    parts = []
    if not single.all():
        a, b = (w.put("Gather", x, side[~single], axis=0) for side in pairs)
        parts.append(_maximum(w, a, b))
    if single.any():
        parts.append(w.put("Gather", x, pairs[0][single].clip(min=0), axis=0))
    values = parts[0] if len(parts) == 1 else w.put("Concat", *parts, axis=0)
    place = np.argsort(np.argsort(single, kind="stable"))  # the pairs first, then the singles
    joined = place[number.reshape(-1)].reshape(first.shape)
    return values, np.where(first < 0, ABSENT, joined)


def _leaky_relu(w: Writer) -> str:
    return _sloped(w, np.float64(w.given.get("alpha", np.float32(0.01))))


def _prelu(w: Writer) -> str:
    return _sloped(w, w.constant(1))


def _sloped(w: Writer, slope: Any) -> str:
    """slope * x + (1 - slope) * relu(x), right for slopes on either side of 1."""
    x = w.operands[0]
    return w.put("Add", w.put("Mul", x, slope), w.put("Mul", _relu(w, x), 1.0 - slope))


def _abs(w: Writer) -> str:
    x = w.operands[0]
    return w.put("Sub", w.put("Mul", _relu(w, x), 2.0), x)


def _clip(w: Writer) -> str:
    low = w.constant(1).item() if w.has(1) else w.given.get("min", -np.inf)
    high = w.constant(2).item() if w.has(2) else w.given.get("max", np.inf)
    if low > high:
        raise w.refused("has a lower bound above its upper bound")
    return _clipped(w, w.operands[0], float(low), float(high))


def _clipped(w: Writer, x: str, low: float, high: float) -> str:
    """low + relu(x - low) - relu(x - high), without the parts whose bound is absent."""
    result = x
    if low > -_NO_BOUND:
        result = _relu(w, x) if low == 0 else w.put("Add", _relu(w, w.put("Sub", x, low)), low)
    if high < _NO_BOUND:
        above = _relu(w, w.put("Sub", x, high) if high != 0 else x)
        result = w.put("Sub", result, above)
    return result


def _hard_sigmoid(w: Writer) -> str:
    alpha = np.float64(w.given.get("alpha", np.float32(0.2)))
    beta = np.float64(w.given.get("beta", np.float32(0.5)))
    return _clipped(w, w.put("Add", w.put("Mul", w.operands[0], alpha), beta), 0.0, 1.0)


def _in_pairs(how: Callable[[Writer, str, str], str]) -> Callable[[Writer], str]:
    """An operator of any number of operands, by applying `how` to one after the other."""
    return lambda w: reduce(partial(how, w), w.operands)


_sum = _in_pairs(lambda w, a, b: w.put("Add", a, b))


def _mean(w: Writer) -> str:
    return w.put("Div", _sum(w), float(len(w.operands)))


def _max_pool(w: Writer) -> str:
    if len(w.node.output) > 1 and w.node.output[1]:
        raise w.refused("gives indices beside the maxima")
    return _largest(w, w.operands[0], pool_groups(w))


def _reduce_max(w: Writer) -> str:
    return _largest(w, w.operands[0], reduction_groups(w))


def _reduce_min(w: Writer) -> str:
    return w.put("Neg", _largest(w, w.put("Neg", w.operands[0]), reduction_groups(w)))


_RULES: dict[str, Rule] = {
    "Abs": _abs,
    "Clip": _clip,
    "GlobalMaxPool": _max_pool,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": _leaky_relu,
    "Max": _in_pairs(_maximum),
    "MaxPool": _max_pool,
    "Mean": _mean,
    "Min": _in_pairs(_minimum),
    "PRelu": _prelu,
    "ReduceMax": _reduce_max,
    "ReduceMin": _reduce_min,
    "Sum": _sum,
}
REWRITTEN = frozenset(_RULES)


def rewrite(graph: Graph) -> None:
    """Replace every piecewise-linear operator but ReLU, in place."""
    write_by_rules(graph, _RULES)
