"""Conversion of user input (arrays, numbers, names) to the internal form.

Internally, inputs are flat float64 vectors. Users may pass numpy arrays, torch tensors or lists of
any real type, flat or in the network's shape, with or without the batch dimension.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.robustness import Doubles, Norm
from fgp_vnn.base.verdict import Counterexample
from fgp_vnn.base.words import plural, real_number
from fgp_vnn.property.numbers import same_layout, to_numpy

_NORMS: dict[str, Norm] = {
    **dict.fromkeys(("l2", "2", "2.0", "euclidean"), "l2"),
    **dict.fromkeys(("linf", "inf", "l_inf", "max"), "linf"),
    **dict.fromkeys(("l1", "1", "1.0"), "l1"),
}


@dataclass(frozen=True, eq=False)
class Given:
    """The user's inputs as flat float64 vectors, with the shape and type they were passed in."""

    points: list[Doubles]  # flat
    single: bool  # one input was given, not a batch
    shape: tuple[int, ...]  # of one input as the user passed it
    dtype: Any  # a numpy or torch type
    device: Any = None  # torch device; None for numpy

    def back(self, x: Doubles) -> Any:
        """A flat input in the shape and type of the user's inputs; in float32 if that type cannot
        represent every float32."""
        array = x.reshape(self.shape)
        if self.device is not None:
            import torch

            wide = self.dtype if self.dtype in (torch.float32, torch.float64) else torch.float32
            return torch.from_numpy(array).to(self.device, wide)
        wide = self.dtype if self.dtype in (np.float32, np.float64) else np.dtype(np.float32)
        return array.astype(wide)

    def answer(self, found: Counterexample | None) -> Counterexample | None:
        """The counterexample with x in the user's shape and type."""
        return None if found is None else Counterexample(self.back(found.x), found.y)


def read_inputs(x: Any, shape: tuple[int, ...], inputs: int) -> Given:
    """Read one input, or a batch along the first axis if the array has more values than the network
    has inputs; raises InputError."""
    array = real_array(x, "inputs")
    if not in_float32(array).all():
        raise InputError("inputs have values that are not finite numbers of float32")
    torch_like = hasattr(x, "detach")
    dtype, device = (x.dtype, x.device) if torch_like else (array.dtype, None)
    if array.size == inputs:
        check_layout("an input", array.shape, shape)
        return Given([array.reshape(-1).astype(np.float64)], True, array.shape, dtype, device)
    if not array.size:
        raise InputError(f"there is no input in an array of shape {array.shape}")
    if array.ndim < 1 or array[0].size != inputs:
        raise InputError(
            f"inputs of shape {array.shape} do not fit a network with {plural(inputs, 'input')}, "
            f"which takes inputs of shape {shape}"
        )
    check_layout("an input", array.shape[1:], shape)
    flat = list(array.reshape(len(array), -1).astype(np.float64))
    return Given(flat, False, array.shape[1:], dtype, device)


def in_float32(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the values that are finite in float32, the numbers of most networks."""
    with np.errstate(over="ignore"):
        return np.isfinite(array.astype(np.float32))


def check_layout(what: str, given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuse an array whose axes are in another order than the network's, such as an image with
    channels last: flattening would put its values in the wrong places."""
    if not same_layout(given, shape):
        mine, theirs = (sorted(size for size in s if size != 1) for s in (given, shape))
        hint = "; transpose it first" if mine == theirs else ""
        raise InputError(f"{what} of shape {given} does not fit the network's {shape}{hint}")


def real_array(values: Any, what: str) -> NDArray[Any]:
    """Convert to a numpy array of a real type; raises InputError that names `what`."""
    try:
        array = np.asarray(to_numpy(values))
        if array.dtype.kind == "O":  # Python objects such as fractions
            if any(value is None or isinstance(value, str) for value in array.flat):
                raise TypeError
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} must be an array of numbers of float64") from None
    if array.dtype.kind not in "fiub":
        kind = "text" if array.dtype.kind in "US" else array.dtype
        raise InputError(f"{what} must be real numbers, not {kind}")
    return array


def read_number(value: Any, what: str) -> float:
    """Convert a number, or a string such as "8/255", to a finite float."""
    try:
        if value is None or isinstance(value, bool):
            raise TypeError
        number = real_number(value) if isinstance(value, str) else float(to_numpy(value))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"{what} is {value!r}; it must be a number") from None
    if not math.isfinite(number):
        raise InputError(f"{what} is {value!r}; it must be finite")
    return number


def read_numbers(value: Any, what: str, shape: tuple[int, ...], inputs: int) -> float | Doubles:
    """Return a float, or an array [inputs]. The user passes one value for all inputs, one per
    channel or one per input; `shape` is the shape of the network's input."""
    if isinstance(value, (str, Fraction, int, float)):
        return read_number(value, what)
    if isinstance(value, (list, tuple)) and any(isinstance(v, str) for v in value):
        value = [read_number(v, what) for v in value]
    array = real_array(value, what).astype(np.float64)
    if not array.ndim:
        return read_number(float(array), what)
    if not np.isfinite(array).all():
        raise InputError(f"{what} has values that are not finite")
    if array.size == inputs:
        check_layout(what, array.shape, shape)
        return array.reshape(-1)
    own = shape[1:] if len(shape) > 1 and shape[0] == 1 else shape
    if array.ndim == 1 and len(own) > 1 and len(array) == own[0]:
        array = array.reshape(-1, *[1] * (len(own) - 1))  # one value per channel
    try:
        spread: Doubles = np.broadcast_to(array, own).reshape(-1).copy()
        return spread
    except ValueError:
        raise InputError(
            f"{what} of shape {array.shape} is neither one number, nor one for each channel or "
            f"each value of an input of shape {own}"
        ) from None


def read_norm(norm: Any) -> Norm:
    """The norm for a name such as "l2", 2 or infinity."""
    name = str(norm).strip().lower()
    if name not in _NORMS:
        raise InputError(f"norm is {norm!r}; it must be one of l2, linf, l1 (or 2, inf, 1)")
    return _NORMS[name]


def read_mask(mask: Any, shape: tuple[int, ...], inputs: int) -> NDArray[np.bool_] | None:
    """Which inputs [inputs] may change; None if all may."""
    if mask is None:
        return None
    array = real_array(mask, "mask")
    if array.dtype.kind != "b" and not np.isin(array, (0, 1)).all():
        raise InputError("mask must hold True and False, or 0 and 1")
    moves = np.asarray(read_numbers(array.astype(np.float64), "mask", shape, inputs)) != 0
    each: NDArray[np.bool_] = np.broadcast_to(moves, (inputs,)).copy()
    return each


def read_classes(y: Any, count: int, outputs: int, what: str = "y") -> list[int]:
    """One class number for each of `count` points."""
    array = real_array(y, what).reshape(-1)
    if len(array) != count or not (array == np.floor(array)).all():
        wanted = "one class number" if count == 1 else f"{count} class numbers, one for each input"
        raise InputError(f"{what} must hold {wanted}")
    if (wrong := array[(array < 0) | (array >= outputs)]).size:
        named = f"{what} names class {wrong[0]:.12g}"
        raise InputError(f"{named}; the classes are numbered from 0 to {outputs - 1}")
    return [int(value) for value in array]


def read_targets(target: Any, outputs: int) -> tuple[int, ...] | None:
    """The classes whose prediction counts as a counterexample; None for all other classes."""
    if target is None:
        return None
    several = isinstance(target, Iterable) and not isinstance(target, str)
    values = list(target) if several else [target]
    if not values:
        raise InputError("target is empty: name a class, or leave it out for all")
    return tuple(dict.fromkeys(read_classes(values, len(values), outputs, "target")))
