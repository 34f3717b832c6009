"""Piecewise-linear operators as ReLUs and simple sums, for max(a, b) = b + relu(a - b).

This happens once, at loading time: nothing after it knows these operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.graph import Array, Graph, attributes, label, make_node
from fgp_vnn.network.onnx.groups import ABSENT, pool_groups, reduction_groups

_NO_BOUND = float(np.finfo(np.float32).max)  # a clip at the largest float32 clips nothing


@dataclass
class _Writer:
    """Writes the nodes that take one node's place."""

    graph: Graph
    nodes: list[NodeProto] = field(default_factory=list)

    def put(self, kind: str, *operands: str | float | Any, **attribute: Any) -> str:
        """Append a node and return its output's name; numbers and arrays become constants."""
        names = [o if isinstance(o, str) else self.graph.constant(o) for o in operands]
        output = self.graph.fresh(kind.lower())
        self.nodes.append(make_node(kind, names, output, **attribute))
        return output

    def relu(self, name: str) -> str:
        return self.put("Relu", name)

    def maximum(self, a: str, b: str) -> str:
        return self.put("Add", b, self.relu(self.put("Sub", a, b)))

    def minimum(self, a: str, b: str) -> str:
        return self.put("Sub", a, self.relu(self.put("Sub", a, b)))

    def largest(self, x: str, groups: Array, shape: Sequence[int]) -> str:
        """The maximum of each column of `groups` [members, results], flat indices into x.

        ABSENT members do not count. All pairs of a round share one ReLU layer, so there are
        log2(members) layers; a pair that several columns have is compared once.
        """
        current = self.put("Reshape", x, np.asarray([-1], dtype=np.int64))
        while len(groups) > 1:
            current, groups = self._round(current, groups)
        taken = self.put("Gather", current, groups[0], axis=0)
        return self.put("Reshape", taken, np.asarray(shape, dtype=np.int64))

    def _round(self, x: str, groups: Array) -> tuple[str, Array]:
        """The larger ones of the first half of the members and the second, and what is left over;
        with the groups that are numbers of these values."""
        half = len(groups) // 2
        first, second = groups[: len(groups) - half], groups[len(groups) - half :]
        second = np.concatenate([second, first[half:]])  # an odd one is its own partner
        first, second = np.where(first < 0, second, first), np.where(second < 0, first, second)
        base = int(groups.max()) + 2  # a pair as one number: sorting columns would take long
        both, number = np.unique((first + 1) * base + second + 1, return_inverse=True)
        pairs = np.stack(np.divmod(both, base)) - 1  # [2, pairs]
        single = pairs[0] == pairs[1]
        parts = []
        if not single.all():
            a, b = (self.put("Gather", x, side[~single], axis=0) for side in pairs)
            parts.append(self.maximum(a, b))
        if single.any():
            parts.append(self.put("Gather", x, pairs[0][single].clip(min=0), axis=0))
        values = parts[0] if len(parts) == 1 else self.put("Concat", *parts, axis=0)
        place = np.argsort(np.argsort(single, kind="stable"))  # the pairs first, then the singles
        joined = place[number.reshape(-1)].reshape(first.shape)
        return values, np.where(first < 0, ABSENT, joined)


_Rule = Callable[[_Writer, NodeProto, dict[str, Any]], str]


def _leaky_relu(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    return _sloped(w, node.input[0], np.float64(given.get("alpha", np.float32(0.01))))


def _prelu(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    return _sloped(w, node.input[0], _constant(w, node, 1))


def _sloped(w: _Writer, x: str, slope: Any) -> str:
    """slope * x + (1 - slope) * relu(x), right for slopes on either side of 1."""
    return w.put("Add", w.put("Mul", x, slope), w.put("Mul", w.relu(x), 1.0 - slope))


def _abs(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    x = node.input[0]
    return w.put("Sub", w.put("Mul", w.relu(x), 2.0), x)


def _clip(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    low, high = given.get("min", -np.inf), given.get("max", np.inf)
    if len(node.input) > 1 and node.input[1]:
        low = float(_constant(w, node, 1).item())
    if len(node.input) > 2 and node.input[2]:
        high = float(_constant(w, node, 2).item())
    if low > high:
        raise UnsupportedError(f"{label(node)} has a lower bound above its upper bound")
    return _clipped(w, node.input[0], low, high)


def _clipped(w: _Writer, x: str, low: float, high: float) -> str:
    """low + relu(x - low) - relu(x - high), without the parts whose bound is absent."""
    result = x
    if low > -_NO_BOUND:
        result = w.relu(x) if low == 0 else w.put("Add", w.relu(w.put("Sub", x, low)), low)
    if high < _NO_BOUND:
        above = w.relu(w.put("Sub", x, high) if high != 0 else x)
        result = w.put("Sub", result, above)
    return result


def _hard_sigmoid(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    alpha = np.float64(given.get("alpha", np.float32(0.2)))
    beta = np.float64(given.get("beta", np.float32(0.5)))
    return _clipped(w, w.put("Add", w.put("Mul", node.input[0], alpha), beta), 0.0, 1.0)


def _max(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    result: str = node.input[0]
    for name in node.input[1:]:
        result = w.maximum(result, name)
    return result


def _min(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    result: str = node.input[0]
    for name in node.input[1:]:
        result = w.minimum(result, name)
    return result


def _sum(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    result: str = node.input[0]
    for name in node.input[1:]:
        result = w.put("Add", result, name)
    return result


def _mean(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    return w.put("Div", _sum(w, node, given), float(len(node.input)))


def _max_pool(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    if len(node.output) > 1 and node.output[1]:
        raise UnsupportedError(f"{label(node)} gives indices beside the maxima")
    shape = w.graph.shape(node.output[0])
    return w.largest(node.input[0], pool_groups(w.graph, node, given), shape)


def _reduce_max(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    shape = w.graph.shape(node.output[0])
    return w.largest(node.input[0], reduction_groups(w.graph, node, given), shape)


def _reduce_min(w: _Writer, node: NodeProto, given: dict[str, Any]) -> str:
    groups = reduction_groups(w.graph, node, given)
    shape = w.graph.shape(node.output[0])
    return w.put("Neg", w.largest(w.put("Neg", node.input[0]), groups, shape))


def _constant(w: _Writer, node: NodeProto, operand: int) -> Any:
    name = node.input[operand]
    if name not in w.graph.constants:
        raise UnsupportedError(f"{label(node)} has an operand {name!r} that is not constant")
    return w.graph.constants[name]


_RULES: dict[str, _Rule] = {
    "Abs": _abs,
    "Clip": _clip,
    "GlobalMaxPool": _max_pool,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": _leaky_relu,
    "Max": _max,
    "MaxPool": _max_pool,
    "Mean": _mean,
    "Min": _min,
    "PRelu": _prelu,
    "ReduceMax": _reduce_max,
    "ReduceMin": _reduce_min,
    "Sum": _sum,
}
REWRITTEN = frozenset(_RULES)


def rewrite(graph: Graph) -> None:
    """Replace every piecewise-linear operator but ReLU, in place."""
    variables = graph.variables()

    def rule(node: NodeProto) -> list[NodeProto] | None:
        if node.op_type not in _RULES or not variables & {*node.input}:
            return None
        writer = _Writer(graph)
        result = _RULES[node.op_type](writer, node, attributes(node))
        return [*writer.nodes, make_node("Identity", [result], node.output[0])]

    graph.replace(rule)
    graph.skip_copies()
