"""Cactus and scatter plots: files for a paper, and SVG that takes its colours from a page."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Runs, right_answers
from fgp_vnn.bench.tables import Key

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FLOOR = 0.01  # seconds; faster than this is drawn as this
_MARKERS = "osD^vPX*"


@dataclass(frozen=True)
class Palette:
    """The colours of a plot."""

    ink: str
    faint: str
    series: tuple[str, ...]


PAPER = Palette(
    "#222222",
    "#bbbbbb",
    ("#0b62a4", "#d1570f", "#1d8649", "#a3318f", "#8a6d00", "#008c95", "#b3263a", "#5b5b5b"),
)
# Stand-ins that become CSS variables in `inline_svg`.
PAGE = Palette("#010101", "#020202", tuple(f"#0300{n:02d}" for n in range(1, 9)))
_VARIABLES = {
    PAGE.ink: "var(--ink)",
    PAGE.faint: "var(--faint)",
    **{colour: f"var(--series-{n})" for n, colour in enumerate(PAGE.series, start=1)},
}


@dataclass(frozen=True)
class Plot:
    """A figure, and the names of its points, to be shown where the pointer is."""

    name: str
    title: str
    description: str
    figure: Figure
    points: dict[str, list[str]] = field(default_factory=dict)  # group -> one name per point


def cactus(runs: Runs, palette: Palette) -> Plot:
    """How many instances each tool solves, if each may take no longer than so many seconds."""
    figure, (axes,) = new_figure(palette)
    right = right_answers(runs)
    for number, (tool, results) in enumerate(runs.items()):
        times = sorted(_seconds(results[key]) for key in right[tool])
        axes.plot(
            range(1, len(times) + 1),
            times,
            label=f"{tool} ({len(times)})",
            color=palette.series[number % len(palette.series)],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=3.5,
            markevery=max(1, len(times) // 25),
            linewidth=1.6,
        )
    axes.set_yscale("log")
    axes.set_xlabel("instances solved")
    axes.set_ylabel("seconds, each")
    axes.set_xlim(left=0)
    _seconds_axis(axes.yaxis)
    add_legend(axes, palette)
    counts = ", ".join(f"{tool} {len(keys)}" for tool, keys in right.items())
    return Plot("cactus", "Solved over time", f"Cactus plot. Solved: {counts}.", figure)


def scatter(runs: Runs, mine: str, other: str, palette: Palette) -> Plot:
    """One tool's time against another's; what one of them does not solve lies on its rim."""
    figure, (axes,) = new_figure(palette)
    keys = [key for key in runs[mine] if key in runs[other]]
    rim = 1.6 * max((runs[mine][key].timeout for key in keys), default=1.0)
    right = right_answers(runs)

    def place(tool: str, key: Key) -> float:
        return _seconds(runs[tool][key]) if key in right[tool] else rim

    groups: dict[str, list[str]] = {}
    for word in ("unsat", "sat"):
        chosen = [key for key in keys if _word(runs, (mine, other), right, key) == word]
        points = axes.scatter(
            [place(other, key) for key in chosen],
            [place(mine, key) for key in chosen],
            s=20,
            alpha=0.75,
            linewidths=0,
            marker="^" if word == "sat" else "o",
            color=palette.series[1 if word == "sat" else 0],
            label=f"{word} ({len(chosen)})",
        )
        points.set_gid(f"points-{word}")
        groups[f"points-{word}"] = [" ".join(key) for key in chosen]
    low = 0.7 * min((place(tool, key) for tool in (mine, other) for key in keys), default=rim)
    _rim_and_diagonal(axes, low, rim, palette)
    axes.set_xlabel(f"{other}, seconds (dashed: not solved)")
    axes.set_ylabel(f"{mine}, seconds")
    add_legend(axes, palette)
    faster = sum(place(mine, key) < place(other, key) for key in keys)
    title = f"{mine} against {other}"
    text = f"Scatter plot. {mine} is faster, or alone, on {faster} of {len(keys)} instances."
    return Plot(f"scatter-{other}", title, text, figure, groups)


def _rim_and_diagonal(axes: Axes, low: float, rim: float, palette: Palette) -> None:
    axes.plot([low, rim], [low, rim], color=palette.faint, linewidth=1)
    axes.axhline(rim, color=palette.faint, linewidth=1, linestyle="--")
    axes.axvline(rim, color=palette.faint, linewidth=1, linestyle="--")
    for axis, scale, limits in (
        (axes.xaxis, axes.set_xscale, axes.set_xlim),
        (axes.yaxis, axes.set_yscale, axes.set_ylim),
    ):
        scale("log")
        limits(low, rim * 1.25)
        _seconds_axis(axis)


def save(plot: Plot, folder: Path) -> list[Path]:
    """The plot as PNG and SVG."""
    paths = [folder / f"{plot.name}.png", folder / f"{plot.name}.svg"]
    for path in paths:
        plot.figure.savefig(path, dpi=160, facecolor="white")
    return paths


def inline_svg(plot: Plot) -> str:
    """SVG for the middle of a page: its colours and fonts, unique ids, a name for each point."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": plot.name}):
        plot.figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s(xmlns(:\w+)?|version)="[^"]*"', "", svg)
    svg = re.sub(r'(<svg[^>]*?)\swidth="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?)\sheight="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(r'id="|href="#|url\(#', lambda match: f"{match[0]}{plot.name}-", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    for group, names in plot.points.items():
        svg = _with_names(svg, f"{plot.name}-{group}", names)
    label = html.escape(plot.description, quote=True)
    return svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _with_names(svg: str, group: str, names: Sequence[str]) -> str:
    """A title in each marker of the group, in order."""
    start = svg.find(f'id="{group}"')
    if start < 0:
        return svg
    waiting = iter(names)

    def add(match: re.Match[str]) -> str:
        name = next(waiting, None)
        if name is None:
            return match[0]
        return f"{match[1]}><title>{html.escape(name)}</title></use>"

    rest = re.sub(r"(<use\b[^>]*?)\s*/>", add, svg[start:], count=len(names))
    return svg[:start] + rest


def new_figure(palette: Palette, *, panels: int = 1) -> tuple[Figure, tuple[Axes, ...]]:
    """A figure with empty axes side by side; raises InputError if matplotlib is not there."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise InputError("plots need matplotlib: pip install 'fgp-vnn[report]'") from error
    figure = Figure(figsize=(5.2 * panels, 3.9), layout=ConstrainedLayoutEngine(wspace=0.05))
    return figure, tuple(_axes(figure, panels, n + 1, palette) for n in range(panels))


def _axes(figure: Figure, panels: int, number: int, palette: Palette) -> Axes:
    axes = figure.add_subplot(1, panels, number)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(palette.faint)
    axes.tick_params(which="both", color=palette.faint, labelcolor=palette.ink)
    axes.xaxis.label.set_color(palette.ink)
    axes.yaxis.label.set_color(palette.ink)
    axes.grid(color=palette.faint, linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    return axes


def _seconds_axis(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 100 * low:  # too few powers of ten to read a scale by
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def add_legend(axes: Axes, palette: Palette, *, right: bool = False) -> None:
    place, corner = ("upper right", (1.0, 1.0)) if right else ("upper left", (0.0, 0.95))
    axes.legend(frameon=False, labelcolor=palette.ink, fontsize=9, loc=place, bbox_to_anchor=corner)


def _seconds(record: Record) -> float:
    return max(record.run_time, _FLOOR)


def _word(runs: Runs, tools: Sequence[str], right: dict[str, set[Key]], key: Key) -> str:
    return next((runs[tool][key].result for tool in tools if key in right[tool]), "")
