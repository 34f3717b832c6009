"""The page of the radii of a data set."""

from __future__ import annotations

import math

from fgp_vnn.base.words import plural
from fgp_vnn.report.figures import PAGE, plots_section
from fgp_vnn.report.page import Cell, Filter, Section, Table, TableRow, number_cell
from fgp_vnn.report.point_page import POINT_TITLES, AboutPoints, point_cells, point_page
from fgp_vnn.report.radius_plots import Radii, curve, histogram
from fgp_vnn.report.radius_set import PointRadius, gap_title, percent, summarise_radii

TITLES = (*POINT_TITLES, "lower", "upper", "gap", "ended", "decided by", "seconds")
NOTE = (
    "No input nearer than the lower bound has another class; the upper bound is the distance of a "
    "counterexample. Gap: the difference in per cent of the upper bound. Ended: tight, the bounds "
    "are within the requested gap; max, the lower bound has reached the largest radius of "
    "interest; otherwise what stopped the search. Decided by: the method that proved the lower "
    "bound."
)


def radius_page(about: AboutPoints, radii: Radii) -> str:
    plots = plots_section([histogram(radii, PAGE), curve(radii, PAGE)])
    found = plural(sum(math.isfinite(row.upper) for row in radii.rows), "counterexample")
    note = f"{len(about.pictures)} of {found}, the nearest ones first."
    ended = Filter("result", "Ended", sorted({row.ended for row in radii.rows}))
    rows = [TableRow(_cells(row), [row.ended]) for row in radii.rows]
    table = Table("points", TITLES, rows, "classes, methods", [ended], note=NOTE)
    lead = radii.norm, f"up to {radii.maximum:g}"
    return point_page("fgp-vnn radii of", lead, about, note, (_summary(radii), plots), table)


def _summary(radii: Radii) -> Section:
    summary = summarise_radii(radii.rows, radii.maximum)
    bounds = {
        "points": summary["points"],
        "tight": summary["tight"],
        f"certified up to {radii.maximum:g}": summary["at_maximum"],
        "with a counterexample": summary["counterexamples"],
        "mean lower bound": f"{summary['mean_lower']:.6g}",
        "median lower bound": f"{summary['median_lower']:.6g}",
        gap_title(summary): percent(summary["median_gap"]),
        "median seconds": f"{summary['median_seconds']:.3f}",
    }
    values = {
        "bounds": bounds,
        "accuracy": summary.get("accuracy"),
        "accuracies": summary.get("certified_accuracy"),
    }
    return Section("summary", "Summary", "radius_summary.html", values)


def _cells(row: PointRadius) -> list[Cell]:
    """Return the cells under TITLES; an unknown value sorts first or last."""
    upper = "-" if math.isinf(row.upper) else f"{row.upper:.6g}"
    return [
        *point_cells(row.point, row.label, row.y),
        number_cell(f"{row.lower:.6g}", row.lower),
        number_cell(upper, min(row.upper, 1e99)),
        number_cell(percent(row.gap), min(row.gap, 1e99)),
        Cell(row.ended),
        Cell(row.decided_by or "-"),
        number_cell(f"{row.seconds:.3f}", row.seconds),
    ]
