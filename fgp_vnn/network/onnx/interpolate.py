"""Linear interpolation as a matrix for each axis, with the weights that onnxruntime takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.network.onnx.fold import prober
from fgp_vnn.network.onnx.graph import Array, Graph, label, make_node

_LONGEST = 1024  # of an axis: as many images are interpolated to find its matrix


def interpolated(graph: Graph, node: NodeProto, given: dict[str, Any]) -> list[NodeProto]:
    """A linear Resize or Upsample as products along its axes, one after the other.

    Each entry is a sum over the axes' entries, weighed by a product of one factor for each axis,
    and the factors of an axis add up to 1.
    """
    if given["mode"] != b"linear":
        raise UnsupportedError(f"{label(node)} is supported in the modes nearest and linear only")
    if given.get("coordinate_transformation_mode") == b"tf_crop_and_resize":
        raise UnsupportedError(f"{label(node)} crops, which is supported in the mode nearest only")
    if not graph.fixed_but_first(node):
        raise UnsupportedError(f"{label(node)} has scales or sizes that are not constant")
    matrices = _matrices(graph, node)
    result, name = [], node.input[0]
    for axis, matrix in matrices.items():
        order = list(range(len(graph.shape(node.input[0]))))
        order[axis], order[-1] = order[-1], order[axis]
        moved, product, back = (graph.fresh("resized") for _ in range(3))
        weights = graph.constant(matrix, "weights")
        result += [
            make_node("Transpose", [name], moved, perm=order),
            make_node("MatMul", [moved, weights], product),
            make_node("Transpose", [product], back, perm=order),
        ]
        name = back
    return [*result, make_node("Identity", [name], node.output[0])]


def _matrices(graph: Graph, node: NodeProto) -> dict[int, Array]:
    """The weights [before, after] of each axis that is not left as it is."""
    shape = graph.shape(node.input[0])
    if max(shape) > _LONGEST:
        raise UnsupportedError(f"{label(node)} interpolates more than {_LONGEST} places in a row")
    run = prober(graph, node)
    found = {}
    for axis, size in enumerate(shape):
        along = [size if i == axis else 1 for i in range(len(shape))]
        corner = tuple(slice(None) if i == axis else 0 for i in range(len(shape)))
        units = (np.broadcast_to(row.reshape(along), shape) for row in np.eye(size))
        matrix = np.stack([run(unit)[0][corner] for unit in units]).astype(np.float64)
        if matrix.shape != (size, size) or (matrix != np.eye(size)).any():
            found[axis] = matrix
    return found
