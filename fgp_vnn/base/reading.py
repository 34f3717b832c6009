"""Reads of device values by the host: each read waits until the device has finished its queue.

A search reads a few counts, such as the number of open bundles, once or twice per batch. Given the
count, the positions of set flags are found without another read.
"""

from __future__ import annotations

import torch
from torch import Tensor

_STATIC = ("cpu", "cuda")  # devices with `nonzero_static`, which needs no read


def read(*numbers: Tensor) -> list[float]:
    """Read scalars [] of one device in a single transfer; counts are exact."""
    dtype = torch.float32 if numbers[0].device.type == "mps" else torch.float64
    return torch.stack([number.to(dtype) for number in numbers]).tolist()


def counts(*flags: Tensor) -> list[int]:
    """The number of set flags [...] in each tensor."""
    return torch.stack([flag.sum() for flag in flags]).tolist()


def places(flags: Tensor, count: float) -> Tensor:
    """The positions [count] at which flags [n] are set, in order; `count` is their number."""
    return _set_ones(flags, count).flatten()


def first_places(flags: Tensor, room: int) -> Tensor:
    """The first positions [room] at which flags [n] are set, padded with 0 if there are fewer."""
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
    """Whether this version of torch has `nonzero_static` on a GPU."""
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    return (major, minor) >= (2, 6)
