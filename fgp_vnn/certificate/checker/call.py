"""A node on its way through the checker's reader: what a rule for its operator may ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fgp_vnn.base.errors import UnsupportedError
from fgp_vnn.certificate.checker.forms import Constant, Form


@dataclass(frozen=True, eq=False)
class Call:
    """What a node reads, its attributes, and how a ReLU layer and one of another kind are made."""

    inputs: list[Form | Constant | None]
    attributes: dict[str, Any]
    outputs: int  # how many it has
    relu: Callable[[Form], Form]
    layer: Callable[[Form, str, tuple[int, ...]], Form]  # of a kind, with values of a shape

    def form(self, index: int = 0) -> Form:
        value = self.inputs[index]
        if not isinstance(value, Form):
            raise UnsupportedError("it reads a constant where it should read the network's input")
        return value

    def constant(self, index: int) -> Constant | None:
        value = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(value, Form):
            raise UnsupportedError("a product of two tensors that depend on the input")
        return value

    def ints(self, name: str, index: int) -> list[int] | None:
        """Whole numbers that older files hold as an attribute and newer ones as an input."""
        value = self.attributes.get(name, self.constant(index))
        return None if value is None else [int(v) for v in np.ravel(np.asarray(value))]

    def number(self, name: str, index: int, default: float) -> float:
        """One number that older files hold as an attribute and newer ones as an input."""
        value = self.attributes.get(name, self.constant(index))
        return default if value is None else float(np.asarray(value).item())
