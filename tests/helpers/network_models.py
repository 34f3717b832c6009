"""Small random ONNX networks for the tests of the loader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


@dataclass
class Builder:
    """Writes an ONNX graph node by node; weights are random."""

    shape: Sequence[int | str | None]
    opset: int = 13
    seed: int = 0
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def const(self, value: Any, dtype: type = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def ints(self, *values: int) -> str:
        return self.const(values, np.int64)

    def random(self, *shape: int) -> str:
        return self.const(self._random.normal(size=shape) / 2)

    def positive(self, *shape: int) -> str:
        return self.const(self._random.uniform(0.5, 2, size=shape))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        label = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), names, label, **attributes))
        return names[0] if outputs == 1 else names

    def model(
        self, output: str | Sequence[str], *, listed: bool = False, kind: int = FLOAT
    ) -> onnx.ModelProto:
        """The model; with `listed`, initialisers are listed as inputs too, as old files do."""
        inputs = [helper.make_tensor_value_info("x", kind, self.shape)]
        if listed:
            inputs += [
                helper.make_tensor_value_info(c.name, c.data_type, c.dims) for c in self.constants
            ]
        names = [output] if isinstance(output, str) else output
        outputs = [helper.make_tensor_value_info(name, FLOAT, None) for name in names]
        graph = helper.make_graph(self.nodes, "test", inputs, outputs, self.constants)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8
        )

    def save(self, path: Path, output: str | Sequence[str], **options: Any) -> Path:
        path.write_bytes(self.model(output, **options).SerializeToString())
        return path


WEIGHTS = "weights.bin"


def beside(model: Path, folder: Path, *, weights: str = WEIGHTS) -> Path:
    """The network of a file with its weights in another one."""
    path = folder / "network.onnx"
    options: dict[str, Any] = {"save_as_external_data": True, "location": weights}
    onnx.save_model(onnx.load(str(model)), str(path), size_threshold=0, **options)
    return path
