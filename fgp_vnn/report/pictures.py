"""Counterexamples as pictures: the centre of the box, the input found, the difference."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.bench.check import OnnxFile
from fgp_vnn.bench.instances import Instance
from fgp_vnn.property import load_property
from fgp_vnn.property.model import Case
from fgp_vnn.property.results import read_results

Array = NDArray[np.float64]

_SMALLEST = 12  # pixels a side; below, an input that could be a picture rarely is one


@dataclass(frozen=True)
class Picture:
    """Three images as data addresses, and what changed in words."""

    original: str
    found: str
    difference: str
    caption: str


def picture(results: Path, instance: Instance) -> Picture | None:
    """The counterexample in a results file as a picture; None if the input is no image."""
    network = OnnxFile(Path(instance.network_files[0]))
    prop = load_property(Path(instance.property_file))
    x = read_results(results, prop).x
    if x is None or x.size != prop.inputs:
        return None
    layout = image_layout(network.shape, prop.inputs)
    if layout is None or not prop.cases:
        return None
    inside = (case for case in prop.cases if case.contains(x.astype(np.float32)))
    case = next(inside, prop.cases[0])  # one that is not valid can be looked at, too
    centre = nominal_input(case)
    low, high = float(case.lower.min()), float(case.upper.max())
    largest = float(np.abs(x - centre).max())
    caption = f"largest change {largest:.3g} of {high - low:.3g}"
    before, after = (network.run(point.astype(np.float32)) for point in (centre, x))
    if before.size > 1:
        caption += f"; largest output {int(before.argmax())} before, {int(after.argmax())} after"
    return draw(layout, centre, x, (low, high), caption)


@dataclass(frozen=True)
class Layout:
    """How a flat input lies in an image."""

    height: int
    width: int
    channels: int  # 1 or 3
    channels_last: bool = False

    def pixels(self, x: Array) -> Array:
        """[height, width, channels]."""
        sizes = self.height, self.width, self.channels
        image: Array = (
            x.reshape(sizes)
            if self.channels_last
            else x.reshape(sizes[2], *sizes[:2]).transpose(1, 2, 0)
        )
        return image


def draw(
    layout: Layout, centre: Array, found: Array, limits: tuple[float, float], caption: str
) -> Picture:
    """An input, the one found near it and their difference; black to white are the limits."""
    change = found - centre
    return Picture(
        original=_data(_grey(layout.pixels(centre), *limits)),
        found=_data(_grey(layout.pixels(found), *limits)),
        difference=_data(_signed(layout.pixels(change), float(np.abs(change).max()))),
        caption=caption,
    )


def image_layout(shape: tuple[int, ...], inputs: int) -> Layout | None:
    """The layout of an input that looks like an image, from the network's shape or its size."""
    sizes = [size for size in shape if size != 1]
    if len(sizes) == 3 and min(sizes) == 3:
        last = sizes[0] != 3
        height, width = sizes[:2] if last else sizes[1:]
        return Layout(height, width, 3, last) if min(height, width) >= _SMALLEST else None
    if len(sizes) == 2 and min(sizes) >= _SMALLEST:
        return Layout(sizes[0], sizes[1], 1)
    for channels in (1, 3):
        side = isqrt(inputs // channels)
        if len(sizes) == 1 and side >= _SMALLEST and channels * side * side == inputs:
            return Layout(side, side, channels)
    return None


def nominal_input(case: Case) -> Array:
    """The middle of the box; where a box of one width was cut off at a bound, the uncut middle."""
    half = (case.upper - case.lower) / 2
    radius = half.max()
    middle = case.lower + half
    cut = half < radius * (1 - 1e-6)
    free = half > 0
    at_bottom = cut & free & (case.lower <= case.lower.min())
    at_top = cut & free & (case.upper >= case.upper.max())
    middle = np.where(at_bottom, case.upper - radius, middle)
    middle = np.where(at_top & ~at_bottom, case.lower + radius, middle)
    inside: Array = np.clip(middle, case.lower, case.upper)
    return inside


def _grey(pixels: Array, low: float, high: float) -> NDArray[np.uint8]:
    scaled = (pixels - low) / ((high - low) or 1.0)
    return _bytes(np.clip(scaled, 0, 1))


def _signed(pixels: Array, largest: float) -> NDArray[np.uint8]:
    """Blue where the value fell, red where it rose, white where it stayed."""
    change = pixels.mean(axis=2) / (largest or 1.0)
    fallen, risen = np.clip(-change, 0, 1), np.clip(change, 0, 1)
    white, blue, red = np.ones(3), np.array([0.13, 0.4, 0.67]), np.array([0.7, 0.09, 0.17])
    return _bytes(white + fallen[:, :, None] * (blue - white) + risen[:, :, None] * (red - white))


def _bytes(unit: Array) -> NDArray[np.uint8]:
    values: NDArray[np.uint8] = (unit * 255).round().astype(np.uint8)
    return values


def _data(pixels: NDArray[np.uint8]) -> str:
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of [height, width, 1 or 3] bytes."""
    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
