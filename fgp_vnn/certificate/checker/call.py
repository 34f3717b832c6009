"""A node as the checker's operator rules see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.certificate.checker.forms import Constant, Form


@dataclass(frozen=True, eq=False)
class Call:
    """The inputs and attributes of a node, and functions that add a layer to the network."""

    inputs: list[Form | Constant | None]
    attributes: dict[str, Any]
    outputs: int  # number of the node's outputs
    relu: Callable[[Form], Form]
    layer: Callable[[Form, str, tuple[int, ...]], Form]  # takes z, the layer's kind, its shape

    def form(self) -> Form:
        value = self.inputs[0]
        if not isinstance(value, Form):
            raise UnsupportedError("it reads a constant where it should read the network's input")
        return value

    def constant(self, index: int) -> Constant | None:
        value = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(value, Form):
            raise UnsupportedError("a product of two tensors that depend on the input")
        return value

    def ints(self, name: str, index: int) -> list[int] | None:
        """Integers that older ONNX versions store as an attribute and newer ones as an input."""
        value = self.attributes.get(name, self.constant(index))
        return None if value is None else [int(v) for v in np.ravel(np.asarray(value))]

    def number(self, name: str, index: int, default: float) -> float:
        """A number that older ONNX versions store as an attribute and newer ones as an input."""
        value = self.attributes.get(name, self.constant(index))
        return default if value is None else float(np.asarray(value).item())
