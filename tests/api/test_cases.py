"""Whether a network and a property fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fgp_vnn
from fgp_vnn.base.errors import InputError
from tests.helpers.network_models import Builder


@pytest.mark.parametrize(
    ("shape", "status"),
    [("1,2,3", "sat"), ("2,3", "sat"), ("6", "sat"), ("3,2", ""), ("1,3,2", "")],
)
def test_declared_axes_are_those_of_the_network(tmp_path: Path, shape: str, status: str) -> None:
    builder = Builder([1, 2, 3])
    flat = builder.op("Flatten", builder.op("Relu", "x"))
    model = builder.save(tmp_path / "model.onnx", flat)
    sizes = [int(size) for size in shape.split(",")]
    entries = [f"X[{','.join(map(str, at))}]" for at in np.ndindex(*sizes)]
    box = " ".join(f"(>= {x} 0.0) (<= {x} 1.0)" for x in entries)
    text = f"""(vnnlib-version <2.0>)
(declare-network N (declare-input X real [{shape}]) (declare-output Y real [6]))
(assert (and {box} (>= Y[2] 0.5)))
"""
    (tmp_path / "prop.vnnlib").write_text(text)
    if status:
        assert fgp_vnn.verify(model, tmp_path / "prop.vnnlib").status == status
    else:
        with pytest.raises(InputError, match=r"X is declared with shape .*has shape \[1, 2, 3\]"):
            fgp_vnn.verify(model, tmp_path / "prop.vnnlib")
