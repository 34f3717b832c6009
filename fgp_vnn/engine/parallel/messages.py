"""Messages between processes: tensors travel as plain arrays, without files or shared memory."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch
from torch import Tensor


def packed(message: Any) -> bytes:
    """The bytes of a message."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    return buffer.getvalue()


def unpacked(data: bytes) -> Any:
    """The message of some bytes, which come from a process that we have started."""
    return pickle.loads(data)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if type(value) is Tensor:
            return torch.from_numpy, (value.detach().cpu().numpy(),)
        return NotImplemented
