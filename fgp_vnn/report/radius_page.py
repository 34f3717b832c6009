"""The page of the radii of a data set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fgp_vnn.base.words import plural
from fgp_vnn.report.figures import PAGE, plots_section
from fgp_vnn.report.page import Cell, Filter, Section, Table, TableRow, number_cell
from fgp_vnn.report.point_page import POINT_TITLES, PointReport, point_cells
from fgp_vnn.report.radius_plots import Radii, curve, histogram
from fgp_vnn.report.radius_set import PointRadius, percent, summarise_radii

TITLES = (*POINT_TITLES, "lower", "upper", "gap", "ended", "engine", "seconds")


@dataclass(frozen=True)
class RadiusReport(PointReport):
    """The page of these radii."""

    radii: Radii

    title = "fgp-vnn radii of"

    def lead(self) -> Sequence[str]:
        return self.radii.norm, f"up to {self.radii.maximum:g}"

    def summary(self) -> Sequence[Section]:
        plots = plots_section([histogram(self.radii, PAGE), curve(self.radii, PAGE)])
        return _summary(self.radii), plots

    def note(self) -> str:
        found = sum(math.isfinite(row.upper) for row in self.radii.rows)
        return f"{len(self.pictures)} of {plural(found, 'counterexample')}, the nearest ones first."

    def points(self) -> Table:
        ended = Filter("result", "Ended", sorted({row.ended for row in self.radii.rows}))
        table = [TableRow(_cells(row), [row.ended]) for row in self.radii.rows]
        return Table("points", TITLES, table, "classes, engines", [ended])


def _summary(radii: Radii) -> Section:
    summary = summarise_radii(radii.rows, radii.maximum)
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


def _cells(row: PointRadius) -> list[Cell]:
    """Return the cells under TITLES; what is not known sorts first or last."""
    upper = "-" if math.isinf(row.upper) else f"{row.upper:.6g}"
    return [
        *point_cells(row.point, row.label, row.y),
        number_cell(f"{row.lower:.6g}", row.lower),
        number_cell(upper, min(row.upper, 1e99)),
        number_cell(percent(row.gap), min(row.gap, 1e99)),
        Cell(row.ended),
        Cell(row.engine),
        number_cell(f"{row.seconds:.3f}", row.seconds),
    ]
