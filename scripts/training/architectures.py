"""Network shapes by name; every network is a Sequential of Flatten, Linear, Conv2d and ReLU."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch
from torch import nn


def dense(inputs: int, classes: int, widths: list[int]) -> nn.Sequential:
    """Hidden layers of the given widths, and a linear output."""
    layers: list[nn.Module] = []
    for size, width in zip([inputs, *widths], widths, strict=False):
        layers += [nn.Linear(size, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], classes))


def conv_small(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """One strided convolution of 4 channels, then a dense layer of 20."""
    return _conv(shape, classes, [nn.Conv2d(shape[0], 4, 3, stride=2, padding=1)], 20)


def conv_deep(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """Two strided convolutions of 4 and 6 channels, then a dense layer of 16."""
    convolutions = [
        nn.Conv2d(shape[0], 4, 3, stride=2, padding=1),
        nn.Conv2d(4, 6, 2, stride=2),
    ]
    return _conv(shape, classes, convolutions, 16)


def conv_paper(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """The convolutional network of the FGP paper: 4x4 filters, stride 2, 16 and 32 channels, then
    a dense layer of 100."""
    convolutions = [
        nn.Conv2d(shape[0], 16, 4, stride=2, padding=1),
        nn.Conv2d(16, 32, 4, stride=2, padding=1),
    ]
    return _conv(shape, classes, convolutions, 100)


def _conv(
    shape: tuple[int, ...], classes: int, convolutions: list[nn.Conv2d], width: int
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for convolution in convolutions:
        layers += [convolution, nn.ReLU()]
    layers.append(nn.Flatten())
    with torch.no_grad():
        features = nn.Sequential(*layers)(torch.zeros(1, *shape)).shape[1]
    return nn.Sequential(*layers, nn.Linear(features, width), nn.ReLU(), nn.Linear(width, classes))


# An entry per architecture that is not plain dense; each takes (input shape, classes).
CONVOLUTIONAL: dict[str, Callable[[tuple[int, ...], int], nn.Sequential]] = {
    "conv_small": conv_small,
    "conv_deep": conv_deep,
    "conv_paper": conv_paper,
}


def build(name: str, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """`24x3` is three dense layers of 24; other names are those of CONVOLUTIONAL."""
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", name)
    if match:
        width, depth = int(match[1]), int(match[2])
        return dense(math.prod(shape), classes, [width] * depth)
    if name not in CONVOLUTIONAL:
        known = ", ".join(["WIDTHxDEPTH", *CONVOLUTIONAL])
        raise ValueError(f"unknown architecture {name!r}: one of {known}")
    if len(shape) != 3:
        raise ValueError(f"{name} needs images [channels, height, width], not inputs {shape}")
    return CONVOLUTIONAL[name](shape, classes)


def input_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one input as the network takes it: flat for dense ones."""
    return shape if name in CONVOLUTIONAL else (math.prod(shape),)
