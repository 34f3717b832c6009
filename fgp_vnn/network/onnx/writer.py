"""Replace operators by others: rules, and the nodes that a rule writes to replace one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from operator import index as whole
from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.graph import Array, Graph, attributes, axes_of, label, make_node

MOST = 1 << 22  # largest number of products of entries in one operator

Shape = tuple[int, ...]


class Writer:
    """A node of a graph, and the nodes that replace it, with the shapes of their results."""

    def __init__(self, graph: Graph, node: NodeProto) -> None:
        self.graph, self.node = graph, node
        self.operands = [str(name) for name in node.input]
        self.target = str(node.output[0])
        self.given = attributes(node)
        self.nodes: list[NodeProto] = []

    @property
    def result_shape(self) -> Shape:
        """The shape of the node's first output, `target`."""
        return self.graph.shape(self.target)

    @property
    def axes(self) -> list[int]:
        """The axes that the node, a reduction, runs over."""
        return axes_of(self.graph, self.node)

    def has(self, index: int) -> bool:
        """Whether the node has the operand with this index: a file may omit some."""
        return index < len(self.operands) and bool(self.operands[index])

    def constant(self, index: int) -> Array:
        """The value of an operand that has to be constant."""
        name = self.operands[index]
        if self.varies(name):
            raise self.refused(f"has an operand {name!r} that is not constant")
        return self.graph.constants[name]

    def varies(self, name: str) -> bool:
        return name not in self.graph.constants

    def refused(self, why: str) -> UnsupportedError:
        """The error that says why the node is not supported."""
        return UnsupportedError(f"{label(self.node)} {why}")

    def put(
        self,
        kind: str,
        *operands: Any,
        shape: Shape | None = None,
        output: str = "",
        **attribute: Any,
    ) -> str:
        """Append a node and return its output's name. Operands that are numbers, arrays or lists of
        integers become constants. `shape` is needed if the result's shape is used later."""
        names = [o if isinstance(o, str) else self._stored(o) for o in operands]
        output = output or self.graph.fresh(kind.lower())
        if shape is not None:
            self.graph.shapes[output] = shape
        self.nodes.append(make_node(kind, names, output, **attribute))
        return output

    def _stored(self, value: Any) -> str:
        if isinstance(value, list | tuple):
            value = np.asarray([whole(number) for number in value], dtype=np.int64)
        return self.graph.constant(value)

    def shape(self, name: str) -> Shape:
        return self.graph.shape(name)

    def curve(self, kind: str, x: str, **attribute: Any) -> str:
        return self.put(kind, x, shape=self.shape(x), **attribute)

    def power(self, x: str, exponent: float) -> str:
        if exponent == 1:
            return x
        known = {2.0: "Square", 0.5: "Sqrt", -1.0: "Reciprocal"}.get(exponent)
        return self.curve(known, x) if known else self.curve("Power", x, exponent=float(exponent))

    def add(self, a: str | Any, b: str | Any) -> str:
        """The sum of two operands, of which at least one is a tensor."""
        return self.binary("Add", a, b)

    def binary(self, kind: str, a: str | Any, b: str | Any) -> str:
        """An operator with two operands, of which at least one is a tensor, entry by entry."""
        shapes = [self.shape(o) if isinstance(o, str) else np.shape(o) for o in (a, b)]
        return self.put(kind, a, b, shape=np.broadcast_shapes(*shapes))

    def reshape(self, x: str, shape: Shape) -> str:
        return self.put("Reshape", x, shape, shape=shape)

    def in_shape(self, x: str) -> str:
        """A tensor reshaped to the shape of the node's output."""
        return self.reshape(x, self.result_shape)

    def flat(self, x: str) -> str:
        return self.reshape(x, (prod(self.shape(x)),))

    def taken(self, x: str, places: Array, shape: Shape, axis: int = 0) -> str:
        """Some entries of a tensor along an axis."""
        return self.put("Gather", x, places, shape=shape, axis=axis)

    def reduced(
        self, kind: str, x: str, axes: list[int], *, keep: int = 1, output: str = ""
    ) -> str:
        """A mean, a sum or the like over axes, which stay with size 1 if `keep` is set; x itself if
        there are no axes."""
        if not axes:
            return x
        sizes = enumerate(self.shape(x))
        shape = tuple(1 if i in axes else n for i, n in sizes if keep or i not in axes)
        if kind == "ReduceSum" and self.graph.opset >= 13:
            return self.put(kind, x, axes, shape=shape, output=output, keepdims=keep)
        return self.put(kind, x, shape=shape, output=output, axes=axes, keepdims=keep)

    def products(self, a: str, b: str, left: Array, right: Array) -> str:
        """a.flat[left] b.flat[right], in the shape of the indices."""
        if left.size > MOST:
            raise UnsupportedError(f"{left.size} products of variables are too many")
        size = prod(self.shape(a))
        parts = [self.flat(name) for name in (a, b)]
        both = self.put("Concat", *parts, shape=(size + prod(self.shape(b)),), axis=0)
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


# Returns the name of the tensor that replaces the node's first output; None if the node may stay. A
# rule that returns `w.target` has written every output of the node under its own name, so that
# these tensors are still found in the file.
Rule = Callable[[Writer], str | None]


def write_by_rules(graph: Graph, rules: Mapping[str, Rule]) -> None:
    """Replace nodes that depend on the input by the nodes that their operators' rules write."""
    variables = graph.variables()

    def written(node: NodeProto) -> list[NodeProto] | None:
        if node.op_type not in rules or not variables & {*node.input}:
            return None
        writer = Writer(graph, node)
        result = rules[node.op_type](writer)
        if result is None:
            return None
        # The first output has no name if only the last state of a recurrent network is read.
        if writer.target in ("", result):
            return writer.nodes
        return [*writer.nodes, make_node("Identity", [result], writer.target)]

    graph.replace(written)
    graph.skip_copies()
