"""Random networks of one operator each: what is drawn for them, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.helpers.network_models import Builder


@dataclass
class Draw:
    """One random network in the making: what is drawn ends up in its description."""

    random: np.random.Generator
    opset: int

    def __post_init__(self) -> None:
        self.shape: list[int] = []
        self.builder = Builder([], self.opset)
        self.x = "x"

    def one(self, *choices: Any) -> Any:
        return choices[self.random.integers(len(choices))]

    def ints(self, count: int, *choices: int) -> list[int]:
        return [int(self.one(*choices)) for _ in range(count)]

    def takes(self, *shape: int) -> None:
        """The shape of the network's input."""
        self.shape = list(shape)
        self.builder.shape = self.shape
        if self.one(True, False):
            self.x = self.builder.op("Relu", "x")

    def weights(self, *shape: int) -> str:
        return self.builder.const(self.random.integers(-4, 5, size=shape))

    def op(self, kind: str, *operands: str, outputs: int = 1, **attributes: Any) -> Any:
        given = {name: value for name, value in attributes.items() if value is not None}
        return self.builder.op(kind, *operands, outputs=outputs, **given)
