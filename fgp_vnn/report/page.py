"""A self-contained HTML file: the templates of page/, filled in by Jinja2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from fgp_vnn.base.errors import InputError
from fgp_vnn.base.words import plural

_NEEDED = ("jinja2", "matplotlib.figure")  # packages of the extra `report`
_FOLDER = Path(__file__).parent / "page"


@dataclass(frozen=True)
class Section:
    """A part of a page: `name` is its id, `values` are the variables of its template."""

    name: str
    title: str
    template: str  # a file of page/
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """A title, a line below it, sections in order, and the lines of the footer."""

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]
    footer: Sequence[str]


@dataclass(frozen=True)
class Cell:
    """One cell of a sortable table, sorted by `value` if it has one, else by its text."""

    text: str
    value: float | None = None
    kind: str = ""  # CSS class
    measure: str = ""  # a number with its unit, after the text
    mark: str = ""  # an error, after the text
    warn: str = ""  # a warning, not an error
    detail: str = ""  # small print after it
    links: Mapping[str, str] = field(default_factory=dict)  # name -> file, relative to the page


def number_cell(text: str, value: float, mark: str = "") -> Cell:
    """Return a cell of a column of numbers."""
    return Cell(text, value, "number", mark=mark)


# A title, and the pieces of a bar: name, count, CSS class.
Bar = tuple[str, list[tuple[str, int, str]]]


def decided_bar(title: str, deciders: Iterable[str | None]) -> list[Bar]:
    """Return a bar with how often each method decided, the most frequent first; [] if none did."""
    counts = Counter(str(name) for name in deciders if name).most_common()
    pieces = [(*counted, f"s-{number % 8 + 1}") for number, counted in enumerate(counts)]
    return [(title, pieces)] if pieces else []


@dataclass(frozen=True)
class TableRow:
    """Cells in the order of the table's titles, and the values used by the filters."""

    cells: Sequence[Cell]
    results: Sequence[str]
    category: str = ""
    conflict: bool = False


@dataclass(frozen=True)
class Filter:
    """Keeps the rows with the selected value; page.js refers to it by `name`."""

    name: str
    title: str
    values: Sequence[str]


@dataclass(frozen=True)
class Table:
    """The table of a page, which readers can search, filter and sort."""

    unit: str  # what one row is, in the plural
    titles: Sequence[str]
    rows: Sequence[TableRow]
    hint: str  # what the search field finds
    filters: Sequence[Filter] = field(default_factory=tuple)
    conflicts_filter: bool = False
    note: str = ""  # what the columns mean

    def section(self) -> Section:
        """Return the section that shows this table, named after its rows."""
        return Section(self.unit, self.unit.capitalize(), "table.html", {"table": self})


def render(page: Page) -> str:
    """Return the HTML text of a page; everything but SVG is escaped."""
    text: str = _environment().get_template("page.html").render(page=page)
    return text


def facts_line(facts: Mapping[str, object]) -> str:
    """Return names and values in one line, leaving out empty values."""
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


def library(module: str) -> Any:
    """Import a module; if it is missing, raise InputError with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        message = f"reports need {name}, which is not installed: pip install 'fgp-vnn[report]'"
        raise InputError(message) from error


def check_libraries() -> None:
    """Raise InputError, before any work is done, if a report could not be written."""
    for module in _NEEDED:
        library(module)
