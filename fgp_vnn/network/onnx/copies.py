"""Parts of graphs under new names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, numpy_helper

from fgp_vnn.base.errors import UnsupportedError


def renamed(node: NodeProto, names: Mapping[str, str], prefix: str) -> NodeProto:
    """A copy of a node, in which tensors have the names given for them, if any are."""
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
        raise UnsupportedError(f"{node.op_type}: networks with branches cannot be copied")
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = f"{prefix}{node.name}" if node.name else ""
    for field in (copy.input, copy.output):
        field[:] = [names.get(name, name) for name in field]
    return copy


def append_constant(graph: GraphProto, name: str, values: Sequence[int] | NDArray[np.int64]) -> str:
    """The name of whole numbers that a graph now holds."""
    array = np.asarray(values, dtype=np.int64)
    graph.initializer.append(numpy_helper.from_array(array, name))
    return name
