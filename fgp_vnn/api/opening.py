"""Whatever a model is given as, opened: the one place where the library's functions do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.robustness import Floats
from fgp_vnn.network import LoadedNetwork, Network, load_network


@dataclass(frozen=True, eq=False)
class Opened:
    """A network in normal form, the program that confirms what is found, and its shapes."""

    network: Network  # float64, on the CPU
    run: Callable[[Floats], Floats]  # [inputs] -> [outputs]
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]


def open_model(model: Any) -> Opened:
    """From an ONNX file, a loaded network, a network in normal form or a torch module."""
    if isinstance(model, Opened):
        return model
    if isinstance(model, (str, Path)):
        model = load_network(Path(model))
    elif isinstance(model, torch.nn.Module):
        from fgp_vnn.network.onnx.module import load_module

        model = load_module(model)
    if isinstance(model, LoadedNetwork):
        return Opened(model.network, model.runtime.run, model.input_shape, model.output_shape)
    if isinstance(model, Network):
        shapes = (model.inputs,), (model.outputs,)
        return Opened(model, _float_program(model), *shapes)
    raise InputError(f"a model is an ONNX path, a network or a torch module, not {type(model)}")


def _float_program(network: Network) -> Callable[[Floats], Floats]:
    """The network itself in float32: what confirms points where there is no other program."""
    single = network.to("cpu", torch.float32)

    def run(x: Floats) -> Floats:
        with torch.inference_mode():
            result: Floats = single(torch.from_numpy(x).unsqueeze(0))[0].numpy()
        return result

    return run
