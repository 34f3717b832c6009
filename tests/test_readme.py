"""The examples of the README run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fgp_vnn
from tests.helpers.places import BENCHMARK
from tests.helpers.small_networks import random_network, save_onnx

README = Path(fgp_vnn.__file__).parents[1] / "docs" / "howto" / "python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.logits, self.value = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.body(x).relu()
        return {"logits": self.logits(hidden), "value": self.value(hidden)}


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 2), nn.Linear(2, 2)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.first(a).relu() + self.second(b)
        return result


@pytest.mark.filterwarnings("ignore")  # of torch's exporter
def test_the_examples_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_onnx(random_network((6, 8, 7, 3), 1), tmp_path / "model.onnx")
    box = "".join(f"(assert (>= X_{i} 0.0))(assert (<= X_{i} 0.1))" for i in range(6))
    names = [f"(declare-const X_{i} Real)" for i in range(6)]
    names += [f"(declare-const Y_{i} Real)" for i in range(3)]
    text = "".join(names) + box + "(assert (>= Y_0 1000.0))"
    (tmp_path / "property.vnnlib").write_text(text)
    torch.manual_seed(0)
    points = np.random.default_rng(0).uniform(0, 1, (4, 6)).astype(np.float32)
    point = points[0]
    given: dict[str, Any] = {
        "module": nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)),
        "x": torch.rand(1, 6),
        "two_heads": TwoHeads(),
        "two_inputs": TwoInputs(),
        "a": torch.rand(1, 3),
        "b": torch.rand(1, 2),
        "lower": point - 0.01,
        "upper": point + 0.01,
        "point": point,
        "batch": points,
        "labels": [0, 1, 2, 0],
    }
    assert len(BLOCKS) >= 3 and BENCHMARK.is_dir()
    for block in BLOCKS:
        if "two_heads" in block:
            own = dict(given, fgp_vnn=fgp_vnn, x=torch.rand(1, 6))
            lines = [line for line in block.split("\n") if "two_heads" not in line]
            exec("\n".join(lines), own)
            x = torch.rand(1, 3)
            chosen = fgp_vnn.load_model(given["two_heads"], x, outputs="logits")
            assert chosen.network.outputs == 2
            save_onnx(random_network((6, 8, 7, 3), 1), tmp_path / "model.onnx")
            continue
        exec(block, given)
    assert given["best"].value <= given["best"].upper
