"""The certificates of a run on its page: totals, and columns of the table of instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fgp_vnn.bench.certificates import certificates_of
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.score import Runs
from fgp_vnn.bench.tables import Key
from fgp_vnn.report.page import Cell, Section


def has_certificates(results: Mapping[Key, Record]) -> bool:
    """Whether proofs were asked for: then an unsat has one, or a reason why it has none."""
    unsat = [record for record in results.values() if record.claim == "unsat" and not record.late]
    return any(record.certificate or record.reason for record in unsat)


def certificates_section(runs: Runs) -> Iterator[Section]:
    """The section of totals, a line per tool; none where no certificate was written."""
    totals = {t: certificates_of(r.values()) for t, r in runs.items() if has_certificates(r)}
    if totals:
        yield Section("certificates", "Certificates", "certificates.html", {"totals": totals})


def certificate_cell(record: Record | None, folder: str) -> Cell:
    """What the checker said, with the size and the seconds; `folder` is the run's, with a slash."""
    if record is None or record.claim != "unsat":
        return Cell("-", -1.0)
    links = {"certificate": folder + record.certificate} if record.certificate else {}
    if record.certified is False:
        return Cell("", 0.0, mark="refused", detail=record.reason, links=links)
    if not record.certified:
        return Cell("none", 0.0, detail=record.reason, links=links)
    size = record.statistics.get("certificate_bytes", 0)
    write, check = (record.seconds.get(n, 0.0) for n in ("certificate", "check_certificate"))
    detail = f"written in {write:.2f} s, checked in {check:.2f} s"
    return Cell("accepted", float(size), measure=f"{size:,} bytes", detail=detail, links=links)
