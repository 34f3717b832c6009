"""The page of `certify`: which points are robust, and counterexamples for those that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fgp_vnn.base.words import plural
from fgp_vnn.report.page import Cell, Filter, Section, Table, TableRow, number_cell
from fgp_vnn.report.point_page import POINT_TITLES, PointReport, point_cells

TITLES = (*POINT_TITLES, "status", "decided by", "attack", "seconds")
# The statuses of a point, and the verdicts whose colours they have.
COLOURS = {"robust": "unsat", "not_robust": "sat", "unknown": "unknown", "timeout": "timeout"}


@dataclass(frozen=True)
class CertifyReport(PointReport):
    """The page of these rows, which are those of the output file."""

    rows: Sequence[Mapping[str, Any]]
    counts: Mapping[str, Any]

    title = "fgp-vnn robustness of"

    def lead(self) -> Sequence[str]:
        return str(self.settings.get("norm")), f"radius {self.settings.get('epsilon')}"

    def summary(self) -> Sequence[Section]:
        facts = {"Points": _facts(self.counts)}
        return Section("summary", "Summary", "settings.html", facts), _statuses(self.rows)

    def note(self) -> str:
        found = sum(bool(row.get("counterexample")) for row in self.rows)
        return f"{len(self.pictures)} of {plural(found, 'counterexample')}."

    def points(self) -> Table:
        status = Filter("result", "Status", sorted({str(row["status"]) for row in self.rows}))
        table = [TableRow(_cells(row), [str(row["status"])]) for row in self.rows]
        return Table("points", TITLES, table, "classes, reasons", [status])


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
    engines = Counter(str(row["decided_by"]) for row in rows if row.get("decided_by"))
    bars = [("status", pieces)]
    if engines:
        bars.append(
            ("decided by", [(*e, f"s-{n % 8 + 1}") for n, e in enumerate(engines.most_common())])
        )
    return Section("breakdown", "Statuses and engines", "breakdown.html", {"bars": bars})


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
