"""Counterexamples as images: the centre of the box, the counterexample, and their difference."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
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
from fgp_vnn.report.libraries import library
from fgp_vnn.report.page import Section

Array = NDArray[np.float64]

MAX_PICTURES = 24  # on one page
_SMALLEST_SIDE = 4  # pixels of an input whose shape has a height and a width
_SMALLEST_SQUARE = 8  # pixels a side of a flat input; a smaller square is rarely an image
_LARGEST_SIDE = 320  # pixels on the page; a larger image is reduced


@dataclass(frozen=True)
class Picture:
    """Three images as `data:` URLs, a name, and what changed in words."""

    name: str
    caption: str
    original: str
    counterexample: str
    difference: str


def pictures_section(pictures: Sequence[Picture], note: str) -> Section:
    """Return the section that shows pictures below a note."""
    values = {"pictures": pictures, "note": note}
    return Section("counterexamples", "Counterexamples", "counterexamples.html", values)


def counterexample_picture(name: str, results: Path, instance: Instance) -> Picture | None:
    """Draw the counterexample in a results file; return None if the input is not an image."""
    network = OnnxFile(Path(instance.network_files[0]))
    prop = load_property(Path(instance.property_file))
    x = read_results(results, prop).x
    layout = image_layout(network.shape, prop.inputs)
    if x is None or x.size != prop.inputs or layout is None or not prop.cases:
        return None
    inside = (case for case in prop.cases if case.contains(x.astype(np.float32)))
    case = next(inside, prop.cases[0])  # an invalid counterexample is shown, too
    centre = nominal_input(case)
    low, high = float(case.lower.min()), float(case.upper.max())
    caption = f"largest change {float(np.abs(x - centre).max()):.3g} of {high - low:.3g}"
    before, after = (network.run(point.astype(np.float32)) for point in (centre, x))
    if before.size > 1:
        caption += f"; largest output {int(before.argmax())} before, {int(after.argmax())} after"
    return draw(name, caption, layout, (centre, x), (low, high))


@dataclass(frozen=True)
class Layout:
    """How the values of a flat input lie in an image."""

    height: int
    width: int
    channels: int  # 1, 3 (colours), or any other number, which is shown by its mean
    channels_last: bool = False

    def pixels(self, x: Array) -> Array:
        """Return a flat input as an array [height, width, channels]."""
        sizes = self.height, self.width, self.channels
        image: Array = (
            x.reshape(sizes)
            if self.channels_last
            else x.reshape(sizes[2], *sizes[:2]).transpose(1, 2, 0)
        )
        return image


def draw(
    name: str,
    caption: str,
    layout: Layout,
    inputs: tuple[Array, Array],
    limits: tuple[float, float],
) -> Picture:
    """Draw two inputs [inputs] and their difference; `limits` are the values of black and white."""
    low, high = limits
    width = (high - low) or 1.0
    original, found = (np.clip((layout.pixels(x) - low) / width, 0, 1) for x in inputs)
    change = layout.pixels(inputs[1] - inputs[0])
    return Picture(name, caption, _url(original), _url(found), _url(_signed(change)))


def image_layout(shape: tuple[int, ...], inputs: int) -> Layout | None:
    """Guess the layout from the network's input shape or its size; None if it is not an image."""
    sizes = [size for size in shape if size != 1]
    if len(sizes) == 3 and (len(shape) == 3 or shape[0] == 1):
        last = sizes[0] != 3 and sizes[2] < min(sizes[:2])
        height, width, channels = sizes if last else (*sizes[1:], sizes[0])
        fits = min(height, width) >= _SMALLEST_SIDE
        return Layout(height, width, channels, last) if fits else None
    if len(sizes) == 2 and min(sizes) >= _SMALLEST_SIDE:
        return Layout(sizes[0], sizes[1], 1)
    for channels in (1, 3):
        side = isqrt(inputs // channels)
        if len(sizes) == 1 and side >= _SMALLEST_SQUARE and channels * side * side == inputs:
            return Layout(side, side, channels)
    return None


def nominal_input(case: Case) -> Array:
    """Return the middle [inputs] of a box.

    Where a box of equal widths was cut off at the range of the data, this is the middle before
    the cut.
    """
    half = (case.upper - case.lower) / 2
    radius = half.max()
    middle = case.lower + half
    cut = (half < radius * (1 - 1e-6)) & (half > 0)
    at_bottom = cut & (case.lower <= case.lower.min())
    at_top = cut & (case.upper >= case.upper.max())
    middle = np.where(at_bottom, case.upper - radius, middle)
    middle = np.where(at_top & ~at_bottom, case.lower + radius, middle)
    inside: Array = np.clip(middle, case.lower, case.upper)
    return inside


def _signed(change: Array) -> Array:
    """Colour a change [height, width, channels]: blue where it fell, red where it rose."""
    grey = change.mean(axis=2, keepdims=True) / (np.abs(change).max() or 1.0)
    white, blue, red = np.ones(3), np.array([0.13, 0.4, 0.67]), np.array([0.7, 0.09, 0.17])
    fallen, risen = np.clip(-grey, 0, 1), np.clip(grey, 0, 1)
    coloured: Array = white + fallen * (blue - white) + risen * (red - white)
    return coloured


def _url(unit: Array) -> str:
    """Encode pixels [height, width, channels] between 0 and 1 as a PNG in a `data:` URL."""
    if unit.shape[2] not in (1, 3):
        unit = unit.mean(axis=2, keepdims=True)
    pixels = (unit * 255).round().astype(np.uint8)
    image = library("PIL.Image").fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    image.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE))
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
