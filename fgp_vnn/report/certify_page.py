"""The page of `certify`: which points are robust, and counterexamples for those that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fgp_vnn.base.words import plural
from fgp_vnn.report.page import Cell, Filter, Section, Table, TableRow, decided_bar, number_cell
from fgp_vnn.report.point_page import POINT_TITLES, AboutPoints, point_cells, point_page

TITLES = (*POINT_TITLES, "status", "decided by", "attack on undecided", "seconds")
NOTE = (
    "Decided by: the method that proved the point robust or found a counterexample. "
    "Attack on undecided: a point that was not decided is attacked once more; broken: the attack "
    "found a counterexample, which lowers the upper bound on the verified robust accuracy; stands: "
    "it found none; -: the point was decided, perhaps by an earlier attack."
)
# The statuses of a point, each with the verdict whose colour it takes.
COLOURS = {"robust": "unsat", "not_robust": "sat", "unknown": "unknown", "timeout": "timeout"}


def certify_page(
    about: AboutPoints, rows: Sequence[Mapping[str, Any]], counts: Mapping[str, Any]
) -> str:
    """Return the HTML text of the page for the rows of an output file and their summary."""
    found = plural(sum(bool(row.get("counterexample")) for row in rows), "counterexample")
    note = f"{len(about.pictures)} of {found}."
    status = Filter("result", "Status", sorted({str(row["status"]) for row in rows}))
    points = [TableRow(_cells(row), [str(row["status"])]) for row in rows]
    table = Table("points", TITLES, points, "classes, reasons", [status], note=NOTE)
    lead = str(about.settings.get("norm")), f"radius {about.settings.get('epsilon')}"
    facts = Section("summary", "Summary", "settings.html", {"Points": _facts(counts)})
    summary = facts, _statuses(rows)
    return point_page("fgp-vnn robustness of", lead, about, note, summary, table)


def _facts(summary: Mapping[str, Any]) -> dict[str, object]:
    facts: dict[str, object] = {"points": summary["points"]}
    facts |= {status.replace("_", " "): summary[status] for status in COLOURS}
    facts["median seconds"] = f"{summary['median_seconds']:.4f}"
    if "vra" in summary:
        facts["accuracy"] = f"{summary['accuracy']:.3f}"
        facts["verified robust accuracy"] = f"{summary['vra']:.3f}"
        facts["at most, by counterexamples"] = f"{summary['vra_upper_bound']:.3f}"
    return facts


def _statuses(rows: Sequence[Mapping[str, Any]]) -> Section:
    counts = Counter(str(row["status"]) for row in rows)
    pieces = [(s.replace("_", " "), counts[s], f"s-{COLOURS[s]}") for s in COLOURS if counts[s]]
    bars = [("status", pieces), *decided_bar("decided by", (row.get("decided_by") for row in rows))]
    return Section("breakdown", "Statuses, and what decided them", "breakdown.html", {"bars": bars})


def _cells(row: Mapping[str, Any]) -> list[Cell]:
    """Return the cells under TITLES."""
    y = None if row.get("y") in (None, "") else int(row["y"])
    return [
        *point_cells(int(row["point"]), int(row["label"]), y),
        Cell(str(row["status"]).replace("_", " "), detail=str(row.get("reason") or "")),
        Cell(str(row.get("decided_by") or "-")),
        Cell(str(row.get("attacked") or "-")),
        number_cell(f"{float(row['seconds']):.4f}", float(row["seconds"])),
    ]
