"""Whatever a model is given as, opened: the one place where the library's functions do it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fgp_vnn.api.arrays import real_array
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


def divide(
    options: Mapping[str, Any], names: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of these names, and the others."""
    mine = {name: value for name, value in options.items() if name in names}
    return mine, {name: value for name, value in options.items() if name not in names}


def open_model(model: Any, *, mean: Any = None, std: Any = None) -> Opened:
    """From an ONNX file, a loaded network, a network in normal form or a torch module; with `mean`
    or `std`, behind a normalisation of its input."""
    if mean is not None or std is not None:
        return _open(_normalised(model, mean, std))
    return _open(model)


def _normalised(model: Any, mean: Any, std: Any) -> Any:
    """The model that takes pixels and gives (pixel - mean) / std to the one that is given."""
    mean, std = (default if v is None else v for v, default in ((mean, 0.0), (std, 1.0)))
    if isinstance(model, (str, Path)):
        from fgp_vnn.network.onnx.normalise import load_normalised

        return load_normalised(Path(model), real_array(mean, "mean"), real_array(std, "std"))
    if isinstance(model, torch.nn.Module):
        from fgp_vnn.network.onnx.module import Normalised

        return Normalised(model, real_array(mean, "mean"), real_array(std, "std"))
    raise InputError("mean and std need the network's file, or a torch module")


def load_model(model: Any, points: Floats | None = None) -> LoadedNetwork:
    """A network that has a program of its own, from an ONNX file, what was loaded before, or a
    torch module; a file's network is compared with its program at the points [points, inputs]."""
    if isinstance(model, LoadedNetwork):
        return model
    if isinstance(model, (str, Path)):
        return load_network(Path(model), points=points)
    if isinstance(model, torch.nn.Module):
        from fgp_vnn.network.onnx.module import load_module

        return load_module(model)
    raise InputError(f"a model is an ONNX path, a network or a torch module, not {type(model)}")


def _open(model: Any) -> Opened:
    if isinstance(model, Opened):
        return model
    if isinstance(model, Network):
        shapes = (model.inputs,), (model.outputs,)
        return Opened(model, _float_program(model), *shapes)
    loaded = load_model(model)
    return Opened(loaded.network, loaded.runtime.run, loaded.input_shape, loaded.output_shape)


def _float_program(network: Network) -> Callable[[Floats], Floats]:
    """The network itself in float32: what confirms points where there is no other program."""
    single = network.to("cpu", torch.float32)

    def run(x: Floats) -> Floats:
        with torch.inference_mode():
            result: Floats = single(torch.from_numpy(x).unsqueeze(0))[0].numpy()
        return result

    return run
