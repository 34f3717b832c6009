"""Random networks of one operator each, from a table of what its attributes can be.

All numbers are integers, so small that float32 holds every sum of products exactly: what is read
right agrees with onnxruntime to the last bit, unless the operator divides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from tests.helpers import operator_windows as windows
from tests.helpers.operator_draw import Draw

OLDEST, NEWEST = 7, 26  # the newest that onnxruntime knows
FAR = 2**63 - 1


@dataclass(frozen=True)
class Drawn:
    """A network of one operator, and a few inputs [points, inputs]."""

    operator: str
    description: str
    content: bytes
    points: NDArray[np.float32]

    @property
    def exact(self) -> bool:
        """Whether float32 computes it without rounding."""
        return self.operator not in DIVIDING


def random_operator(number: int) -> Drawn:
    """The network with this number."""
    random = np.random.default_rng(number)
    names = sorted(FAMILIES)
    family = names[number % len(names)]
    draw = Draw(random, int(random.integers(OLDEST, NEWEST + 1)))
    end = FAMILIES[family](draw)
    node = draw.builder.nodes[-1]
    given = ", ".join(" ".join(str(a).split()) for a in node.attribute)
    content = draw.builder.model(end).SerializeToString()
    points = random.integers(-30, 31, size=(3, int(np.prod(draw.shape)))).astype(np.float32)
    description = f"{number}: {node.op_type} of {draw.shape}, opset {draw.opset}, {given}"
    return Drawn(node.op_type, description, content, points)


def _reshape(d: Draw) -> Any:
    d.takes(*d.one((1, 4, 6), (1, 2, 3, 4)))
    rank = len(d.shape)
    kind = d.one("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose")
    if kind == "Reshape":
        target = d.one((1, -1), (0, -1), (0, 0, -1), (1, 2, 12), (-1, 4), (1, 24), (24,))
        zero = d.one(None, 0, 1) if d.opset >= 14 else None
        return d.op("Reshape", d.x, d.builder.ints(*target), allowzero=zero)
    if kind == "Flatten":
        return d.op("Flatten", d.x, axis=d.one(None, 0, 1, 2, rank, -1 if d.opset >= 11 else 1))
    if kind == "Transpose":
        order = [int(axis) for axis in d.random.permutation(rank)]
        return d.op("Transpose", d.x, perm=d.one(None, order, order))
    axes = d.one([0], [0] if kind == "Squeeze" else [0, 2], [-rank] if d.opset >= 11 else [0])
    if d.opset < 13:
        return d.op(kind, d.x, axes=d.one(axes, None) if kind == "Squeeze" else axes)
    if kind == "Squeeze" and d.one(True, False):
        return d.op(kind, d.x)
    return d.op(kind, d.x, d.builder.ints(*axes))


def _slice(d: Draw) -> Any:
    d.takes(1, 5, 6)
    axes = d.one([1], [2], [1, 2], [2, 1])
    negative = [d.one(axis, axis - 3) for axis in axes]
    starts, ends = d.ints(len(axes), 0, 1, -2, -9), d.ints(len(axes), 4, 9, -1, FAR)
    if d.opset < 10:
        return d.op("Slice", d.x, starts=starts, ends=ends, axes=d.one(axes, axes))
    operands = [d.builder.ints(*starts), d.builder.ints(*ends)]
    if d.one(True, False):
        operands.append(d.builder.ints(*negative))
        if d.one(True, False):
            backward = d.one(True, False)
            steps = d.ints(len(axes), -1, -2) if backward else d.ints(len(axes), 1, 2)
            if backward:
                starts, ends = ends, [-FAR if d.one(True, False) else 0] * len(axes)
                operands[:2] = [d.builder.ints(*starts), d.builder.ints(*ends)]
            operands.append(d.builder.ints(*steps))
    return d.op("Slice", d.x, *operands)


def _split(d: Draw) -> Any:
    axis = d.one(1, 2, -1)
    d.takes(1, 6, 6)
    sizes = d.one([2, 4], [3, 3], [1, 2, 3], [2, 2, 2], None, None)
    count = len(sizes) if sizes else d.one(2, 3, 4)
    operands = [d.x]
    given: dict[str, Any] = {"axis": axis}
    if sizes and d.opset < 13:
        given["split"] = sizes
    elif sizes:
        operands.append(d.builder.ints(*sizes))
    elif d.opset >= 18:
        given["num_outputs"] = count
    return d.one(*d.op("Split", *operands, outputs=count, **given))


def _gather(d: Draw) -> Any:
    d.takes(1, 4, 6)
    kind = d.one("Gather", "Gather", "GatherElements", "GatherND")
    if kind == "Gather" or d.opset < 11:
        index = d.one([0, 2, 2], [[1, 0], [3, 3]], 2, [-1 if d.opset >= 11 else 1])
        return d.op("Gather", d.x, d.builder.const(index, np.int64), axis=d.one(1, 2, -1))
    if kind == "GatherElements":
        index = d.random.integers(-2, 3, size=(1, 2, 3))
        return d.op(kind, d.x, d.builder.const(index, np.int64), axis=d.one(1, 2, -1))
    batches = d.one(0, 1) if d.opset >= 12 else 0
    index = [[[0, 1]], [[0, 3]]] if batches == 0 else [[[3, 1], [0, -1]]]
    given = d.one(None, 0) if batches == 0 else 1
    return d.op(kind, d.x, d.builder.const(index, np.int64), batch_dims=given)


def _repeat(d: Draw) -> Any:
    kind = d.one("Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Where", "Concat")
    if kind == "Expand":
        d.takes(1, 3, 1)
        return d.op("Expand", d.x, d.builder.ints(*d.one((1, 3, 4), (2, 1, 1, 2), (1,), (3, 1))))
    d.takes(1, 4, 4, 6)
    if kind == "Tile":
        return d.op("Tile", d.x, d.builder.ints(1, *d.ints(3, 1, 2)))
    if kind == "Where" and d.opset >= 9:
        mask = d.random.integers(0, 2, size=d.one((6,), (1, 4, 4, 6), (4, 1, 1))).astype(bool)
        sides = [d.x, d.one(d.weights(4, 6), d.weights(1), d.op("Neg", d.x))]
        return d.op("Where", d.builder.const(mask, np.bool_), *d.one(sides, sides[::-1]))
    if kind == "Concat":
        parts = [d.x, d.weights(1, 4, 4, 6), d.op("Neg", d.x)]
        return d.op(
            "Concat", *d.one(parts, parts[::-1]), axis=d.one(1, 2, 3, -1 if d.opset > 10 else 1)
        )
    mode = d.one(None, "DCR", "CRD") if kind == "DepthToSpace" and d.opset >= 11 else None
    return d.op(kind if kind.endswith("pth") else "DepthToSpace", d.x, blocksize=2, mode=mode)


def _reduce(d: Draw) -> Any:
    kind = d.one("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")
    d.takes(1, 2, 3, 4)
    axes = d.one(None, [1], [-1] if d.opset >= 11 else [3], [1, 3], [3, 2], [1, 2, 3], [])
    given: dict[str, Any] = {"keepdims": d.one(None, 0, 1)}
    if d.opset < (13 if kind == "ReduceSum" else 18):
        return d.op(kind, d.x, axes=axes or None, **given)
    given["noop_with_empty_axes"] = d.one(None, 0, 1)
    return d.op(kind, d.x, *([] if axes is None else [d.builder.ints(*axes)]), **given)


def _gemm(d: Draw) -> Any:
    d.takes(*d.one((1, 6), (6, 1), (3, 4)))
    flips = {"transA": d.one(None, 0, 1), "transB": d.one(None, 0, 1)}
    left = d.one(True, True, False)
    mine, other = ("transA", "transB") if left else ("transB", "transA")
    rows, columns = d.shape[::-1] if flips[mine] else d.shape
    inner, outer = (columns, rows) if left else (rows, columns)
    shape = (inner, 3) if left else (3, inner)
    matrix = d.weights(*(shape[::-1] if flips[other] else shape))
    result = (outer, 3) if left else (3, outer)
    operands = [d.x, matrix] if left else [matrix, d.x]
    offsets = [
        d.weights(*n) for n in (result, result[1:], (1, result[1]), (result[0], 1), (1,), ())
    ]
    operands += d.one([], [d.one(*offsets)])
    return d.op(
        "Gemm", *operands, **flips, alpha=d.one(None, 2.0, -1.0), beta=d.one(None, 3.0, 0.0)
    )


def _matmul(d: Draw) -> Any:
    d.takes(*d.one((1, 4), (4,), (3, 4), (1, 3, 4), (1, 2, 3, 4)))
    rows, columns = (1, *d.shape)[-2:]
    right = [(columns, 3), (columns,), (2, columns, 3), (1, columns, 2)]
    left = [(2, rows), (rows,), (2, 5, rows)] if len(d.shape) > 1 else [(2, columns), (columns,)]
    if d.one(True, False):
        return d.op("MatMul", d.x, d.weights(*d.one(*right)))
    return d.op("MatMul", d.weights(*d.one(*left)), d.x)


def _arithmetic(d: Draw) -> Any:
    kind = d.one("Add", "Sub", "Mul", "Div", "Neg", "Sum", "Mean", "Max", "Min")
    d.takes(*d.one((1, 4), (1, 3, 4), (1, 3, 1)))
    if kind == "Neg":
        return d.op(kind, d.x)
    other = d.weights(*d.one((4,), (1,), (), (3, 4), (1, 3, 1), (2, 3, 4)))
    if kind == "Div":
        return d.op(kind, d.x, d.builder.const(d.one([2.0], [-4.0, 0.5, 8, 1], 3.0)))
    pair = d.one([d.x, other], [other, d.x])
    if kind in ("Sum", "Mean", "Max", "Min"):
        return d.op(kind, *d.one(pair, [d.x], [*pair, d.op("Neg", d.x)]))
    return d.op(kind, *pair)


def _activation(d: Draw) -> Any:
    kind = d.one("Clip", "Clip", "LeakyRelu", "PRelu", "PRelu", "HardSigmoid", "Abs")
    d.takes(1, 3, 4)
    if kind == "LeakyRelu":
        return d.op(kind, d.x, alpha=d.one(0.5, -2.0, 3.0, 0.0))
    if kind == "PRelu":
        return d.op(kind, d.x, d.weights(*d.one((3, 4), (4,), (1,), (), (3, 1), (1, 3, 4))))
    if kind == "HardSigmoid":
        return d.op(kind, d.x, alpha=d.one(None, 0.25), beta=d.one(None, 0.5))
    if kind == "Abs":
        return d.op(kind, d.x)
    low, high = (
        d.one(None, -20.0, 0.0, 2.0),
        d.one(None, 3.0, 25.0, 2.0, 3.3e38, 3.4028234663852886e38),
    )
    if d.opset < 11:
        return d.op(kind, d.x, min=low, max=high)
    bounds = ["" if v is None else d.builder.const(d.one(v, v)) for v in (low, high)]
    return d.op(kind, d.x, *bounds)


def _normalization(d: Draw) -> Any:
    d.takes(1, 3, *d.ints(d.one(0, 1, 2, 3), 2, 3))
    numbers = [d.weights(3), d.weights(3), d.weights(3)]
    variance = d.builder.const(d.random.integers(1, 5, size=3))
    return d.op("BatchNormalization", d.x, *numbers, variance, epsilon=d.one(None, 0.5))


def _same(d: Draw) -> Any:
    d.takes(1, 4)
    kind = d.one("Identity", "Dropout", "Cast", "Relu")
    if kind == "Cast":
        return d.op(kind, d.x, to=d.one(TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.FLOAT16))
    if kind == "Dropout":
        if d.opset < 12:
            return d.op(kind, d.x, ratio=d.one(None, 0.25))
        training = d.builder.const(d.one(False, True), np.bool_)
        return d.op(kind, d.x, *d.one([], [d.builder.const(0.25)], ["", training]))
    return d.op(kind, d.x)


FAMILIES: dict[str, Callable[[Draw], Any]] = {
    "activation": _activation,
    "arithmetic": _arithmetic,
    "average pool": windows.average_pool,
    "conv": windows.conv,
    "conv transpose": windows.conv_transpose,
    "gather": _gather,
    "gemm": _gemm,
    "global pool": windows.global_pool,
    "matmul": _matmul,
    "max pool": windows.max_pool,
    "normalization": _normalization,
    "pad": windows.pad,
    "reduce": _reduce,
    "repeat": _repeat,
    "reshape": _reshape,
    "resize": windows.resize,
    "same": _same,
    "slice": _slice,
    "split": _split,
}
DIVIDING = {
    "AveragePool", "BatchNormalization", "Div", "GlobalAveragePool", "HardSigmoid", "Mean",
    "ReduceMean", "Resize", "Upsample",
}  # fmt: skip
