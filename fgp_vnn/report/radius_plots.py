"""Plots of the radii of a data set: a histogram, and certified accuracy against radius."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgp_vnn.base.words import plural
from fgp_vnn.report.figures import Palette, Plot, add_legend, new_figure
from fgp_vnn.report.radius_set import PointRadius, certified_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NORM_NAMES = {"l2": r"$\ell_2$", "linf": r"$\ell_\infty$", "l1": r"$\ell_1$"}
_MARGIN = 1.05  # curves and bars end at this multiple of the largest bound
_BEYOND = 1.02  # the axis ends at this multiple of it, so that the outline of the last bar is whole


@dataclass(frozen=True)
class Radii:
    """The radii of a data set in one norm, up to the largest requested radius."""

    rows: Sequence[PointRadius]
    norm: str
    maximum: float

    @property
    def farthest(self) -> float:
        """The end of curves and bars: a little more than the largest bound, at most `maximum`."""
        bounds = [bound for row in self.rows for bound in (row.lower, row.upper)]
        found = max((bound for bound in bounds if bound <= self.maximum), default=0.0)
        return min(found * _MARGIN, self.maximum) or self.maximum

    @property
    def labelled(self) -> bool:
        """Whether the true class of every point is known."""
        return all(row.y is not None for row in self.rows)


def histogram(radii: Radii, palette: Palette) -> Plot:
    """Plot histograms of the points' lower and upper bounds."""
    figure, (axes,) = new_figure(palette)
    _draw_histogram(axes, radii, palette)
    add_legend(axes, palette)
    tight = sum(row.tight for row in radii.rows)
    points = plural(len(radii.rows), "point")
    text = f"Histogram of the bounds of {points}, {tight} of them tight."
    return Plot("histogram", "Radii", text, figure)


def curve(radii: Radii, palette: Palette) -> Plot:
    """Plot certified accuracy and its upper bound against the radius, with the gap shaded."""
    figure, (axes,) = new_figure(palette)
    _draw_curve(axes, radii, palette)
    add_legend(axes, palette)
    correct = "are classified correctly and " if radii.labelled else ""
    text = f"Share of all points that {correct}have no other class nearer than the radius: "
    text += "at least the certified curve, at most the one from counterexamples."
    return Plot("curve", _accuracy_label(radii), text, figure)


def save_both(radii: Radii, palette: Palette, path: Path) -> None:
    """Write both plots side by side into one file, in the format of its suffix."""
    side_by_side(radii, palette).savefig(path, dpi=200, facecolor="white")


def side_by_side(radii: Radii, palette: Palette) -> Figure:
    figure, (left, right) = new_figure(palette, panels=2)
    _draw_histogram(left, radii, palette)
    _draw_curve(right, radii, palette)
    rows = max(len(axes.get_legend_handles_labels()[1]) for axes in (left, right))
    for axes in (left, right):
        add_legend(axes, palette, rows=rows)  # at the same height
    return figure


def _draw_histogram(axes: Axes, radii: Radii, palette: Palette) -> None:
    from matplotlib.ticker import MaxNLocator

    lower = [row.lower for row in radii.rows]
    edges = bin_edges(radii)
    upper = [row.upper for row in radii.rows if row.upper <= edges[-1]]
    blue, orange = palette.series[:2]
    axes.hist(lower, edges, color=blue, alpha=0.45, label="certified lower bound")
    axes.hist(
        upper,
        edges,
        histtype="step",
        color=orange,
        linewidth=1.8,
        label="distance of a counterexample",
    )
    if farther := len(radii.rows) - len(upper):
        axes.plot([], [], " ", label=f"({farther} farther away or not found)")
    axes.set_xlim(0, edges[-1] * _BEYOND)
    axes.set_xlabel(_radius_label(radii))
    axes.set_ylabel("points")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def bin_edges(radii: Radii) -> list[float]:
    """Return the edges of the bins; there are about 2 sqrt(points) of them, from 8 to 40."""
    bins = min(40, max(8, 2 * math.isqrt(len(radii.rows))))
    return [radii.farthest * k / bins for k in range(bins + 1)]


def _draw_curve(axes: Axes, radii: Radii, palette: Palette) -> None:
    shares = certified_curve(radii.rows, radii.maximum)
    blue, orange = palette.series[:2]
    steps: dict[str, Any] = {"where": "pre", "linewidth": 1.8}
    axes.step(shares.radius, shares.lower, color=blue, label="certified", zorder=3, **steps)
    at_most: dict[str, Any] = {"linestyle": "--", "label": "at most (counterexamples)"}
    axes.step(shares.radius, shares.upper, color=orange, **at_most, **steps)
    axes.fill_between(
        shares.radius,
        shares.lower,
        shares.upper,
        step="pre",
        color=palette.series[7],
        alpha=0.25,
        linewidth=0,
        label="not decided",
    )
    axes.set_xlim(0, radii.farthest * _BEYOND)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(_radius_label(radii))
    axes.set_ylabel(_accuracy_label(radii).lower())


def _radius_label(radii: Radii) -> str:
    return f"{NORM_NAMES[radii.norm]} radius"


def _accuracy_label(radii: Radii) -> str:
    return "Certified accuracy" if radii.labelled else "Certified share of the points"
