"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table_lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
