"""The device that a search runs on, and torch's modes there."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

import torch

from fgp_vnn.base.deferred import load_deferred
from fgp_vnn.base.errors import InputError
from fgp_vnn.network.model import Dense, Network

_ONEDNN = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")  # variables that it reads


def pick_device(name: str, precision: str) -> torch.device:
    """The device of that name; `auto` is the GPU if there is one, else the CPU.

    Switches formats that are shorter than float32 off. For another device than the CPU, loads what
    the start of the command has deferred.
    """
    _use_whole_floats()
    device = _available(name, precision)
    if device.type != "cpu":  # deferring was tried on the CPU only
        load_deferred()
    return device


def _use_whole_floats() -> None:
    """Compute float32 products in float32, not in TensorFloat-32 or bfloat16, whatever the caller's
    settings: proofs rely on it."""
    for variable in _ONEDNN:
        if os.environ.get(variable, "STRICT").upper() != "STRICT":
            raise InputError(f"unset {variable}: proofs rely on products in full float32")
    if any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")):
        raise InputError("leave torch.autocast: proofs rely on products in full float32")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for backend in (torch.backends.cuda, torch.backends.cudnn, torch.backends.mkldnn):
        for kind in ("matmul", "conv", "rnn"):
            products: Any = getattr(backend, kind, None)
            if hasattr(products, "fp32_precision"):  # from torch 2.9 on, beside the settings above
                products.fp32_precision = "ieee"


def _available(name: str, precision: str) -> torch.device:
    """The device of that name, if this machine has it."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "mps" and precision == "float64":
        raise InputError("device mps has no float64: use another one, or verify in float32")
    missing = (name == "cuda" and not torch.cuda.is_available()) or (
        name == "mps" and not torch.backends.mps.is_available()
    )
    if missing:
        raise InputError(f"device {name} is not available here; use --device cpu or auto")
    return torch.device(name)


def without_gradients(network: Network) -> AbstractContextManager[Any]:
    """A context that records no operations for gradients. If all maps are matrices, it is torch's
    inference mode, in which the radius of a small network takes a tenth less time. Inference mode
    refuses torch.autograd, which pulls programs back."""
    dense = all(isinstance(affine, Dense) for affine in network.maps)
    return torch.inference_mode() if dense else torch.no_grad()
