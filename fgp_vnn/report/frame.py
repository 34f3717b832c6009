"""The page around the sections of a report, and the table that its script sorts and filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from string import Template


def frame(*, title: str, lead: str, sections: Mapping[str, str], footer: str, table: str) -> str:
    """A page that needs nothing else; `table` is the id of the section with the big table."""
    files = resources.files(__package__) / "page"
    return Template((files / "report.html").read_text(encoding="utf-8")).substitute(
        title=title,
        lead=lead,
        table=table,
        navigation="".join(_link(name, text) for name, text in sections.items() if text),
        style=(files / "report.css").read_text(encoding="utf-8"),
        body="\n".join(text for text in sections.values() if text),
        footer=footer,
        script=(files / "report.js").read_text(encoding="utf-8"),
    )


def _link(title: str, section: str) -> str:
    name = section.partition('id="')[2].partition('"')[0]
    return f'<a href="#{name}">{title}</a>'


def section(name: str, title: str, content: str) -> str:
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title">{escape(title)}</h2>{content}</section>'
    )


def facts(values: Mapping[str, object]) -> str:
    return " · ".join(f"{escape(str(name))} {escape(str(value))}" for name, value in values.items())


def count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def scrolling(label: str, table: str) -> str:
    """A table that scrolls sideways in itself, also by keyboard."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">{table}</div>'


def big_table(unit: str, titles: Sequence[str], rows: str) -> str:
    """The table of a page: one sorting button per column; `unit` is what its rows are."""
    head = "".join(
        f'<th scope="col"><button type="button">{escape(title)}</button></th>' for title in titles
    )
    table = f'<table id="table" data-unit="{unit}"><thead><tr>{head}</tr></thead>'
    return scrolling(unit.capitalize(), f"{table}<tbody>{rows}</tbody></table>")


def controls(titles: Sequence[str], hint: str, filters: str = "", checks: str = "") -> str:
    """What stands above the big table: search, filters of its page, order, the count of rows."""
    orders = "".join(
        f'<option value="{n} {direction}">{escape(title)}, {direction}</option>'
        for n, title in enumerate(titles)
        for direction in ("ascending", "descending")
    )
    return (
        '<div class="controls" role="search">'
        f'<label>Search <input id="search" type="search" placeholder="{hint} ( / )"></label>'
        f'{filters}<label>Order <select id="order">{orders}</select></label>{checks}'
        '<output id="count" aria-live="polite"></output></div>'
    )


def choice(name: str, title: str, values: Iterable[str]) -> str:
    """A filter of the big table: all, or one of the values."""
    options = "".join(
        f'<option value="{escape(value)}">{escape(value)}</option>' for value in values
    )
    everything = '<option value="">all</option>'
    return f'<label>{title} <select id="{name}">{everything}{options}</select></label>'
