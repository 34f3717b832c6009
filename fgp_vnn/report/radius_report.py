"""One HTML page of the radii of a data set, complete in itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from fgp_vnn.bench.facts import machine, versions
from fgp_vnn.bench.journal import write_atomically
from fgp_vnn.report import plots
from fgp_vnn.report.frame import (
    big_table,
    choice,
    controls,
    count,
    facts,
    frame,
    scrolling,
    section,
)
from fgp_vnn.report.pictures import Picture
from fgp_vnn.report.radius_plots import Radii, curve, histogram
from fgp_vnn.report.radius_set import PointRadius, summarise
from fgp_vnn.report.sections import pictures_section, plots_section

MAX_PICTURES = 24
TITLES = ("point", "class", "true", "lower", "upper", "gap", "ended", "engine", "seconds")


@dataclass(frozen=True)
class RadiusReport:
    """What the page is made of."""

    radii: Radii
    network: Mapping[str, object]  # facts of the network, "file" among them
    settings: Mapping[str, object]
    pictures: Sequence[tuple[str, Picture]] = field(default_factory=tuple)


def write_radius_report(path: Path, report: RadiusReport) -> None:
    """Write the page; all of it or nothing."""
    write_atomically(path, render(report))


def render(report: RadiusReport) -> str:
    """The text of the page."""
    radii = report.radii
    drawn = [histogram(radii, plots.PAGE), curve(radii, plots.PAGE)]
    found = sum(math.isfinite(row.upper) for row in radii.rows)
    note = f"{len(report.pictures)} of {found} adversarial examples, the nearest ones first."
    sections = {
        "Summary": _summary(radii),
        "Plots": plots_section(drawn),
        "Network and settings": _settings(report),
        "Counterexamples": pictures_section(report.pictures, note) if report.pictures else "",
        "Points": _points(radii.rows),
    }
    return frame(
        title=facts({"fgp-vnn": f"radii of {report.network.get('file', 'a network')}"}),
        lead=f"{count(len(radii.rows), 'point')} · {radii.norm} · up to {radii.maximum:g}",
        sections=sections,
        footer=f"<p>{facts(versions())}</p><p>{facts(machine())}</p>",
        table="points",
    )


def _summary(radii: Radii) -> str:
    summary = summarise(radii.rows, radii.maximum)
    gap = summary["median_gap"]
    cells = {
        "points": summary["points"],
        "tight": summary["tight"],
        f"certified up to {radii.maximum:g}": summary["at_maximum"],
        "with an adversarial example": summary["counterexamples"],
        "mean lower bound": f"{summary['mean_lower']:.6g}",
        "median lower bound": f"{summary['median_lower']:.6g}",
        "median gap": "-" if gap is None else percent(gap),
        "median seconds": f"{summary['median_seconds']:.3f}",
    }
    parts = [_pairs("Bounds", cells)]
    if "accuracy" in summary:
        parts.append(_accuracies(summary["accuracy"], summary["certified_accuracy"]))
    return section("summary", "Summary", _beside(parts))


def _accuracies(plain: float, entries: Sequence[Mapping[str, float]]) -> str:
    head = "".join(
        f'<th scope="col" class="number">{title}</th>'
        for title in ("radius", "certified accuracy", "at most")
    )
    rows = "".join(
        f'<tr><td class="number">{entry["radius"]:g}</td><td class="number">'
        f'{entry["lower"]:.3f}</td><td class="number">{entry["upper"]:.3f}</td></tr>'
        for entry in entries
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    note = (
        '<p class="note">The share of all points that are classified rightly and have no other '
        f"class nearer than the radius; accuracy without attacks {plain:.3f}.</p>"
    )
    return f"<h3>Certified accuracy</h3>{scrolling('Certified accuracy', table)}{note}"


def _settings(report: RadiusReport) -> str:
    parts = [_pairs("Network", report.network), _pairs("Settings", report.settings)]
    return section("settings", "Network and settings", _beside(parts))


def _beside(parts: Sequence[str]) -> str:
    """In columns where the page is wide enough."""
    return f'<div class="bars">{"".join(f"<div>{part}</div>" for part in parts)}</div>'


def _pairs(label: str, values: Mapping[str, object]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td>{escape(str(value))}</td></tr>'
        for name, value in values.items()
    )
    return f"<h3>{label}</h3>{scrolling(label, f'<table><tbody>{rows}</tbody></table>')}"


def _points(rows: Sequence[PointRadius]) -> str:
    ended = choice("result", "Ended", sorted({row.ended for row in rows}))
    table = big_table("points", TITLES, "".join(map(_row, rows)))
    return section("points", "Points", controls(TITLES, "classes, engines", ended) + table)


def _row(row: PointRadius) -> str:
    wrong = "" if row.right else ' <span class="wrong-mark">wrong</span>'
    texts = (
        (str(row.point), row.point),
        (f"{row.label}{wrong}", row.label),
        ("-" if row.y is None else str(row.y), -1 if row.y is None else row.y),
        (f"{row.lower:.6g}", row.lower),
        ("-" if math.isinf(row.upper) else f"{row.upper:.6g}", min(row.upper, 1e99)),
        ("-" if math.isinf(row.gap) else percent(row.gap), min(row.gap, 1e99)),
        (escape(row.ended), None),
        (escape(row.engine), None),
        (f"{row.seconds:.3f}", row.seconds),
    )
    cells = "".join(_cell(title, *text) for title, text in zip(TITLES, texts, strict=True))
    return f'<tr data-results="{escape(row.ended)}">{cells}</tr>'


def _cell(title: str, text: str, value: float | None) -> str:
    number = "" if value is None else f' class="number" data-value="{value!r}"'
    return f'<td data-label="{title}"{number}>{text}</td>'


def percent(part: float) -> str:
    return f"{100 * part:.2g} %"
