"""Figures by matplotlib: as files for a paper, and as SVG in the colours of a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from fgp_vnn.report.page import Section, library

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Palette:
    """The colours of a plot, as `#rrggbb`."""

    ink: str  # text
    faint: str  # axes and grid
    series: tuple[str, ...]


PAPER = Palette(
    "#222222",
    "#bbbbbb",
    ("#0b62a4", "#d1570f", "#1d8649", "#a3318f", "#8a6d00", "#008c95", "#b3263a", "#5b5b5b"),
)
# Placeholders that `inline_svg` replaces by CSS variables.
PAGE = Palette("#010101", "#020202", tuple(f"#0300{n:02d}" for n in range(1, 9)))
_VARIABLES = {
    PAGE.ink: "var(--ink)",
    PAGE.faint: "var(--faint)",
    **{colour: f"var(--series-{n})" for n, colour in enumerate(PAGE.series, start=1)},
}


@dataclass(frozen=True)
class Plot:
    """A figure with its texts; the names of its points become tooltips."""

    name: str  # of its files, and the prefix of its ids in a page
    title: str
    description: str
    figure: Figure
    # id of a group -> one name per point
    points: dict[str, list[str]] = field(default_factory=dict)


def new_figure(palette: Palette, *, panels: int = 1) -> tuple[Figure, tuple[Axes, ...]]:
    """Return a figure and its empty axes, side by side."""
    engine = library("matplotlib.layout_engine").ConstrainedLayoutEngine(wspace=0.05)
    figure = library("matplotlib.figure").Figure(figsize=(4.8 * panels, 3.6), layout=engine)
    row = tuple(figure.subplots(1, panels, squeeze=False)[0])
    for axes in row:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(palette.faint)
        axes.tick_params(which="both", color=palette.faint, labelcolor=palette.ink)
        axes.xaxis.label.set_color(palette.ink)
        axes.yaxis.label.set_color(palette.ink)
        axes.grid(color=palette.faint, linewidth=0.4, alpha=0.6)
        axes.set_axisbelow(True)
    return figure, row


def add_legend(axes: Axes, palette: Palette, *, rows: int = 0) -> None:
    """Put a legend above the axes, where it covers no curve, in two columns if they fit. It is
    filled up with empty rows below its entries until it has `rows`."""
    handles, labels = axes.get_legend_handles_labels()
    longest = max(map(len, labels), default=0)
    empty = rows - len(labels)
    if empty > 0:
        nothing = library("matplotlib.lines").Line2D([], [], linestyle="none")
        handles, labels = [*handles, *[nothing] * empty], [*labels, *[""] * empty]
    axes.legend(
        handles,
        labels,
        frameon=False,
        labelcolor=palette.ink,
        fontsize=9,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=2 if longest <= 20 else 1,
    )


def save(plot: Plot, folder: Path) -> None:
    """Write NAME.png and NAME.svg, and their caption as NAME.txt."""
    for suffix in ("png", "svg"):
        plot.figure.savefig(folder / f"{plot.name}.{suffix}", dpi=160, facecolor="white")
    (folder / f"{plot.name}.txt").write_text(f"{plot.title}. {plot.description}\n")


def plots_section(plots: Iterable[Plot]) -> Section:
    """Return the section that shows plots side by side; they must use the palette PAGE."""
    drawn = [(plot, inline_svg(plot)) for plot in plots]
    return Section("plots", "Plots", "plots.html", {"plots": drawn})


def inline_svg(plot: Plot) -> str:
    """Return a plot as an SVG element to embed in a page.

    Colours and fonts are those of the page, ids are unique in it, and each named point has a
    tooltip.
    """
    text = io.StringIO()
    with library("matplotlib").rc_context({"svg.fonttype": "none", "svg.hashsalt": plot.name}):
        plot.figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(text.getvalue())
    for element in root.iter():  # HTML has no name spaces
        element.tag = element.tag.rpartition("}")[2]
        plain = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        element.attrib = {name: _for_page(plot.name, name, plain[name]) for name in plain}
    for metadata in root.findall("metadata"):
        root.remove(metadata)
    for name in ("width", "height", "version"):
        del root.attrib[name]
    root.attrib |= {"role": "img", "aria-label": plot.description}
    for group, names in plot.points.items():
        found = root.find(f".//g[@id='{plot.name}-{group}']")
        markers = [] if found is None else [*found.iter("use")] or [*found.iter("path")]
        for marker, name in zip(markers, names, strict=False):
            ElementTree.SubElement(marker, "title").text = name
    return ElementTree.tostring(root, encoding="unicode")


def _for_page(prefix: str, name: str, value: str) -> str:
    """Return an attribute's value with prefixed ids, the page's font and the page's colours."""
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href":
        return value.replace("#", f"#{prefix}-")
    value = value.replace("url(#", f"url(#{prefix}-")
    value = re.sub(r"font: ([\d.]+)px [^;]*", r"font-size: \1px", value)
    for colour, variable in _VARIABLES.items():
        value = value.replace(colour, variable)
    return value
