"""Shared parts of the pages of `certify` and `radius`: network, settings, pictures, points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fgp_vnn.base.words import plural
from fgp_vnn.bench.facts import machine, versions
from fgp_vnn.report.page import Cell, Page, Section, Table, facts_line, number_cell, render
from fgp_vnn.report.pictures import Picture, pictures_section

POINT_TITLES = ("point", "class", "true")


@dataclass(frozen=True)
class AboutPoints:
    """The content of a page about points besides their results."""

    network: Mapping[str, object]  # facts about the network, including "file"
    settings: Mapping[str, object]
    pictures: Sequence[Picture]


def point_page(
    title: str,
    lead: Sequence[str],
    about: AboutPoints,
    note: str,
    summary: Sequence[Section],
    points: Table,
) -> str:
    """Return the HTML text of a page. `title` comes before the network's name, `lead` after the
    number of points, `note` above the pictures, and `summary` before the other sections."""
    facts = {"Network": about.network, "Settings": about.settings}
    sections = (
        *summary,
        Section("settings", "Network and settings", "settings.html", facts),
        *([pictures_section(about.pictures, note)] if about.pictures else []),
        points.section(),
    )
    title = f"{title} {about.network.get('file', 'a network')}"
    lead = (plural(len(points.rows), "point"), *lead)
    return render(Page(title, lead, sections, [facts_line(versions()), facts_line(machine())]))


def point_cells(point: int, label: int, y: int | None) -> list[Cell]:
    """Return the cells under POINT_TITLES; a point without a true class sorts first."""
    mark = "" if y is None or y == label else "wrong"
    true = number_cell("-", -1) if y is None else number_cell(str(y), y)
    return [number_cell(str(point), point), number_cell(str(label), label, mark=mark), true]
