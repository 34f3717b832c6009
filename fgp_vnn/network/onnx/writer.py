"""Writing operators out as others: rules, and nodes with the shapes of what they compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.graph import Array, Graph, attributes, make_node

MOST = 1 << 22  # products of entries in one operator

Shape = tuple[int, ...]


class Writer:
    """Writes the nodes that take one node's place, with the shapes of what they compute."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[NodeProto] = []

    def put(self, kind: str, *operands: Any, shape: Shape | None = None, **attribute: Any) -> str:
        """Append a node and return its output's name; numbers and arrays become constants. Its
        shape is given where it will be asked for."""
        names = [o if isinstance(o, str) else self.graph.constant(o) for o in operands]
        output = self.graph.fresh(kind.lower())
        if shape is not None:
            self.graph.shapes[output] = shape
        self.nodes.append(make_node(kind, names, output, **attribute))
        return output

    def shape(self, name: str) -> Shape:
        return self.graph.shape(name)

    def curve(self, kind: str, x: str, **attribute: Any) -> str:
        return self.put(kind, x, shape=self.shape(x), **attribute)

    def power(self, x: str, exponent: float) -> str:
        if exponent == 1:
            return x
        known = {2.0: "Square", 0.5: "Sqrt", -1.0: "Reciprocal"}.get(exponent)
        return self.curve(known, x) if known else self.curve("Power", x, exponent=float(exponent))

    def add(self, a: str | Any, b: str | Any, kind: str = "Add") -> str:
        """A sum, or another operator of two operands, of which at least one is a tensor."""
        shapes = [self.shape(o) if isinstance(o, str) else np.shape(o) for o in (a, b)]
        return self.put(kind, a, b, shape=np.broadcast_shapes(*shapes))

    def reshape(self, x: str, shape: Shape) -> str:
        return self.put("Reshape", x, np.asarray(shape, dtype=np.int64), shape=shape)

    def mean(self, x: str, axes: list[int], kind: str = "ReduceMean") -> str:
        """A mean or, with ReduceSum, a sum over axes that stay, with one entry each."""
        shape = tuple(1 if i in axes else n for i, n in enumerate(self.shape(x)))
        if kind == "ReduceSum" and self.graph.opset >= 13:
            return self.put(kind, x, np.asarray(axes, dtype=np.int64), shape=shape, keepdims=1)
        return self.put(kind, x, shape=shape, axes=axes, keepdims=1)

    def products(self, a: str, b: str, left: Array, right: Array) -> str:
        """a.flat[left] b.flat[right], in the shape of the indices."""
        if left.size > MOST:
            raise UnsupportedError(f"{left.size} products of variables are too many")
        size = prod(self.shape(a))
        flat = [self.reshape(name, (prod(self.shape(name)),)) for name in (a, b)]
        both = self.put("Concat", *flat, shape=(size + prod(self.shape(b)),), axis=0)
        pairs = (left.reshape(-1), right.reshape(-1) + size)
        found = self.put("Product", both, *pairs, shape=(left.size,))
        return self.reshape(found, left.shape)

    def multiply(self, a: str, b: str) -> str:
        """The product of two variables, entry by entry."""
        if a == b:
            return self.curve("Square", a)
        return self.products(a, b, *np.broadcast_arrays(self.numbers(a), self.numbers(b)))

    def numbers(self, name: str) -> Array:
        """The flat index of each entry."""
        return np.arange(prod(self.shape(name))).reshape(self.shape(name))


# The name of what takes the place of a node's first output; None: the node may stay.
Rule = Callable[[Writer, NodeProto, dict[str, Any]], str | None]


def write_by_rules(graph: Graph, rules: Mapping[str, Rule]) -> None:
    """Replace nodes that depend on the input by what the rules of their operators write."""
    variables = graph.variables()

    def written(node: NodeProto) -> list[NodeProto] | None:
        if node.op_type not in rules or not variables & {*node.input}:
            return None
        writer = Writer(graph)
        result = rules[node.op_type](writer, node, attributes(node))
        if result is None:
            return None
        if not node.output[0]:  # only what a recurrent network ends with is read
            return writer.nodes
        return [*writer.nodes, make_node("Identity", [result], node.output[0])]

    graph.replace(written)
    graph.skip_copies()
