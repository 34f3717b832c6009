"""The tables of a run's page: tools, categories, how it was measured, instances, certificates."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from fgp_vnn.base.verdict import STATUSES
from fgp_vnn.base.words import plural
from fgp_vnn.bench.certificates import certificates_of
from fgp_vnn.bench.comparison import Comparison
from fgp_vnn.bench.record import Record
from fgp_vnn.bench.rules import Rules
from fgp_vnn.bench.score import (
    Runs,
    Score,
    all_keys,
    category_scores,
    known_answers,
    score_texts,
    score_titles,
    scores,
)
from fgp_vnn.bench.tables import Key
from fgp_vnn.report.page import Cell, Filter, Section, Table, TableRow, facts_line

_BEHIND = 1e9  # seconds added to unsolved instances, which sort after all solved ones


def summary_section(results: Comparison) -> Section:
    """Return one line per tool, with the best value of each column in bold.

    The best times are marked only if they are comparable.
    """
    table = scores(results.runs, results.rules)
    best: dict[str, float] = {
        "solved": max(score.solved for score in table),
        "points": max(score.points for score in table),
    }
    if results.comparable:
        best["par2"] = min(score.par2 for score in table)
        best["median"] = min((s.median for s in table if s.median is not None), default=-1.0)

    def kind(score: Score, name: str) -> str:
        if name == "wrong" and score.wrong:
            return "wrong"
        return "best" if best.get(name) == getattr(score, name) else ""

    titles = score_titles(len(table))
    rows = []
    for score in table:
        texts = score_texts(score)
        rows.append((score.tool, [Cell(texts[n], kind=kind(score, n)) for n in titles]))
    values = {
        "titles": titles.values(),
        "scores": rows,
        "rules": results.rules,
        "known": known_answers(results.runs, results.rules),
        "instances": len(all_keys(results.runs)),
        "comparable": results.comparable,
    }
    return Section("summary", "Summary", "run_summary.html", values)


def categories_section(results: Comparison) -> Section:
    """Return the competition's score of each tool in each category, and their sums."""
    rows = []
    totals = dict.fromkeys(results.runs, 0.0)
    for category, table in category_scores(results.runs, results.rules).items():
        most = max(score.points for score in table)
        cells = []
        for score in table:
            share = 100 * score.points / most if most > 0 else 0.0
            totals[score.tool] += share
            kind = "best" if score.points == most else ""
            counts = f"{score.unsat} unsat, {score.sat} sat of {score.instances}"
            mark = f"{score.wrong} wrong" if score.wrong else ""
            cells.append(Cell(f"{share:.1f}", kind=kind, detail=counts, mark=mark))
        rows.append((category, cells))
    values = {"tools": list(results.runs), "rows": rows, "totals": totals}
    return Section("categories", "Categories", "categories.html", values)


def origin_section(results: Comparison) -> Section:
    """Return how each tool was timed, and the command, the date and the machine of the run."""
    facts: dict[str, str] = {}
    if made := results.made:
        versions = made.get("versions", {})
        facts = {
            "command": shlex.join(made["command"]),
            "date": made["date"],
            "machine": f"{made['host']}, {made['processor']}, {plural(made['cores'], 'core')}, "
            f"{made['memory']}, {made['system']}",
            "revision": made["revision"] or "not from a repository",
            "versions": facts_line(versions),
        }
    timings = {tool: str(timing) for tool, timing in results.timings.items()}
    values = {"timings": timings, "facts": facts}
    return Section("origin", "How it was measured", "origin.html", values)


def instances_section(results: Comparison, conflicting: set[Key]) -> Section:
    """Return every instance, with columns for each tool's verdict and, if any, certificate."""
    runs = results.runs
    folders = {
        tool: place.relative_to(results.folder).as_posix() + "/"
        for tool, place in results.folders.items()
    }
    proved = [tool for tool, records in runs.items() if has_certificates(records)]
    titles = ["category", "network", "property", "limit s"]
    for tool in runs:
        titles += [tool, *([f"{tool} certificate"] if tool in proved else [])]
    keys = all_keys(runs)
    categories = list(dict.fromkeys(key[0] for key in keys))
    filters = [Filter("result", "Verdict", STATUSES), Filter("category", "Category", categories)]
    rows = []
    for key in keys:
        cells = []
        for tool, records in runs.items():
            record = records.get(key)
            cells.append(_result_cell(record, folders[tool], results.rules))
            cells += [certificate_cell(record, folders[tool])] if tool in proved else []
        known = [records[key] for records in runs.values() if key in records]
        rows.append(_row(key, known, cells, key in conflicting))
    return Table("instances", titles, rows, "names, reasons", filters, True).section()


def _row(key: Key, known: Sequence[Record], found: Sequence[Cell], conflict: bool) -> TableRow:
    limit = known[0].timeout
    names = [Cell(key[0]), Cell(key[1], kind="name"), Cell(key[2], kind="name")]
    row = [*names, Cell(f"{limit:g}", limit, "number"), *found]
    return TableRow(row, sorted({record.result for record in known}), key[0], conflict)


def _result_cell(record: Record | None, folder: str, rules: Rules) -> Cell:
    """Return a verdict with its seconds, reason and files; unsolved instances sort last."""
    if record is None:
        return Cell("-", 2 * _BEHIND, "result")
    standing = record.standing(rules) or "valid"
    strict = record.confirmed is not False
    warn = f"late: {record.late}" if record.late else ""
    if standing == "tolerated":
        warn = f"{warn} within tolerance".strip()
    detail = record.decided_by if record.solved and strict else record.reason
    files = {"counterexample": record.counterexample, "log": record.log}
    return Cell(
        record.result,
        record.run_time if record.solved else _BEHIND + record.run_time,
        "result",
        measure=f"{record.run_time:.2f} s",
        mark="not valid" if standing == "invalid" and not record.late else "",
        warn=warn,
        detail="" if record.late and strict else detail,
        links={name: folder + file for name, file in files.items() if file},
    )


def has_certificates(results: Mapping[Key, Record]) -> bool:
    """Whether certificates were requested: then each unsat has one, or a reason for having none."""
    unsat = [record for record in results.values() if record.claim == "unsat" and not record.late]
    return any(record.certificate or record.reason for record in unsat)


def certificates_section(runs: Runs) -> Iterator[Section]:
    """Yield the section of totals, a line per tool, if certificates were requested."""
    totals = {t: certificates_of(r.values()) for t, r in runs.items() if has_certificates(r)}
    if totals:
        yield Section("certificates", "Certificates", "certificates.html", {"totals": totals})


def certificate_cell(record: Record | None, folder: str) -> Cell:
    """Return the checker's answer, with size and seconds; `folder` is the run's, with a slash."""
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
