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


def strided(shape: tuple[int, ...], classes: int, channels: list[int], width: int) -> nn.Sequential:
    """Convolutions of 4x4 filters with stride 2, then a dense layer."""
    convolutions = [
        nn.Conv2d(before, after, 4, stride=2, padding=1)
        for before, after in zip([shape[0], *channels], channels, strict=False)
    ]
    return _conv(shape, classes, convolutions, width)


def conv_paper(shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """The convolutional network of the FGP paper: 4x4 filters, stride 2, 16 and 32 channels, then
    a dense layer of 100."""
    return strided(shape, classes, [16, 32], 100)


def _conv(
    shape: tuple[int, ...], classes: int, convolutions: list[nn.Conv2d], width: int
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for convolution in convolutions:
        layers += [convolution, nn.ReLU()]
    layers.append(nn.Flatten())
    try:
        with torch.no_grad():
            features = nn.Sequential(*layers)(torch.zeros(1, *shape)).shape[1]
    except RuntimeError as error:
        raise ValueError(f"images {shape} are too small for {len(convolutions)} layers") from error
    return nn.Sequential(*layers, nn.Linear(features, width), nn.ReLU(), nn.Linear(width, classes))


# Names of single architectures; each takes (input shape, classes).
CONVOLUTIONAL: dict[str, Callable[[tuple[int, ...], int], nn.Sequential]] = {
    "conv_small": conv_small,
    "conv_deep": conv_deep,
    "conv_paper": conv_paper,
}
KNOWN = ("WIDTHxDEPTH", "conv_CHANNELS-...-WIDTH", *CONVOLUTIONAL)

_DENSE = re.compile(r"([1-9]\d*)x([1-9]\d*)")
_STRIDED = re.compile(r"conv_([1-9]\d*(?:-[1-9]\d*)+)")


def build(name: str, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """`24x3` is three dense layers of 24, `conv_16-32-100` the paper's convolutional network; other
    names are those of CONVOLUTIONAL."""
    if match := _DENSE.fullmatch(name):
        width, depth = int(match[1]), int(match[2])
        return dense(math.prod(shape), classes, [width] * depth)
    if not is_convolutional(name):
        raise ValueError(f"unknown architecture {name!r}: one of {', '.join(KNOWN)}")
    if len(shape) != 3:
        raise ValueError(f"{name} needs images [channels, height, width], not inputs {shape}")
    if match := _STRIDED.fullmatch(name):
        *channels, width = (int(size) for size in match[1].split("-"))
        return strided(shape, classes, channels, width)
    return CONVOLUTIONAL[name](shape, classes)


def is_convolutional(name: str) -> bool:
    return name in CONVOLUTIONAL or _STRIDED.fullmatch(name) is not None


def input_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one input as the network takes it: flat for dense ones."""
    return shape if is_convolutional(name) else (math.prod(shape),)
