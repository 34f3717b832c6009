"""Models of users: files, ONNX in memory and torch modules, opened as networks.

All functions of the library load their models through this module.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import torch
from torch import nn

from fgp_vnn.api.arrays import real_array
from fgp_vnn.api.written import note_of, onnx_of
from fgp_vnn.base.errors import InputError, UnsupportedError
from fgp_vnn.base.robustness import Floats
from fgp_vnn.network import LoadedNetwork, Network, load_network
from fgp_vnn.network.model import Combination
from fgp_vnn.network.onnx.choice import Choice, Chosen
from fgp_vnn.network.onnx.input_normalisation import Normalised, normalised
from fgp_vnn.network.onnx.module import load_module
from fgp_vnn.network.onnx.opaque import Opaque
from fgp_vnn.network.onnx.runtime import Program
from fgp_vnn.property.conditions import Space
from fgp_vnn.property.numbers import to_numpy
from fgp_vnn.transform.increasing import without_end

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


def space_of(loaded: LoadedNetwork | Opaque) -> Space:
    """The input and output variables of a network, or of a program."""
    return Space(loaded.input_shape, loaded.output_shape)


def open_model(
    model: Model | Network, x: Any = None, *, mean: Any = None, std: Any = None
) -> LoadedNetwork:
    """Load a model, in any form that `load_model` accepts, or a network in normal form. The example
    input x fixes shapes that the model leaves open. `mean` and `std` put a normalisation in front
    of the network."""
    if mean is not None or std is not None:
        return _normalised(model, x, 0.0 if mean is None else mean, 1.0 if std is None else std)
    if isinstance(model, Network):
        shapes = (model.inputs,), (model.outputs,)
        return LoadedNetwork(model, _FloatProgram(model), *shapes, {}, False)
    return _load(model, x)


def load_compared(
    model: Model, points: Floats, *, whole: bool, watch: Callable[[], None]
) -> LoadedNetwork:
    """Load a model. For an ONNX model, the network is compared with onnxruntime at the points
    [points, inputs]. A final softmax is dropped unless `whole` is set. `watch` is called regularly
    and may raise."""
    if isinstance(model, (str, Path, bytes, onnx.ModelProto)):
        return load_network(model, points=points, whole=whole, watch=watch)
    loaded = load_model(model)
    return with_softmax(loaded, points) if whole else loaded


def with_softmax(loaded: LoadedNetwork, points: Floats | None = None) -> LoadedNetwork:
    """The network with its final softmax; reloads it if the softmax was dropped."""
    if not loaded.comparisons_only:
        return loaded
    if loaded.source is None:
        raise UnsupportedError("the network's softmax was left out: give the model itself")
    return replace(load_network(loaded.source, points=points, whole=True), note=loaded.note)


def _load(model: Model, x: Any) -> LoadedNetwork:
    """Load a model with the shapes of an example input. If a torch module does not accept that
    shape (an image for a linear layer, say), its first layer determines the shape instead."""
    if x is not None and not isinstance(x, (tuple, dict)):
        x = real_array(x, "inputs").astype(np.float32)
    if x is None or not isinstance(model, nn.Module):
        return load_model(model, x)
    try:
        return load_model(model, x)
    except InputError as error:
        with suppress(InputError):
            return load_model(model)
        raise error


def _normalised(model: Any, x: Any, mean: Any, std: Any) -> LoadedNetwork:
    """The model that takes pixels and passes (pixel - mean) / std to the given model."""
    values = real_array(mean, "mean"), real_array(std, "std")
    if isinstance(model, nn.Module):
        return _load(Normalised(model, *values), x)
    return replace(load_network(normalised(onnx_of(model), *values)), note=note_of(model))


class _FloatProgram(Program):
    """The network itself in float32; confirms points of a network that has no original program."""

    def __init__(self, network: Network) -> None:
        self._single = network.to("cpu", torch.float32)

    def run(self, x: Floats) -> Floats:
        with torch.inference_mode():
            result: Floats = self._single(torch.from_numpy(x).unsqueeze(0))[0].numpy()
        return result


class _WithThreshold(Program):
    """A program with outputs [threshold, y], where y is the single output of another program."""

    def __init__(self, inner: Program, threshold: float) -> None:
        self._inner, self._first = inner, np.full(1, threshold, dtype=np.float32)

    def run(self, x: Floats) -> Floats:
        return np.concatenate([self._first, self._inner.run(x)])


def classes(loaded: LoadedNetwork) -> LoadedNetwork:
    """The network as a classifier: the greatest output is the class. A final increasing function is
    dropped, since it keeps the order of the outputs; a single output y becomes [threshold, y]."""
    network, threshold = loaded.network, loaded.threshold
    before = without_end(network)
    if network.outputs > 1:
        return loaded if before is None else replace(loaded, network=before)
    level = threshold
    if before is not None and float(network.activations[-1].value(torch.zeros(1))) == threshold:
        network, level = before, 0.0
    bias = network.output.bias
    rows, offset = bias.new_tensor([[0.0], [1.0]]), bias.new_tensor([level, 0.0])
    wide = replace(network, output=Combination(network.output, rows, offset))
    runtime = _WithThreshold(loaded.runtime, threshold)
    return replace(loaded, network=wide, runtime=runtime, output_shape=(2,))
