"""Plots of a run: instances solved over time, and one tool's times against another's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fgp_vnn.bench.comparison import Comparison
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Runs, right_answers
from fgp_vnn.bench.tables import Key
from fgp_vnn.bench.timing import speed
from fgp_vnn.report.figures import Palette, Plot, add_legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FLOOR = 0.01  # seconds; shorter times are drawn as this
_MARKERS = "osD^vPX*"


def run_plots(results: Comparison, mine: str, palette: Palette) -> Iterator[Plot]:
    """Yield the cactus plot, then a scatter plot of `mine` against each of the other tools."""
    runs = results.runs
    yield cactus(results, palette)
    for other in runs:
        if other != mine and runs[mine].keys() & runs[other].keys():
            yield scatter(results, mine, other, palette)


def cactus(results: Comparison, palette: Palette) -> Plot:
    """Plot the seconds of each tool's solved instances, from the fastest to the slowest."""
    runs = results.runs
    figure, (axes,) = new_figure(palette)
    right = right_answers(runs, results.rules)
    for number, (tool, records) in enumerate(runs.items()):
        times = sorted(_seconds(records[key]) for key in right[tool])
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
    axes.locator_params(axis="x", integer=True)
    _seconds_axis(axes.yaxis)
    add_legend(axes, palette)
    counts = ", ".join(f"{tool} {len(keys)}" for tool, keys in right.items())
    text = f"Cactus plot. Solved: {counts}. {_measured(results, list(runs))}"
    return Plot("cactus", "Solved over time", text, figure)


def scatter(results: Comparison, mine: str, other: str, palette: Palette) -> Plot:
    """Plot the seconds of `mine` against those of `other`; dashed lines hold unsolved instances."""
    runs = results.runs
    figure, (axes,) = new_figure(palette)
    keys = [key for key in runs[mine] if key in runs[other]]
    rim = 1.6 * max((runs[mine][key].timeout for key in keys), default=1.0)
    right = right_answers(runs, results.rules)

    def place(tool: str, key: Key) -> float:
        return _seconds(runs[tool][key]) if key in right[tool] else rim

    groups: dict[str, list[str]] = {}
    for word in ("unsat", "sat"):
        chosen = [key for key in keys if _verdict(runs, (mine, other), right, key) == word]
        points = axes.scatter(
            [place(other, key) for key in chosen],
            [place(mine, key) for key in chosen],
            s=20,
            alpha=0.75,
            linewidths=0,
            marker="^" if word == "sat" else "o",
            color=palette.series[1 if word == "sat" else 0],
            label=f"{word} ({len(chosen)})" if chosen else None,
        )
        points.set_gid(f"points-{word}")
        groups[f"points-{word}"] = [" ".join(key) for key in chosen]
    low = 0.7 * min((place(tool, key) for tool in (mine, other) for key in keys), default=rim)
    _rim_and_diagonal(axes, low, rim, palette)
    axes.set_xlabel(f"{other}, seconds (dashed: not solved)")
    axes.set_ylabel(f"{mine}, seconds")
    add_legend(axes, palette)
    alone = {tool: len(right[tool].intersection(keys)) for tool in (mine, other)}
    title = f"{mine} against {other}"
    text = f"Scatter plot. Solved: {mine} {alone[mine]}, {other} {alone[other]} of {len(keys)}. "
    text += f"{speed(runs, results.timings, (mine, other), results.rules)} "
    text += _measured(results, [mine, other])
    return Plot(f"scatter-{other}", title, text, figure, groups)


def _measured(results: Comparison, tools: Sequence[str]) -> str:
    """Return how the times of tools were measured; once, if it is the same for all."""
    texts = {tool: str(results.timings[tool]) for tool in tools}
    if len(set(texts.values())) == 1:
        return f"Times: {texts[tools[0]]}."
    return " ".join(f"Times of {tool}: {text}." for tool, text in texts.items())


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


def _seconds_axis(axis: Any) -> None:
    """Label an axis of seconds with plain numbers, not powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 100 * low:  # powers of ten alone would give too few labels
        subs = (1.0, 2.0, 5.0) if high > 8 * low else range(1, 10)
        axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _seconds(record: Record) -> float:
    return max(record.run_time, _FLOOR)


def _verdict(runs: Runs, tools: Sequence[str], right: dict[str, set[Key]], key: Key) -> str:
    """Return sat or unsat, the verdict of the first tool that solves the instance; else empty."""
    return next((runs[tool][key].result for tool in tools if key in right[tool]), "")
