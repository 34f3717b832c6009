"""A torch module as a network: exported to ONNX in memory, then loaded like any file."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from fgp_vnn.base.errors import InputError, UnsupportedError, one_line
from fgp_vnn.network.onnx.load import LoadedNetwork, load_network
from fgp_vnn.network.onnx.normalise import Array, check_normalisation


def load_module(module: nn.Module, input_shape: tuple[int, ...] | None = None) -> LoadedNetwork:
    """The network of a module in evaluation mode; what was exported confirms counterexamples.

    The shape of one input, with its batch dimension of 1, is only needed where the first layer
    does not tell it.
    """
    shape = input_shape or _input_shape(module)
    training = module.training
    module.eval()
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the exporter's future, not about the module
            path = Path(folder) / "module.onnx"
            example = torch.zeros(shape, dtype=_dtype(module))
            torch.onnx.export(module, (example,), str(path), dynamo=False)
            return load_network(path)
    except InputError:
        raise
    except Exception as error:  # whatever tracing a module can raise
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UnsupportedError(f"the torch module cannot be exported: {reason}") from error
    finally:
        module.train(training)


def _input_shape(module: nn.Module) -> tuple[int, ...]:
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            return (1, layer.in_features)
        if isinstance(layer, nn.Conv2d):
            raise InputError(
                "a module that begins with a convolution does not say how large its images are: "
                "use fgp_vnn.network.load_module(module, (1, channels, height, width))"
            )
    raise InputError("the module has no linear layer that tells the number of inputs")


def _dtype(module: nn.Module) -> torch.dtype:
    weights: list[Tensor] = list(module.parameters())
    return weights[0].dtype if weights else torch.float32


class Normalised(nn.Module):
    """A module that is given (x - mean) / std; numbers, or one for each channel."""

    mean: Tensor
    std: Tensor

    def __init__(self, module: nn.Module, mean: Array, std: Array) -> None:
        super().__init__()
        check_normalisation(mean, std)
        self.module = module
        like = next(iter(module.parameters()), torch.zeros(()))
        for name, value in (("mean", mean), ("std", std)):
            single = torch.from_numpy(np.asarray(value, dtype=np.float32))
            self.register_buffer(name, single.to(like.device, like.dtype))
        self.train(module.training)

    def forward(self, x: Tensor) -> Tensor:
        mean, std = (
            v.view(-1, *[1] * (x.ndim - 2)) if v.ndim == 1 and x.ndim > 2 else v
            for v in (self.mean, self.std)
        )
        result: Tensor = self.module((x - mean) / std)
        return result
