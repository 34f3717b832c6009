"""Small models of all kinds, exported in all ways, of which docs/howto/model.md has a table.

`python -m tests.helpers.model_table` prints that table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn

from tests.helpers.model_layers import (
    Branches,
    Call,
    Heads,
    Normalised,
    Pair,
    Residual,
    Stem,
)

Exporter = str
TRACED, EXPORTED = "dynamo=False", "dynamo=True"
OPSETS = {TRACED: range(13, 24), EXPORTED: range(18, 27)}  # all that torch 2.13 writes, from 13 on
IMAGE = (1, 6, 6)
CHAINS = ("MLP", "CNN", "Pooled", "Resized")  # families without branches


@dataclass(frozen=True)
class Architecture:
    """A kind of model, and the shape of one input without its batch."""

    family: str
    name: str
    build: Callable[[], nn.Module]
    shape: tuple[int, ...] = IMAGE
    outputs: str | int | None = None  # which of several


@dataclass(frozen=True)
class Row:
    """An architecture, and how it was exported."""

    architecture: Architecture
    exporter: Exporter
    opset: int
    beside: bool  # its weights lie in another file

    def __str__(self) -> str:
        weights = "weights beside" if self.beside else "weights inside"
        a = self.architecture
        return f"{a.family}, {a.name}, {self.exporter}, opset {self.opset}, {weights}"

    def module(self) -> nn.Module:
        """The module, for evaluation, with the same weights each time."""
        torch.manual_seed(3)
        module = self.architecture.build()
        for layer in module.modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                assert layer.running_mean is not None and layer.running_var is not None
                nn.init.uniform_(layer.running_mean, -0.2, 0.2)
                nn.init.uniform_(layer.running_var, 0.5, 1.5)
        return module.eval()

    def save(self, folder: Path) -> Path:
        """The model as its exporter writes it."""
        path = folder / "model.onnx"
        example: Any = tuple(
            torch.zeros(1, *self.architecture.shape) for _ in range(self.arguments)
        )
        more: dict[str, Any] = {"opset_version": self.opset, "verbose": False}
        if self.exporter == EXPORTED:
            more |= {"dynamo": True, "external_data": self.beside}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the exporters' future
            torch.onnx.export(self.module(), example, str(path), **({"dynamo": False} | more))
        if self.beside and self.exporter == TRACED:
            model = onnx.load(str(path))
            options: dict[str, Any] = {"save_as_external_data": True, "location": "model.data"}
            onnx.save_model(model, str(path), size_threshold=0, **options)
        return path

    @property
    def arguments(self) -> int:
        return 2 if self.architecture.name == "two inputs" else 1


def _flat(*layers: nn.Module, outputs: int = 3) -> nn.Sequential:
    """Layers on an image, then a linear one on all that they give."""
    before = nn.Sequential(*layers, nn.Flatten())
    with torch.no_grad():
        size = before.eval()(torch.zeros(1, *IMAGE)).shape[1]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(size, outputs))


def _dense(*between: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        layers: list[nn.Module] = [nn.Linear(4, 5)]
        for make in between:
            layers += [make(), nn.Linear(5, 5)]
        return nn.Sequential(*layers, nn.ReLU(), nn.Linear(5, 3))

    return build


def _conv(*layers: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: _flat(*(make() for make in layers))


def _c(inputs: int, outputs: int, size: int, **options: Any) -> Callable[[], nn.Module]:
    return lambda: nn.Conv2d(inputs, outputs, size, **options)


VECTOR = (4,)
ARCHITECTURES = [
    Architecture("MLP", "ReLU", _dense(nn.ReLU), VECTOR),
    Architecture("MLP", "leaky ReLU", _dense(nn.LeakyReLU), VECTOR),
    Architecture("MLP", "PReLU", _dense(nn.PReLU), VECTOR),
    Architecture("MLP", "ReLU6, Hardtanh", _dense(nn.ReLU6, nn.Hardtanh), VECTOR),
    Architecture("MLP", "Hardsigmoid", _dense(nn.Hardsigmoid), VECTOR),
    Architecture("MLP", "dropout", _dense(nn.ReLU, nn.Dropout), VECTOR),
    Architecture("MLP", "batch normalisation", _dense(lambda: nn.BatchNorm1d(5)), VECTOR),
    Architecture("MLP", "maximum, abs", _dense(lambda: Call(_maximum)), VECTOR),
    Architecture("MLP", "final softmax", lambda: nn.Sequential(_dense()(), nn.Softmax(1)), VECTOR),
    Architecture("CNN", "strides, padding", _conv(_c(1, 2, 3, stride=2, padding=1), nn.ReLU)),
    Architecture("CNN", "dilated, grouped", _conv(_c(1, 4, 2, dilation=2), nn.ReLU,
                                                  _c(4, 4, 2, groups=2))),
    Architecture("CNN", "depthwise separable", _conv(_c(1, 3, 1), _c(3, 3, 3, groups=3), nn.ReLU,
                                                     _c(3, 2, 1))),
    Architecture("CNN", "transposed", _conv(_c(1, 2, 3, stride=2), nn.ReLU, lambda:
                                            nn.ConvTranspose2d(2, 1, 3, stride=2))),
    Architecture("CNN", "batch normalisation", _conv(_c(1, 2, 3), lambda: nn.BatchNorm2d(2),
                                                     nn.ReLU)),
    Architecture("CNN", "padded unevenly", _conv(lambda: nn.ZeroPad2d((1, 0, 2, 0)), _c(1, 2, 3),
                                                 nn.ReLU)),
    Architecture("CNN", "reflected edges", _conv(lambda: nn.ReflectionPad2d(1), _c(1, 2, 3),
                                                 nn.ReLU)),
    Architecture("CNN", "one dimension", lambda: nn.Sequential(
        nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)), (1, 6)),
    Architecture("CNN", "three dimensions", lambda: nn.Sequential(
        nn.Conv3d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)), (1, 3, 3, 3)),
    Architecture("Pooled", "maxima", _conv(_c(1, 2, 3), nn.ReLU, lambda: nn.MaxPool2d(2))),
    Architecture("Pooled", "averages", _conv(_c(1, 2, 3), nn.ReLU, lambda: nn.AvgPool2d(2))),
    Architecture("Pooled", "global average", _conv(_c(1, 3, 3), nn.ReLU,
                                                   lambda: nn.AdaptiveAvgPool2d(1))),
    Architecture("Pooled", "global maximum", _conv(_c(1, 3, 5), lambda: Call(_largest))),
    Architecture("Resized", "nearest", _conv(_c(1, 2, 4), nn.ReLU,
                                             lambda: nn.Upsample(scale_factor=2))),
    Architecture("Resized", "bilinear", _conv(_c(1, 2, 4), nn.ReLU, lambda: nn.Upsample(
        scale_factor=2, mode="bilinear"))),
    Architecture("Resized", "pixel shuffle", _conv(_c(1, 4, 4), nn.ReLU,
                                                   lambda: nn.PixelShuffle(2))),
    Architecture("ResNet", "skip connection", _conv(_c(1, 2, 3), lambda: Residual(2))),
    Architecture("ResNet", "stem and two blocks", _conv(Stem, lambda: Residual(2),
                                                        lambda: Residual(2))),
    Architecture("Branches", "concatenated, split", _conv(Branches)),
    Architecture("Normalised", "mean and deviation of pixels", _conv(Normalised, _c(1, 2, 3),
                                                                     nn.ReLU)),
    Architecture("Several", "two heads", Heads, VECTOR, 0),
    Architecture("Several", "two inputs", Pair, VECTOR),
    Architecture("One output", "binary, regression", lambda: nn.Sequential(
        nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1)), VECTOR),
]  # fmt: skip


def _maximum(x: Tensor) -> Tensor:
    return torch.maximum(x, x.abs() - 0.2)


def _largest(x: Tensor) -> Tensor:
    return x.amax((2, 3), keepdim=True)


def rows() -> list[Row]:
    """Each architecture by the first exporter; every third chain of layers, and all others, by
    the second one, which is slow. The opsets and the places of the weights in turn."""
    some = [a for k, a in enumerate(ARCHITECTURES) if k % 3 == 1 or a.family not in CHAINS]
    return [
        Row(architecture, exporter, OPSETS[exporter][i % len(OPSETS[exporter])], i % 2 == 0)
        for exporter, chosen in ((TRACED, ARCHITECTURES), (EXPORTED, some))
        for i, architecture in enumerate(chosen)
    ]


def as_markdown() -> str:
    """The table of docs/howto/model.md: a line for each family."""
    lines = [
        f"| models | `{TRACED}`, opset | `{EXPORTED}`, opset |",
        "|---|---|---|",
    ]
    for family in dict.fromkeys(a.family for a in ARCHITECTURES):
        names = "; ".join(a.name for a in ARCHITECTURES if a.family == family)
        of = [row for row in rows() if row.architecture.family == family]
        seen = [sorted({r.opset for r in of if r.exporter == exporter}) for exporter in OPSETS]
        cells = " | ".join(map(_ranges, seen))
        lines.append(f"| {family}: {names} | {cells} |")
    return "\n".join(lines)


def _ranges(numbers: list[int]) -> str:
    """Sorted numbers in short, as 13-19, 22."""
    starts = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    pairs = zip(starts, ends, strict=True)
    return ", ".join(f"{first}-{last}" if first < last else str(first) for first, last in pairs)


if __name__ == "__main__":
    print(as_markdown())
