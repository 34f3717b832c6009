"""Numbers as people have them, as arrays and exactly."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError

Numbers = NDArray[np.object_]  # Fractions


def to_numpy(values: Any) -> Any:
    """A torch tensor as an array on the host; anything else as it is."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # numpy has none
            values = values.float()
        return values.numpy()
    return values


def exact_numbers(values: Any) -> Numbers:
    """Numbers of any real type as an array of fractions; raises InputError."""
    array = np.asarray(to_numpy(values))
    if array.dtype.kind not in "fiubO":
        raise InputError(f"expected numbers, not {array.dtype}")
    try:
        return objects([Fraction(value) for value in array.ravel().tolist()], array.shape)
    except (TypeError, ValueError, OverflowError):
        raise InputError("expected finite numbers") from None


def objects(values: Sequence[Any], shape: tuple[int, ...]) -> NDArray[np.object_]:
    """An array of objects that numpy does not look into."""
    flat = np.empty(len(values), dtype=object)
    flat[:] = values
    return flat.reshape(shape)
