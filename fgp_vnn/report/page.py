"""One HTML file that needs no other: the templates of page/, filled in by Jinja2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from fgp_vnn.base.words import plural
from fgp_vnn.report.libraries import library

_FOLDER = Path(__file__).parent / "page"


@dataclass(frozen=True)
class Section:
    """A part of a page: `name` is its id, `values` are what its template shows."""

    name: str
    title: str
    template: str  # a file of page/
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """A title, a line below it, sections in order, and lines at the foot."""

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]
    footer: Sequence[str]


@dataclass(frozen=True)
class Cell:
    """One cell of a table that readers sort: by `value` if there is one, else by its text."""

    text: str
    value: float | None = None
    kind: str = ""  # CSS class
    measure: str = ""  # a number with its unit, behind the text
    mark: str = ""  # what is wrong, behind the text
    warn: str = ""  # what a reader should know, though it is not wrong
    detail: str = ""  # small print behind it
    links: Mapping[str, str] = field(default_factory=dict)  # name -> file, relative to the page


def number_cell(text: str, value: float, mark: str = "") -> Cell:
    """Return a cell of a column of numbers."""
    return Cell(text, value, "number", mark=mark)


# A title, and the pieces of a bar: name, count, CSS class.
Bar = tuple[str, list[tuple[str, int, str]]]


def decided_bar(title: str, deciders: Iterable[str | None]) -> list[Bar]:
    """Return the bar of what decided how often, the most frequent first; none if nothing did."""
    counts = Counter(str(name) for name in deciders if name).most_common()
    pieces = [(*counted, f"s-{number % 8 + 1}") for number, counted in enumerate(counts)]
    return [(title, pieces)] if pieces else []


@dataclass(frozen=True)
class TableRow:
    """Cells in the order of the table's titles, and what the filters look at."""

    cells: Sequence[Cell]
    results: Sequence[str]
    category: str = ""
    conflict: bool = False


@dataclass(frozen=True)
class Filter:
    """Keeps the rows with one of the values; `name` is what page.js knows it by."""

    name: str
    title: str
    values: Sequence[str]


@dataclass(frozen=True)
class Table:
    """The table of a page that readers search, filter and sort."""

    unit: str  # what one row is, in the plural
    titles: Sequence[str]
    rows: Sequence[TableRow]
    hint: str  # what the search field finds
    filters: Sequence[Filter] = field(default_factory=tuple)
    conflicts_filter: bool = False

    def section(self) -> Section:
        """Return the section that shows this table, named after its rows."""
        return Section(self.unit, self.unit.capitalize(), "table.html", {"table": self})


def render(page: Page) -> str:
    """Return the HTML text of a page; everything but SVG is escaped."""
    text: str = _environment().get_template("page.html").render(page=page)
    return text


def facts_line(facts: Mapping[str, object]) -> str:
    """Return names and values in one line, without those that have no value."""
    return " · ".join(f"{name} {value}" for name, value in facts.items() if value != "")


@cache
def _environment() -> Any:
    jinja2 = library("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["source"] = lambda name: (_FOLDER / name).read_text(encoding="utf-8")
    environment.filters["plural"] = plural
    return environment
