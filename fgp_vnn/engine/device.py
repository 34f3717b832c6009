"""The device that a search runs on."""

from __future__ import annotations

import torch

from fgp_vnn.base.deferred import load_deferred
from fgp_vnn.base.errors import InputError


def pick_device(name: str, precision: str) -> torch.device:
    """The device of that name; `auto` is the GPU if there is one, else the CPU.

    Switches TensorFloat-32 off: proofs rely on full float32 precision. For another device than the
    CPU, loads what the start of the command has deferred.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    device = _available(name, precision)
    if device.type != "cpu":  # deferring was tried on the CPU only
        load_deferred()
    return device


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
