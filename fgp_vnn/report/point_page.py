"""What the pages of `certify` and `radius` share: the network, settings, pictures, all points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fgp_vnn.base.files import write_bytes
from fgp_vnn.base.words import plural
from fgp_vnn.bench.facts import machine, versions
from fgp_vnn.report.page import Cell, Page, Section, Table, facts_line, number_cell, render
from fgp_vnn.report.pictures import Picture, pictures_section

POINT_TITLES = ("point", "class", "true")


@dataclass(frozen=True)
class PointReport(ABC):
    """What a page about the points of a file shows."""

    network: Mapping[str, object]  # facts of the network, "file" among them
    settings: Mapping[str, object]
    pictures: Sequence[Picture]

    title = "fgp-vnn"  # what comes before the network's name

    def write(self, path: Path) -> None:
        """Write the page to an HTML file."""
        write_bytes(path, self.html().encode(), "report")

    def html(self) -> str:
        """Return the HTML text of the page."""
        facts, points = {"Network": self.network, "Settings": self.settings}, self.points()
        sections = (
            *self.summary(),
            Section("settings", "Network and settings", "settings.html", facts),
            *([pictures_section(self.pictures, self.note())] if self.pictures else []),
            points.section(),
        )
        title = f"{self.title} {self.network.get('file', 'a network')}"
        lead = (plural(len(points.rows), "point"), *self.lead())
        return render(Page(title, lead, sections, [facts_line(versions()), facts_line(machine())]))

    @abstractmethod
    def lead(self) -> Sequence[str]:
        """Return what the line below the title says after the number of points."""

    @abstractmethod
    def summary(self) -> Sequence[Section]:
        """Return the sections that come first."""

    @abstractmethod
    def note(self) -> str:
        """Return what stands above the pictures."""

    @abstractmethod
    def points(self) -> Table:
        """Return the table with a row a point."""


def point_cells(point: int, label: int, y: int | None) -> list[Cell]:
    """Return the cells under POINT_TITLES; a point without a true class sorts first."""
    mark = "" if y is None or y == label else "wrong"
    true = number_cell("-", -1) if y is None else number_cell(str(y), y)
    return [number_cell(str(point), point), number_cell(str(label), label, mark=mark), true]
