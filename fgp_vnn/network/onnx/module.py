"""Load a torch module as a network: copy it, export the copy to ONNX in memory, and load that."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fgp_vnn.base.errors import (
    InputError,
    OutOfMemoryError,
    UnsupportedError,
    memory_errors,
    one_line,
)
from fgp_vnn.network.onnx.choice import Choice, Chosen
from fgp_vnn.network.onnx.export import Exported, export, silence
from fgp_vnn.network.onnx.load import LoadedNetwork, load_network
from fgp_vnn.network.onnx.runs import Arguments, arguments_of

_SCALES = (1.0, 10.0)  # of the inputs at which the exported program is compared with the module
_TOLERANCE = 1e-3  # of the largest output: to find mistakes, not rounding


def load_module(
    module: nn.Module,
    x: Any | None = None,
    *,
    inputs: Chosen | None = None,
    outputs: Chosen | None = None,
) -> LoadedNetwork:
    """The network of a module in evaluation mode, in float32; the module is not changed.

    `x` is an input or a batch of inputs (a tuple, or a dict by the names of arguments, for a module
    that takes several): it is needed if the first layer does not determine the shape of an input.
    Counterexamples are confirmed on the exported model.
    """
    ready, note = _ready(module)
    arguments = arguments_of(ready, x if x is not None else _guess(ready))
    exported = export(ready, arguments)
    choice = Choice(inputs, outputs, exported.named(arguments.values))
    loaded = load_network(exported.content, choice=choice)
    _compare(ready, arguments, exported)
    return replace(loaded, note=note)


def export_module(module: nn.Module) -> bytes:
    """The ONNX file of a module in evaluation mode and in float32; the module's first layer has to
    determine the shape of an input."""
    ready, _ = _ready(module)
    arguments = arguments_of(ready, _guess(ready))
    exported = export(ready, arguments)
    _compare(ready, arguments, exported)
    return exported.content


def weights_note(module: nn.Module) -> str:
    """How the verified weights differ from the module's own; empty if they do not."""
    return _ready(module)[1]


def _ready(module: nn.Module) -> tuple[nn.Module, str]:
    """A copy for evaluation on the CPU in float32, and how its weights differ."""
    module = getattr(module, "_orig_mod", module)  # the original of torch.compile
    if isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel):
        module = module.module
    tensors = [*module.parameters(), *module.buffers()]
    if any(tensor.is_meta for tensor in tensors):
        raise InputError("the module has no weights: it is on the device 'meta'")
    try:
        with memory_errors(), silence():
            copy = deepcopy(module, _computed(module)).to("cpu").float().eval()
    except OutOfMemoryError:
        raise
    except Exception as error:  # some layers cannot be copied
        raise UnsupportedError(f"the torch module cannot be copied: {one_line(error)}") from error
    kinds = {t.dtype for t in tensors if t.is_floating_point()} - {torch.float32}
    if not kinds:
        return copy, ""
    names = ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))
    rounded = any(_rounds(tensor) for tensor in tensors)
    how = "rounded to float32" if rounded else "taken as float32"
    return copy, f"verified with the module's weights ({names}) {how}"


def _computed(module: nn.Module) -> dict[int, Any]:
    """Copies, by id, of tensors that layers compute and store, as weight_norm does."""
    kept = [value for layer in module.modules() for value in vars(layer).values()]
    return {id(t): t.detach().clone() for t in kept if isinstance(t, Tensor) and not t.is_leaf}


def _rounds(tensor: Tensor) -> bool:
    """Whether a tensor has values that float32 cannot represent."""
    return tensor.dtype == torch.float64 and bool((tensor.float().double() != tensor).any())


def _guess(module: nn.Module) -> Tensor:
    """An input for a module, if its first layer determines the shape."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            return torch.zeros(1, layer.in_features)
        if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            break
    raise InputError(
        "the module does not say how large its inputs are: give one, as in "
        "fgp_vnn.load_model(module, x)"
    )


def _compare(module: nn.Module, arguments: Arguments, exported: Exported) -> None:
    """Refuse an exported program whose outputs differ from the module's."""
    random = np.random.default_rng(0)
    for scale in (0.0, *_SCALES):
        values = [
            value + scale * torch.from_numpy(random.random(value.shape)).to(value.dtype)
            if value.is_floating_point()
            else value
            for value in arguments.values
        ]
        with torch.no_grad():
            wanted = arguments.run(module, values)
        for ours, theirs in zip(exported.run(values), wanted, strict=True):
            if not theirs.is_floating_point():
                continue
            off = np.abs(ours.reshape(-1) - theirs.numpy().reshape(-1))
            if not float(off.max(initial=0)) <= _TOLERANCE * (1 + float(theirs.abs().max())):
                raise UnsupportedError(
                    "the exported network does not compute what the torch module does "
                    f"(its outputs differ by {float(off.max()):.3g})"
                )
