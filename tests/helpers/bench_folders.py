"""Small benchmark folders for tests: the network is the identity on the plane."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from fgp_vnn.bench.instances import Instance

VERIFIER = "tests.bench.verifiers:by_name"

# Broken where the first coordinate is at least the second, on the unit square.
PROPERTY = """; X_0 >= X_1
(declare-const X_0 Real)
(declare-const X_1 Real)
(declare-const Y_0 Real)
(declare-const Y_1 Real)
(assert (<= X_0 1.0))
(assert (>= X_0 0.0))
(assert (<= X_1 1.0))
(assert (>= X_1 0.0))
(assert (>= Y_0 Y_1))
"""


def identity(
    size: int = 2, shape: Sequence[int | str] | None = None, offset: Sequence[float] | None = None
) -> bytes:
    """An ONNX file that gives back its input, plus an offset if there is one, through one Gemm."""
    dims = [1, size] if shape is None else list(shape)
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "identity",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, size])],
        [
            numpy_helper.from_array(np.eye(size, dtype=np.float32), "w"),
            numpy_helper.from_array(np.array(offset or [0.0] * size, dtype=np.float32), "b"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def make_folder(folder: Path, words: Sequence[str], timeout: float = 5.0) -> Path:
    """A benchmark with one instance per word, named 0-WORD.onnx, 1-WORD.onnx, ..."""
    (folder / "onnx").mkdir(parents=True)
    (folder / "vnnlib").mkdir()
    (folder / "vnnlib" / "prop.vnnlib").write_text(PROPERTY)
    network = identity()
    rows = []
    for number, word in enumerate(words):
        (folder / "onnx" / f"{number}-{word}.onnx").write_bytes(network)
        rows.append(f"onnx/{number}-{word}.onnx,vnnlib/prop.vnnlib,{timeout}\n")
    (folder / "instances.csv").write_text("".join(rows))
    return folder


def make_instance(folder: Path, word: str, timeout: float = 5.0) -> Instance:
    """One instance alone, its files written."""
    (folder / "prop.vnnlib").write_text(PROPERTY)
    network = folder / f"0-{word}.onnx"
    network.write_bytes(identity())
    return Instance(
        "tests",
        network.name,
        "prop.vnnlib",
        timeout,
        (str(network),),
        str(folder / "prop.vnnlib"),
    )
