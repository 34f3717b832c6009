"""Edits of a file's graph: new nodes, and copies of nodes under new names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, helper, numpy_helper

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.base.program import nodes_in


class Edit:
    """New nodes for a graph, in order, under names that are not used in it."""

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self.nodes: list[NodeProto] = []
        self._taken = {value.name for value in (*graph.input, *graph.output, *graph.initializer)}
        self._taken |= {tensor.values.name for tensor in graph.sparse_initializer}
        for node in nodes_in(graph):
            self._taken |= {node.name, *node.input, *node.output}

    def put(
        self,
        kind: str,
        *operands: str | Sequence[int] | NDArray[Any],
        output: str = "",
        **attribute: Any,
    ) -> str:
        """Append a node and return its output's name; numbers as operands become constants."""
        names = [o if isinstance(o, str) else self.constant(o) for o in operands]
        output = output or self.fresh(kind.lower())
        self.nodes.append(helper.make_node(kind, names, [output], **attribute))
        return output

    def constant(self, values: Sequence[int] | NDArray[Any]) -> str:
        """Add an array, or a list of integers, to the graph's constants; returns its name."""
        name = self.fresh("constant")
        array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=np.int64)
        self._graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def fresh(self, hint: str) -> str:
        """A name that is not used in the graph."""
        count = 0
        while (name := f"{hint}_{count}") in self._taken:
            count += 1
        self._taken.add(name)
        return name

    def stem(self, hint: str) -> str:
        """A prefix with which no name in the graph begins."""
        while any(name.startswith(hint) for name in self._taken):
            hint = f"_{hint}"
        return hint


def renamed(node: NodeProto, names: Mapping[str, str], prefix: str) -> NodeProto:
    """A copy of a node with its tensors renamed by `names`, and `prefix` before its own name."""
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
        raise UnsupportedError(f"{node.op_type}: networks with branches cannot be copied")
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = f"{prefix}{node.name}" if node.name else ""
    for field in (copy.input, copy.output):
        field[:] = [names.get(name, name) for name in field]
    return copy
