"""One planted counterexample: a network, a box, and the point of the box that is unsafe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fgp_vnn.bench.check import OnnxFile, judge
from fgp_vnn.property import load_property
from training.export import to_onnx

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Planted:
    """The property y[label] > y[target] in the box, which `point` breaks."""

    name: str
    model: nn.Sequential
    shape: tuple[int, ...]  # of the input, without batch
    lower: Floats  # [inputs]
    upper: Floats  # [inputs]
    point: Floats  # [inputs]
    label: int
    target: int

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write the network and the property to files; ValueError if onnxruntime does not confirm
        that the point is a counterexample."""
        onnx, vnnlib = folder / f"{self.name}.onnx", folder / f"{self.name}.vnnlib"
        onnx.write_bytes(to_onnx(self.model, self.shape, name="planted").SerializeToString())
        vnnlib.write_text(self._property())
        why = judge(self.point, None, OnnxFile(onnx), load_property(vnnlib)).fault
        if why:
            raise ValueError(f"{self.name}: the planted point is no counterexample: {why}")
        return onnx, vnnlib

    def _property(self) -> str:
        outputs = self.model[-1].out_features
        lines = [f"(declare-const X_{i} Real)" for i in range(self.lower.size)]
        lines += [f"(declare-const Y_{i} Real)" for i in range(int(outputs))]  # type: ignore[arg-type]
        for i, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            lines += [f"(assert (>= X_{i} {float(low)!r}))", f"(assert (<= X_{i} {float(high)!r}))"]
        return "\n".join([*lines, f"(assert (<= Y_{self.label} Y_{self.target}))", ""])
