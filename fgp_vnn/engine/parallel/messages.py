"""Messages between processes: tensors are sent as plain arrays, without files or shared memory."""

from __future__ import annotations

import io
import pickle
import sys
import warnings
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from fgp_vnn.network.activations import table
from fgp_vnn.network.activations.base import Activation


def packed(message: Any) -> bytes:
    """The bytes of a message."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    return buffer.getvalue()


def unpacked(data: bytes) -> Any:
    """The message in some bytes; they must come from a process of this search (pickle)."""
    return pickle.loads(data)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if type(value) is Tensor:
            if value.layout is torch.sparse_csr:
                parts = value.crow_indices(), value.col_indices(), value.values()
                return _compressed, (*parts, tuple(value.shape))
            return torch.from_numpy, (value.detach().cpu().numpy(),)
        if isinstance(value, Activation) and id(value) in _constants():
            return getattr, (sys.modules[_constants()[id(value)][0]], _constants()[id(value)][1])
        if isinstance(value, ModuleType):
            return import_module, (value.__name__,)
        return NotImplemented


def _compressed(rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "sparse CSR support is in beta"
        return torch.sparse_csr_tensor(rows, columns, values, shape)


@cache
def _constants() -> Mapping[int, tuple[str, str]]:
    """Module and name of each activation constant, by its id; a constant is sent by name."""
    folder = table.__name__.rpartition(".")[0]
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(folder):
            for own, value in vars(module).items():
                if isinstance(value, Activation):
                    found[id(value)] = name, own
    return found
