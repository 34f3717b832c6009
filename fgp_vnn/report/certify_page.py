"""The page of `certify`: which points are robust, and counterexamples for those that are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fgp_vnn.base.files import write_bytes
from fgp_vnn.base.words import plural
from fgp_vnn.bench.facts import machine, versions
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

TITLES = ("point", "class", "true", "status", "decided by", "attack", "seconds")
# The statuses of a point, and the verdicts whose colours they have.
COLOURS = {"robust": "unsat", "not_robust": "sat", "unknown": "unknown", "timeout": "timeout"}


@dataclass(frozen=True)
class CertifyReport:
    """What the page shows; `rows` are those of the output file."""

    rows: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]
    network: Mapping[str, object]  # facts of the network, "file" among them
    settings: Mapping[str, object]
    pictures: Sequence[Picture] = field(default_factory=tuple)


def write_certify_page(path: Path, report: CertifyReport) -> None:
    """Write the page to an HTML file."""
    write_bytes(path, certify_page(report).encode(), "report")


def certify_page(report: CertifyReport) -> str:
    """Return the HTML text of the page."""
    found = sum(bool(row.get("counterexample")) for row in report.rows)
    note = f"{len(report.pictures)} of {plural(found, 'counterexample')}."
    facts = {"Network": report.network, "Settings": report.settings}
    sections = (
        Section("summary", "Summary", "settings.html", {"Points": _facts(report.summary)}),
        _statuses(report.rows),
        Section("settings", "Network and settings", "settings.html", facts),
        *([pictures_section(report.pictures, note)] if report.pictures else []),
        _points(report.rows),
    )
    title = f"fgp-vnn robustness of {report.network.get('file', 'a network')}"
    radius = f"radius {report.settings.get('epsilon')}"
    lead = (plural(len(report.rows), "point"), str(report.settings.get("norm")), radius)
    return render(Page(title, lead, sections, [facts_line(versions()), facts_line(machine())]))


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


def _points(rows: Sequence[Mapping[str, Any]]) -> Section:
    status = Filter("result", "Status", sorted({str(row["status"]) for row in rows}))
    table = [Row(_cells(row), [str(row["status"])]) for row in rows]
    return Table("points", TITLES, table, "classes, reasons", [status]).section()


def _cells(row: Mapping[str, Any]) -> list[Cell]:
    """Return the cells under TITLES."""
    label, known = int(row["label"]), row.get("y") not in (None, "")
    right = not known or int(row["y"]) == label
    return [
        number_cell(str(row["point"]), float(row["point"])),
        number_cell(str(label), label, mark="" if right else "wrong"),
        number_cell(str(row["y"]), float(row["y"])) if known else number_cell("-", -1.0),
        Cell(str(row["status"]).replace("_", " "), detail=str(row.get("reason") or "")),
        Cell(str(row.get("decided_by") or "-")),
        Cell(str(row.get("attacked") or "-")),
        number_cell(f"{float(row['seconds']):.4f}", float(row["seconds"])),
    ]
