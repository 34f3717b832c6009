"""The smallest instance, solved before the first real one so that imports are not timed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_NETWORK = """<ir_version: 8, opset_import: ["": 13]>
smallest (float[1, 1] x) => (float[1, 1] y) <float[1, 1] one = {1}, float[1] zero = {0}> {
  z = Gemm(x, one, zero)
  a = Relu(z)
  y = Gemm(a, one, zero)
}"""
_PROPERTY = """(declare-const X_0 Real)
(declare-const Y_0 Real)
(assert (>= X_0 0.0))
(assert (<= X_0 1.0))
(assert (>= Y_0 5.0))
"""


def warm_up(verify: Callable[..., Any], settings: dict[str, Any]) -> None:
    """Solve y = relu(x) <= 1 < 5 on [0, 1]; an error here will recur in the first real answer."""
    with tempfile.TemporaryDirectory(prefix="fgp-vnn-") as folder, suppress(Exception):
        network, prop = write_smallest(Path(folder))
        verify(str(network), str(prop), timeout=10.0, **settings)


def write_smallest(folder: Path) -> tuple[Path, Path]:
    """Write the network and the property of the smallest instance; return their paths."""
    from onnx import parser

    network, prop = folder / "smallest.onnx", folder / "smallest.vnnlib"
    network.write_bytes(parser.parse_model(_NETWORK).SerializeToString())
    prop.write_text(_PROPERTY)
    return network, prop
