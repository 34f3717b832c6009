"""Constants in double precision, whose digits float32 does not hold.

Maps are made of float32 numbers, so that the product of two of them is exact in float64. Where a
file has others, they may only be rounded to float32 by the file itself.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.graph import Graph, attributes, label, narrowed


def check_precision(graph: Graph) -> None:
    """Round what the file casts to float32, in place, and refuse other constants in double."""
    for name, array in graph.constants.items():
        if array.dtype.kind != "f":
            continue
        single = narrowed(array)
        if np.array_equal(single, array):
            continue
        for node in graph.nodes:
            if name in node.input and not _rounds(node):
                raise UnsupportedError(
                    f"{label(node)} reads {name!r}, which is in double precision"
                )
        graph.constants[name] = single.astype(np.float64)


def _rounds(node: NodeProto) -> bool:
    return node.op_type == "Cast" and attributes(node)["to"] == TensorProto.FLOAT
