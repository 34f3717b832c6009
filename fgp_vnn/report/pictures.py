"""Counterexamples as images: the centre of the box, the counterexample, and their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fgp_vnn.base.images import ImageLayout as ImageLayout
from fgp_vnn.base.images import image_layout as image_layout
from fgp_vnn.base.images import png_url, signed_colours, unit_pixels
from fgp_vnn.bench.check import OnnxFile
from fgp_vnn.bench.instances import Instance
from fgp_vnn.property import load_property
from fgp_vnn.property.model import Case
from fgp_vnn.property.results import read_results
from fgp_vnn.report.page import Section

Array = NDArray[np.float64]

MAX_PICTURES = 24  # on one page


@dataclass(frozen=True)
class Picture:
    """Three images as `data:` URLs, a name, and a caption that describes the change."""

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


def draw(
    name: str,
    caption: str,
    layout: ImageLayout,
    inputs: tuple[Array, Array],
    limits: tuple[float, float],
) -> Picture:
    """Draw two inputs [inputs] and their difference; `limits` are the values of black and white."""
    original, found = (png_url(unit_pixels(layout, x, limits)) for x in inputs)
    change = signed_colours(layout.pixels(inputs[1] - inputs[0]))
    return Picture(name, caption, original, found, png_url(change))


def nominal_input(case: Case) -> Array:
    """Return the centre [inputs] of a box.

    If a box of equal widths was clipped to the range of the data, this is the centre before
    clipping.
    """
    half = (case.upper - case.lower) / 2
    radius = half.max()
    middle = case.lower + half
    cut = (half < radius * (1 - 1e-6)) & (half > 0)
    at_bottom = cut & (case.lower <= case.lower.min())
    at_top = cut & (case.upper >= case.upper.max())
    middle = np.where(at_bottom, case.upper - radius, middle)
    middle = np.where(at_top & ~at_bottom, case.lower + radius, middle)
    return np.clip(middle, case.lower, case.upper)
