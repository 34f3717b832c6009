"""Conversion of user numbers to arrays and exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError

Numbers = NDArray[np.object_]  # Fractions
Doubles = NDArray[np.float64]


def to_numpy(values: Any) -> Any:
    """A torch tensor as an array on the host; anything else as it is."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # numpy has no such type
            values = values.float()
        return values.numpy()
    return values


def same_layout(given: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether arrays of these two shapes, flattened, hold their values in the same order: their
    axes are alike but for those of size 1, or one of the two is flat."""
    mine, theirs = ([size for size in s if size != 1] for s in (given, shape))
    return len(mine) <= 1 or len(theirs) <= 1 or mine == theirs


def exact_numbers(values: Any) -> Numbers:
    """Numbers of any real type as an array of fractions; raises InputError."""
    array = np.asarray(to_numpy(values))
    if array.dtype.kind not in "fiubO":
        kind = "text" if array.dtype.kind in "US" else array.dtype
        raise InputError(f"expected numbers, not {kind}")
    try:
        return objects([Fraction(value) for value in array.ravel().tolist()], array.shape)
    except (TypeError, ValueError, OverflowError):
        raise InputError("expected finite numbers") from None


def objects(values: Sequence[Any], shape: tuple[int, ...]) -> NDArray[np.object_]:
    """An object array; numpy does not unpack its elements."""
    flat = np.empty(len(values), dtype=object)
    flat[:] = values
    return flat.reshape(shape)


def snap(
    point: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Round each coordinate to the nearest float32 inside [lower, upper].

    If there is none, as for an input fixed at 0.1, the float64 itself is returned: the results file
    holds this value, and the network gets it rounded to float32.
    """
    inside = np.clip(point, lower, upper)
    with np.errstate(over="ignore", under="ignore"):  # past the largest float32 lies infinity
        x = inside.astype(np.float32)
        up = np.nextafter(x, np.float32(np.inf))
        x = np.where((x < lower) & (up <= upper), up, x)
        down = np.nextafter(x, np.float32(-np.inf))
        x = np.where((x > upper) & (down >= lower), down, x)
    return np.where((lower <= x) & (x <= upper), x.astype(np.float64), inside)
