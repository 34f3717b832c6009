"""The certificates of a run on its page: totals, and columns of the table of instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fgp_vnn.bench.certificates import certificates_of
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Runs
from fgp_vnn.bench.tables import Key
from fgp_vnn.report.page import Cell, Section

_TITLES = ("proof bytes", "write s", "check s", "certificate")


def has_certificates(results: Mapping[Key, Record]) -> bool:
    """Whether proofs were asked for: then an unsat has one, or a reason why it has none."""
    unsat = [record for record in results.values() if record.claim == "unsat" and not record.late]
    return any(record.certificate or record.reason for record in unsat)


def certificates_section(runs: Runs) -> Iterator[Section]:
    """The section of totals, a line per tool; none where no certificate was written."""
    totals = {t: certificates_of(r.values()) for t, r in runs.items() if has_certificates(r)}
    if totals:
        yield Section("certificates", "Certificates", "certificates.html", {"totals": totals})


def certificate_titles(tool: str) -> list[str]:
    """The titles of a tool's columns about certificates."""
    return [f"{tool} {title}" for title in _TITLES]


def certificate_cells(record: Record | None, folder: str) -> list[Cell]:
    """Size, seconds to write and to check, and the result; `folder` is the run's, with a slash."""
    if record is None or record.claim != "unsat":
        return [*(Cell("-", -1.0, "number") for _ in _TITLES[:-1]), Cell("-")]
    size = record.statistics.get("certificate_bytes", 0)
    seconds = [record.seconds.get(name, 0.0) for name in ("certificate", "check_certificate")]
    link = folder + record.certificate if record.certificate else ""
    return [
        Cell(f"{size:,}", size, "number"),
        *(Cell(f"{taken:.2f}", taken, "number") for taken in seconds),
        Cell("accepted", link=link) if record.certified else _without(record, link),
    ]


def _without(record: Record, link: str) -> Cell:
    """What there is in place of an accepted certificate, and why."""
    if record.certified is False:
        return Cell("", mark="refused", detail=record.reason, link=link)
    return Cell("none", detail=record.reason)
