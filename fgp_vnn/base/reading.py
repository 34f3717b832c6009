"""Reads of device values by the host: each read waits until the device has finished its queue.

A search reads how many of its bundles are open, and the like, once or twice for each batch; where
they are is then found without another look.
"""

from __future__ import annotations

import torch
from torch import Tensor

_STATIC = ("cpu", "cuda")  # devices on which flags are found without a look


def read(*numbers: Tensor) -> list[float]:
    """Numbers [] of one device, all of them at once; counts are exact."""
    dtype = torch.float32 if numbers[0].device.type == "mps" else torch.float64
    found: list[float] = torch.stack([number.to(dtype) for number in numbers]).tolist()
    return found


def counts(*flags: Tensor) -> list[int]:
    """How many of the flags [...] are set in each tensor."""
    found: list[int] = torch.stack([flag.sum() for flag in flags]).tolist()
    return found


def places(flags: Tensor, count: float) -> Tensor:
    """Where flags [n] are set, in order, given that `count` of them are."""
    return _set_ones(flags, count).flatten()


def first_places(flags: Tensor, room: int) -> Tensor:
    """The first places [room] at which flags [n] are set, and 0 for each that there are fewer."""
    if flags.device.type in _STATIC and _has_static():
        return torch.nonzero_static(flags, size=room, fill_value=0).flatten()
    found = torch.nonzero(flags).flatten()[:room]
    return torch.nn.functional.pad(found, (0, room - len(found)))


def cells(flags: Tensor, count: float) -> tuple[Tensor, Tensor]:
    """The rows [count] and columns [count] at which flags [n, m] are set, in order."""
    row, column = _set_ones(flags, count).unbind(1)
    return row, column


def _set_ones(flags: Tensor, count: float) -> Tensor:
    if not count:
        return torch.zeros(0, flags.dim(), dtype=torch.long, device=flags.device)
    if flags.device.type not in _STATIC or not _has_static():
        return torch.nonzero(flags)
    return torch.nonzero_static(flags, size=int(count))


def _has_static() -> bool:
    """Whether this version of torch has the operation on a GPU."""
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    return (major, minor) >= (2, 6)
