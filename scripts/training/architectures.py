"""Network architectures by name; each is a Sequential of Flatten, Linear, Conv2d, ReLU and
residual blocks of these."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """A residual block: the sum of its body and its shortcut; an empty shortcut is the identity."""

    def __init__(self, body: nn.Sequential, shortcut: nn.Sequential) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.body(x) + self.shortcut(x)
        return result


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
    convolutions = [nn.Conv2d(shape[0], 4, 3, stride=2, padding=1), nn.Conv2d(4, 6, 2, stride=2)]
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


def residual(
    shape: tuple[int, ...], classes: int, channels: list[int], width: int
) -> nn.Sequential:
    """A convolution of 3x3 filters, a residual block for each further entry of `channels`, and a
    dense layer; a block that changes the number of channels has stride 2."""
    stem = nn.Conv2d(shape[0], channels[0], 3, padding=1)
    blocks = [_block(*pair) for pair in pairwise(channels)]
    return _conv(shape, classes, [stem, *blocks], width)


def _block(before: int, after: int) -> Residual:
    stride = 1 if before == after else 2
    body = nn.Sequential(
        nn.Conv2d(before, after, 3, stride=stride, padding=1),
        nn.ReLU(),
        nn.Conv2d(after, after, 3, padding=1),
    )
    same = before == after
    return Residual(body, nn.Sequential(*[nn.Conv2d(before, after, 1, stride)] * (not same)))


def _conv(
    shape: tuple[int, ...], classes: int, convolutions: Sequence[nn.Module], width: int
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
KNOWN = ("WIDTHxDEPTH", "conv_CHANNELS-...-WIDTH", "resnet_CHANNELS-...-WIDTH", *CONVOLUTIONAL)

_DENSE = re.compile(r"([1-9]\d*)x([1-9]\d*)")
_IMAGES = re.compile(r"(conv|resnet)_([1-9]\d*(?:-[1-9]\d*)+)")
_WITH_CHANNELS = {"conv": strided, "resnet": residual}


def build(name: str, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """The network of a name: `24x3` has three dense layers of 24, `conv_16-32-100` is the paper's
    convolutional network, `resnet_16-32-100` has a residual block; CONVOLUTIONAL has the others."""
    if match := _DENSE.fullmatch(name):
        width, depth = int(match[1]), int(match[2])
        return dense(math.prod(shape), classes, [width] * depth)
    if not is_convolutional(name):
        raise ValueError(f"unknown architecture {name!r}: one of {', '.join(KNOWN)}")
    if len(shape) != 3:
        raise ValueError(f"{name} needs images [channels, height, width], not inputs {shape}")
    if match := _IMAGES.fullmatch(name):
        *channels, width = (int(size) for size in match[2].split("-"))
        return _WITH_CHANNELS[match[1]](shape, classes, channels, width)
    return CONVOLUTIONAL[name](shape, classes)


def is_convolutional(name: str) -> bool:
    return name in CONVOLUTIONAL or _IMAGES.fullmatch(name) is not None


def input_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of one input as the network takes it: flat for dense networks."""
    return shape if is_convolutional(name) else (math.prod(shape),)
