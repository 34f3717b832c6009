"""Loading of models from ONNX files, ONNX in memory and torch modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import onnx
from torch import nn

from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.network import LoadedNetwork, load_network
from fgp_vnn.network.onnx.choice import Choice, Chosen
from fgp_vnn.network.onnx.module import load_module
from fgp_vnn.property.numbers import to_numpy

Model: TypeAlias = str | Path | bytes | onnx.ModelProto | nn.Module | LoadedNetwork


def load_model(
    model: Model,
    x: Any | None = None,
    *,
    inputs: Chosen | None = None,
    outputs: Chosen | None = None,
) -> LoadedNetwork:
    """Load a network from an ONNX file (a path), from ONNX in memory, or from a torch module.

    `x` is an example input or batch; it fixes shapes that the model leaves open. For a model with
    several inputs, `x` is a tuple of arrays, or a dict from names to arrays. `inputs` selects the
    inputs that vary, by name or number: several are concatenated to one vector, and the others keep
    their values in `x`. `outputs` selects the outputs in the same way. "all" selects all.
    """
    if isinstance(model, LoadedNetwork):
        if inputs is not None or outputs is not None:
            raise InputError("a loaded network has one input and one output")
        return model
    if isinstance(model, str | Path | bytes | onnx.ModelProto):
        return load_network(model, choice=Choice(inputs, outputs, _arrays(x)))
    if isinstance(model, nn.Module):
        return load_module(model, x, inputs=inputs, outputs=outputs)
    raise InputError(
        f"a model is a path, ONNX in memory or a torch module, not {type(model).__name__}"
    )


def check_single(loaded: LoadedNetwork) -> None:
    """Refuse a network with a fixed batch size above 1: its outputs are not the classes of one
    input."""
    (many, *inner), (also, *outer) = (
        shape or (1,) for shape in (loaded.input_shape, loaded.output_shape)
    )
    if many == also > 1 and inner and outer:
        raise UnsupportedError(
            f"the network takes {many} inputs at once, as it was exported: export it with a batch "
            "of 1, or with an open batch dimension"
        )


def _arrays(x: Any) -> Any:
    """Convert a tensor, or those in a tuple or dict, to numpy arrays."""
    if isinstance(x, tuple):
        return tuple(map(_arrays, x))
    if isinstance(x, dict):
        return {name: _arrays(value) for name, value in x.items()}
    return to_numpy(x)
