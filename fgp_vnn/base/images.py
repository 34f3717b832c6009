"""Inputs as images: the layout of their values, colours for differences, and PNG files."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SMALLEST_SIDE = 4  # in pixels, for an input whose shape has a height and a width
_SMALLEST_SQUARE = 8  # side in pixels, for a flat input; a smaller square is rarely an image
_LARGEST_SIDE = 320  # in pixels, on a page; a larger image is reduced


@dataclass(frozen=True)
class ImageLayout:
    """How the values of a flat input are arranged in an image."""

    height: int
    width: int
    channels: int  # 1, 3 (colours), or any other number, shown by their mean
    channels_last: bool = False

    def pixels(self, x: Array) -> Array:
        """Return a flat input as an array [height, width, channels]."""
        sizes = self.height, self.width, self.channels
        return (
            x.reshape(sizes)
            if self.channels_last
            else x.reshape(sizes[2], *sizes[:2]).transpose(1, 2, 0)
        )


def image_layout(shape: tuple[int, ...], inputs: int) -> ImageLayout | None:
    """Guess the layout from an input's shape or its size; None if it is not an image."""
    sizes = [size for size in shape if size != 1]
    if len(sizes) == 3 and (len(shape) == 3 or shape[0] == 1):
        last = sizes[0] != 3 and sizes[2] < min(sizes[:2])
        height, width, channels = sizes if last else (*sizes[1:], sizes[0])
        fits = min(height, width) >= _SMALLEST_SIDE
        return ImageLayout(height, width, channels, last) if fits else None
    if len(sizes) == 2 and min(sizes) >= _SMALLEST_SIDE:
        return ImageLayout(sizes[0], sizes[1], 1)
    for channels in (1, 3):
        side = isqrt(inputs // channels)
        if len(sizes) == 1 and side >= _SMALLEST_SQUARE and channels * side * side == inputs:
            return ImageLayout(side, side, channels)
    return None


def signed_colours(change: Array) -> Array:
    """Colour a change [height, width, channels]: blue where it fell, red where it rose."""
    grey = change.mean(axis=2, keepdims=True) / (np.abs(change).max() or 1.0)
    white, blue, red = np.ones(3), np.array([0.13, 0.4, 0.67]), np.array([0.7, 0.09, 0.17])
    fallen, risen = np.clip(-grey, 0, 1), np.clip(grey, 0, 1)
    coloured: Array = white + fallen * (blue - white) + risen * (red - white)
    return coloured


def unit_pixels(layout: ImageLayout, x: Array, limits: tuple[float, float]) -> Array:
    """A flat input as pixels [height, width, channels] from 0 to 1; `limits` are the values
    shown as black and white."""
    low, high = limits
    return np.clip((layout.pixels(x) - low) / ((high - low) or 1.0), 0, 1)


def png_url(unit: Array) -> str:
    """Encode pixels [height, width, channels] between 0 and 1 as a PNG in a `data:` URL."""
    return "data:image/png;base64," + base64.b64encode(png(unit)).decode()


def png(unit: Array) -> bytes:
    """The bytes of a PNG file of pixels [height, width, channels] between 0 and 1; a large image is
    reduced by nearest-neighbour sampling."""
    from PIL import Image

    shown = unit if unit.shape[2] == 3 else unit.mean(axis=2)
    image, file = Image.fromarray((shown * 255).round().astype(np.uint8)), io.BytesIO()
    image.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE), Image.Resampling.NEAREST)
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
