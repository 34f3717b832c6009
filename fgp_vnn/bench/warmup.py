"""The smallest instance: solved before the first real one, so that none pays for late imports."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_PROPERTY = """(declare-const X_0 Real)
(declare-const Y_0 Real)
(assert (>= X_0 0.0))
(assert (<= X_0 1.0))
(assert (>= Y_0 5.0))
"""


def warm_up(verify: Callable[..., Any], settings: dict[str, Any]) -> None:
    """Solve y = relu(x) <= 1 < 5; what goes wrong here will go wrong, and be told, later."""
    with tempfile.TemporaryDirectory(prefix="fgp-vnn-") as folder, suppress(Exception):
        network, prop = Path(folder) / "smallest.onnx", Path(folder) / "smallest.vnnlib"
        network.write_bytes(_network())
        prop.write_text(_PROPERTY)
        verify(str(network), str(prop), timeout=10.0, **settings)


def _network() -> bytes:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "one", "zero"], ["z"]),
            helper.make_node("Relu", ["z"], ["a"]),
            helper.make_node("Gemm", ["a", "one", "zero"], ["y"]),
        ],
        "smallest",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])],
        [
            numpy_helper.from_array(np.ones((1, 1), dtype=np.float32), "one"),
            numpy_helper.from_array(np.zeros(1, dtype=np.float32), "zero"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())
