"""The page of the radii of a data set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fgp_vnn.base.files import write_bytes
from fgp_vnn.base.words import plural
from fgp_vnn.bench.facts import machine, versions
from fgp_vnn.report.figures import PAGE, plots_section
from fgp_vnn.report.page import (
    Cell,
    Filter,
    Page,
    Row,
    Section,
    Table,
    facts_line,
    number_cell,
    render,
)
from fgp_vnn.report.pictures import Picture, pictures_section
from fgp_vnn.report.radius_plots import Radii, curve, histogram
from fgp_vnn.report.radius_set import PointRadius, percent, summarise

TITLES = ("point", "class", "true", "lower", "upper", "gap", "ended", "engine", "seconds")


@dataclass(frozen=True)
class RadiusReport:
    """What the page shows."""

    radii: Radii
    network: Mapping[str, object]  # facts of the network, "file" among them
    settings: Mapping[str, object]
    pictures: Sequence[Picture] = field(default_factory=tuple)


def write_radius_page(path: Path, report: RadiusReport) -> None:
    """Write the page to an HTML file."""
    write_bytes(path, radius_page(report).encode(), "report")


def radius_page(report: RadiusReport) -> str:
    """Return the HTML text of the page."""
    radii = report.radii
    facts = {"Network": report.network, "Settings": report.settings}
    found = sum(math.isfinite(row.upper) for row in radii.rows)
    note = f"{len(report.pictures)} of {plural(found, 'counterexample')}, the nearest ones first."
    sections = (
        _summary(radii),
        plots_section([histogram(radii, PAGE), curve(radii, PAGE)]),
        Section("settings", "Network and settings", "settings.html", facts),
        *([pictures_section(report.pictures, note)] if report.pictures else []),
        _points(radii.rows),
    )
    title = f"fgp-vnn radii of {report.network.get('file', 'a network')}"
    lead = (plural(len(radii.rows), "point"), radii.norm, f"up to {radii.maximum:g}")
    return render(Page(title, lead, sections, [facts_line(versions()), facts_line(machine())]))


def _summary(radii: Radii) -> Section:
    summary = summarise(radii.rows, radii.maximum)
    bounds = {
        "points": summary["points"],
        "tight": summary["tight"],
        f"certified up to {radii.maximum:g}": summary["at_maximum"],
        "with a counterexample": summary["counterexamples"],
        "mean lower bound": f"{summary['mean_lower']:.6g}",
        "median lower bound": f"{summary['median_lower']:.6g}",
        "median gap": percent(summary["median_gap"]),
        "median seconds": f"{summary['median_seconds']:.3f}",
    }
    values = {
        "bounds": bounds,
        "accuracy": summary.get("accuracy"),
        "accuracies": summary.get("certified_accuracy"),
    }
    return Section("summary", "Summary", "radius_summary.html", values)


def _points(rows: Sequence[PointRadius]) -> Section:
    ended = Filter("result", "Ended", sorted({row.ended for row in rows}))
    table = [Row(_cells(row), [row.ended]) for row in rows]
    return Table("points", TITLES, table, "classes, engines", [ended]).section()


def _cells(row: PointRadius) -> list[Cell]:
    """Return the cells under TITLES; what is not known sorts first or last."""
    upper = "-" if math.isinf(row.upper) else f"{row.upper:.6g}"
    return [
        number_cell(str(row.point), row.point),
        number_cell(str(row.label), row.label, mark="" if row.right else "wrong"),
        number_cell("-", -1) if row.y is None else number_cell(str(row.y), row.y),
        number_cell(f"{row.lower:.6g}", row.lower),
        number_cell(upper, min(row.upper, 1e99)),
        number_cell(percent(row.gap), min(row.gap, 1e99)),
        Cell(row.ended),
        Cell(row.engine),
        number_cell(f"{row.seconds:.3f}", row.seconds),
    ]
