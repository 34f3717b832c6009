"""Linear interpolation as a matrix for each axis, with the weights that onnxruntime uses."""

from __future__ import annotations

import numpy as np

from fgp_vnn.network.onnx.fold import prober
from fgp_vnn.network.onnx.graph import Array
from fgp_vnn.network.onnx.writer import Writer

_LONGEST = 1024  # longest axis: its matrix takes one interpolation for each of its entries


def interpolated(w: Writer) -> str:
    """A linear Resize or Upsample as products along its axes, one after the other.

    Each result is a weighted sum of entries. A weight is a product of one factor for each axis, and
    the factors of an axis add up to 1.
    """
    if w.given["mode"] != b"linear":
        raise w.refused("is supported in the modes nearest and linear only")
    if w.given.get("coordinate_transformation_mode") == b"tf_crop_and_resize":
        raise w.refused("crops, which is supported in the mode nearest only")
    if not w.graph.fixed_but_first(w.node):
        raise w.refused("has scales or sizes that are not constant")
    result, rank = w.operands[0], len(w.shape(w.operands[0]))
    for axis, matrix in _matrices(w).items():
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        moved = w.put("Transpose", result, perm=order)
        result = w.put("Transpose", w.put("MatMul", moved, matrix), perm=order)
    return result


def _matrices(w: Writer) -> dict[int, Array]:
    """The weights [size before, size after] of each axis that changes."""
    shape = w.shape(w.operands[0])
    if max(shape) > _LONGEST:
        raise w.refused(f"interpolates more than {_LONGEST} places in a row")
    run = prober(w.graph, w.node)
    found = {}
    for axis, size in enumerate(shape):
        along = [size if i == axis else 1 for i in range(len(shape))]
        corner = tuple(slice(None) if i == axis else 0 for i in range(len(shape)))
        units = (np.broadcast_to(row.reshape(along), shape) for row in np.eye(size))
        matrix = np.stack([run(unit)[0][corner] for unit in units]).astype(np.float64)
        if matrix.shape != (size, size) or (matrix != np.eye(size)).any():
            found[axis] = matrix
    return found
